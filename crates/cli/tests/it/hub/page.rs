//! The hub's demo page in a real browser.

use crate::support::{
    Server,
    hub::{hear, member_of, send},
};
use regatta_testkit::browser::{Browser, installed};
use serde_json::json;

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
