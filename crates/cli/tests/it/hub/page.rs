//! The hub's demo page, also in a real browser.

use crate::support::{
    Server,
    hub::{hear, member_of, send},
};
use regatta_testkit::browser::{Browser, installed};
use serde_json::json;
use std::io::{Read, Write};

#[test]
fn the_page_is_sent_only_for_get_and_head() {
    let server = Server::of("hub", "epoll", &["--page"]);
    for (method, status) in [("GET", 200), ("HEAD", 200), ("POST", 405), ("DELETE", 405)] {
        let mut stream = server.connect();
        let request = format!("{method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{method}: {reply}");
        assert_eq!(reply.contains("Allow: GET, HEAD\r\n"), status == 405, "{method}: {reply}");
        assert_eq!(reply.contains("<html"), method == "GET", "{method}: {reply}");
    }
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup installs chromium)"
)]
fn the_page_joins_a_room_sends_and_shows_who_is_there() {
    let server = Server::of("hub", "epoll", &["--page", "--presence"]);
    let url = format!("http://{}/?room=tea%20room&name=Zoë", server.addr);
    let mut page = Browser::visit(installed().expect("a browser"), &url);
    let mut other = member_of(&server, "/ws/tea%20room?name=Adam");
    assert_eq!(hear(&mut other)["members"], json!(["Adam"]));
    page.wait(
        "typeof $ === 'function' && document.readyState === 'complete' && $('text').disabled",
    );
    page.eval("$('enter').requestSubmit()");
    let came = hear(&mut other);
    assert_eq!(
        (&came["event"], &came["member"], &came["count"]),
        (&json!("join"), &json!("Zoë"), &json!(2))
    );
    page.wait("$('here').textContent === '2 here' && $('log').innerText.includes('Adam, Zoë')");
    page.eval("$('text').value = 'Tea? <b>&'; $('say').requestSubmit()");
    let heard = hear(&mut other);
    assert_eq!(heard["payload"], json!({"from": "Zoë", "text": "Tea? <b>&"}));
    page.wait(
        "$('log').innerText.includes('Zoë: Tea? <b>&') && $('log').innerText.includes('sent to 2')",
    );
    send(&mut other, &json!({"type": "broadcast", "payload": {"from": "Adam", "text": "Yes."}}));
    page.wait("$('log').innerText.includes('Adam: Yes.')");
    drop(other);
    page.wait("$('log').innerText.includes('Adam left') && $('here').textContent === '1 here'");
    drop(server);
    page.wait("$('here').textContent === 'not connected' && $('text').disabled");
}
