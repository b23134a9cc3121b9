//! A headless Chromium, driven over the DevTools protocol.
//!
//! The few commands that tests need go directly through tungstenite: the crates for this protocol
//! generate and compile all of its thousands of types.

use crate::prerequisite::find;
use serde_json::{Value, json};
use std::{
    fs,
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tungstenite::{Message, WebSocket};

const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Time limit for the start of the browser, for each command and for each condition.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the browser that is installed here. A build script asks for these programs with
/// [`prerequisite::programs`](crate::prerequisite::programs).
pub fn installed() -> Option<&'static str> {
    PROGRAMS.into_iter().find(|name| find(name).is_some())
}

/// A browser with one page. It ends with this value.
pub struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    sent: u64,
    /// The beginning of the URLs that the page may request.
    origin: String,
    /// Errors, messages of the console, and requests other than for the page itself.
    pub complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Runs a script in each page that is opened from now on, before the page's own scripts.
    pub fn run_first(&mut self, script: &str) {
        self.ask("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script }));
    }

    /// Starts a browser and opens a file.
    pub fn open(program: &str, file: &Path) -> Browser {
        Browser::visit(program, &format!("file://{}", file.display()))
    }

    /// Starts a browser and opens a URL.
    pub fn visit(program: &str, url: &str) -> Browser {
        let profile = tempfile::tempdir().expect("a directory");
        let process = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--disable-quic", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let since = Instant::now();
        // The browser writes its port and the path of its endpoint, a line each.
        let (port, path) = loop {
            let text = fs::read_to_string(profile.path().join("DevToolsActivePort"));
            let mut lines = text.as_deref().unwrap_or_default().lines();
            if let (Some(port), Some(path)) = (lines.next(), lines.next()) {
                break (port.parse::<u16>().expect("a port"), path.to_owned());
            }
            assert!(since.elapsed() < LIMIT, "the browser has no port after {LIMIT:?}");
            std::thread::sleep(Duration::from_millis(20));
        };
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the browser listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
        let endpoint = format!("ws://127.0.0.1:{port}{path}");
        let (socket, _) = tungstenite::client(endpoint, stream).expect("a WebSocket");
        let (session, origin, complaints) = (None, url.to_owned(), Vec::new());
        let mut browser =
            Browser { process, socket, session, sent: 0, origin, complaints, _profile: profile };
        let target = browser.ask("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), &json!({}));
        }
        browser.ask("Page.navigate", &json!({ "url": url }));
        browser
    }

    /// Opens another file in the same page, as a new browser would: without complaints, in the medium and the
    /// size that it started with. A browser takes as long to start as many pages take to be looked at.
    pub fn show(&mut self, file: &Path) {
        self.go(&format!("file://{}", file.display()));
    }

    /// As [`Browser::show`], for a URL.
    pub fn go(&mut self, url: &str) {
        self.complaints.clear();
        self.ask("Emulation.setEmulatedMedia", &json!({ "media": "", "features": [] }));
        self.ask("Emulation.clearDeviceMetricsOverride", &json!({}));
        // Answers of the old page cannot be taken for those of the new one.
        self.ask("Page.navigate", &json!({ "url": "about:blank" }));
        self.wait("location.href === 'about:blank'");
        url.clone_into(&mut self.origin);
        self.ask("Page.navigate", &json!({ "url": url }));
    }

    /// Sends a command and returns its result.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.sent += 1;
        let mut command = json!({ "id": self.sent, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(command.to_string())).expect("the browser reads");
        loop {
            let message = self.socket.read().unwrap_or_else(|e| panic!("{method}: {e}"));
            let Ok(text) = message.to_text() else { continue };
            let Ok(mut message) = serde_json::from_str::<Value>(text) else { continue };
            if message["id"] == self.sent {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, event: &Value) {
        let method = event["method"].as_str().unwrap_or_default();
        let of_page = |url: &str| {
            let known = [&self.origin[..], "data:", "blob:", "about:"];
            known.iter().any(|known| url.starts_with(known))
        };
        let complains = match method {
            "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => true,
            "Network.requestWillBeSent" => {
                !of_page(event["params"]["request"]["url"].as_str().unwrap_or_default())
            }
            _ => false,
        };
        if complains {
            self.complaints.push(format!("{method}: {}", event["params"]));
        }
    }

    /// Evaluates an expression, and waits if it is a promise.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut result = self.ask("Runtime.evaluate", &params);
        let failure = &result["exceptionDetails"];
        assert!(failure.is_null(), "{expression}: {failure}");
        result["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, condition: &str) {
        let since = Instant::now();
        while self.eval(condition) != json!(true) {
            assert!(since.elapsed() < LIMIT, "not true after {LIMIT:?}: {condition}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sets the size of the window, in pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Sets the medium (`screen` or `print`) and the colour scheme (`light` or `dark`).
    pub fn media(&mut self, medium: &str, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.ask("Emulation.setEmulatedMedia", &json!({ "media": medium, "features": features }));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
