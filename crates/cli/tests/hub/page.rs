//! The hub's demo page in a real browser, which is controlled over the Chrome DevTools Protocol.
//!
//! Skipped, with a message, if no Chromium is installed (scripts/setup installs it).

use crate::{
    Patient, hear, member_of, send,
    support::{Server, until},
};
use serde_json::{Value, json};
use std::{
    env, fs,
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket, client::client};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const DEADLINE: Duration = Duration::from_secs(20);

/// A page that is open in a separate browser.
struct Page {
    _browser: Browser,
    socket: WebSocket<Patient>,
    session: String,
    calls: u64,
    _profile: TempDir,
}

/// A browser process, killed when dropped.
struct Browser(Child);

/// Waits until the browser's file is complete, and returns the port and the path in it.
fn ready(file: &Path) -> (u16, String) {
    let mut found = None;
    until("the browser listens", || {
        let text = fs::read_to_string(file).unwrap_or_default();
        found = text.split_once('\n').and_then(|(port, path)| {
            Some((port.parse().ok()?, path.trim().to_owned())).filter(|(_, path)| !path.is_empty())
        });
        found.is_some()
    });
    found.unwrap()
}

impl Page {
    /// Opens a page in a new browser. Returns `None` if no browser is installed.
    fn open(url: &str) -> Option<Page> {
        let path = env::var_os("PATH")?;
        let is_here = |name: &&str| env::split_paths(&path).any(|dir| dir.join(name).is_file());
        let name = BROWSERS.into_iter().find(is_here)?;
        let profile = TempDir::new().unwrap();
        let mut command = Command::new(name);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-component-update", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let browser = Browser(command.spawn().unwrap());
        // The browser writes its port, and then a path, once it listens.
        let (port, path) = ready(&profile.path().join("DevToolsActivePort"));
        let endpoint = format!("ws://127.0.0.1:{port}{path}");
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let socket = client(&endpoint, Patient(stream)).unwrap().0;
        let mut page =
            Page { _browser: browser, socket, session: String::new(), calls: 0, _profile: profile };
        let target = page.call("Target.createTarget", json!({"url": url}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let attached = page.call("Target.attachToTarget", target);
        page.session = attached["sessionId"].as_str().unwrap().to_owned();
        Some(page)
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": params});
        if !self.session.is_empty() {
            call["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(call.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let mut reply: Value = serde_json::from_str(&text).unwrap();
            if reply["id"] == json!(self.calls) {
                assert!(reply["error"].is_null(), "{method}: {reply}");
                return reply["result"].take();
            }
        }
    }

    /// Evaluates an expression in the page.
    fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true});
        let mut result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].take()
    }

    /// Waits until an expression in the page is true.
    fn until(&mut self, expression: &str) {
        let deadline = Instant::now() + DEADLINE;
        while self.value(expression) != json!(true) {
            assert!(
                Instant::now() < deadline,
                "{expression} is still false, in {}",
                self.value("document.body?.innerText")
            );
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_page_joins_a_room_sends_and_shows_who_is_there() {
    let server = Server::of("hub", "epoll", &["--page", "--presence"]);
    let Some(mut page) = Page::open(&format!("http://{}/?room=tea%20room&name=Zoë", server.addr))
    else {
        println!("skipped: no browser is installed; scripts/setup installs chromium");
        return;
    };
    let mut other = member_of(&server, "/ws/tea%20room?name=Adam");
    assert_eq!(hear(&mut other)["members"], json!(["Adam"]));
    page.until(
        "typeof $ === 'function' && document.readyState === 'complete' && $('text').disabled",
    );
    page.value("$('enter').requestSubmit()");
    let came = hear(&mut other);
    assert_eq!(
        (&came["event"], &came["member"], &came["count"]),
        (&json!("join"), &json!("Zoë"), &json!(2))
    );
    page.until("$('here').textContent === '2 here' && $('log').innerText.includes('Adam, Zoë')");
    page.value("$('text').value = 'Tea? <b>&'; $('say').requestSubmit()");
    let heard = hear(&mut other);
    assert_eq!(heard["payload"], json!({"from": "Zoë", "text": "Tea? <b>&"}));
    page.until(
        "$('log').innerText.includes('Zoë: Tea? <b>&') && $('log').innerText.includes('sent to 2')",
    );
    send(&mut other, &json!({"type": "broadcast", "payload": {"from": "Adam", "text": "Yes."}}));
    page.until("$('log').innerText.includes('Adam: Yes.')");
    drop(other);
    page.until("$('log').innerText.includes('Adam left') && $('here').textContent === '1 here'");
    drop(server);
    page.until("$('here').textContent === 'not connected' && $('text').disabled");
}
