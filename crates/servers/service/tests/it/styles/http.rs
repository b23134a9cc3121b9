//! HTTP: replies do not depend on the style or on how input is split, and follow RFC 9110.

use crate::styles::{
    client::Client,
    peer::START_UNIX_S,
    play::{LIMITS, STYLES, Style, all_styles, cut, play, secs},
};
use proptest::prelude::*;
use regatta_proto::http1::{MAX_BODY, MAX_HEAD};
use regatta_service::{ServiceProgram, hello::Hello, http::Site};

const DATE: &str = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
const PLAIN: &str = "Content-Type: text/plain\r\n";
const HELLO: &str = "Hello. The time is 784111777";
const _: () = assert!(START_UNIX_S == 784_111_777);

fn site() -> ServiceProgram<Site<Hello>> {
    ServiceProgram(Site(Hello))
}

/// The replies in the callback style to input that arrives at once.
fn answer(input: &[u8]) -> Vec<u8> {
    play(Style::Callback, &site(), &Client::new().send(input).half_close(), LIMITS).output()
}

/// The replies to `input`. Every style must agree, for the whole input and for every split in two
/// below byte 300.
fn replies(input: &str) -> String {
    let input = input.as_bytes();
    let whole = answer(input);
    all_styles(site(), &[input.to_vec()], &whole);
    for at in 1..input.len().min(300) {
        all_styles(site(), &[input[..at].to_vec(), input[at..].to_vec()], &whole);
    }
    String::from_utf8(whole).unwrap()
}

fn greeting(connection: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{DATE}{PLAIN}Content-Length: 28\r\n{connection}\r\n{HELLO}")
}

#[test]
fn get_returns_the_time_and_head_the_same_without_content() {
    assert_eq!(replies("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), greeting(""));
    assert_eq!(replies("GET /?x=y HTTP/1.1\r\nHost: a\r\n\r\n"), greeting(""));
    assert_eq!(replies("GET http://a.b:8 HTTP/1.1\r\nHost: a\r\n\r\n"), greeting(""));
    let head = greeting("");
    let head = head.strip_suffix(HELLO).unwrap();
    assert_eq!(replies("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"), head);
}

#[test]
fn options_and_unsupported_methods_list_the_allowed_methods() {
    let none = format!("HTTP/1.1 204 No Content\r\n{DATE}Allow: GET, HEAD, OPTIONS\r\n\r\n");
    assert_eq!(replies("OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n"), none);
    assert_eq!(replies("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), none);
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        let reply = replies(&format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(reply.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{method}: {reply}");
        assert!(reply.contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"), "{method}: {reply}");
        assert!(!reply.contains("Connection:"), "{method}: the connection stays open: {reply}");
    }
}

#[test]
fn other_paths_are_not_found_whatever_the_method() {
    for request in ["GET /x", "HEAD /x", "POST /hash", "OPTIONS /x", "GET //"] {
        let reply = replies(&format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(reply.starts_with("HTTP/1.1 404 Not Found\r\n"), "{request}: {reply}");
        assert_eq!(reply.ends_with("\r\n\r\n"), request.starts_with("HEAD"), "{request}: {reply}");
    }
}

#[test]
fn the_connection_persists_according_to_the_version_and_the_client() {
    const BEHIND: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let with = |head: &str| replies(&format!("{head}\r\n\r\n{BEHIND}"));
    assert_eq!(with("GET / HTTP/1.1\r\nHost: a"), greeting("").repeat(2));
    let closed = greeting("Connection: close\r\n");
    assert_eq!(with("GET / HTTP/1.1\r\nHost: a\r\nConnection: close"), closed);
    assert_eq!(with("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close"), closed);
    assert_eq!(with("GET / HTTP/1.0"), closed);
    assert_eq!(with("GET / HTTP/1.0\r\nConnection: close, keep-alive"), closed);
    assert_eq!(
        with("GET / HTTP/1.0\r\nConnection: Keep-Alive"),
        greeting("Connection: keep-alive\r\n") + &greeting("")
    );
}

#[test]
fn a_client_that_expects_100_continue_receives_it() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let post = |fields: &str, content: &str| {
        replies(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{content}"))
    };
    let reply = post("Expect: 100-continue\r\nContent-Length: 3", "abc");
    assert!(reply.starts_with(&format!("{interim}HTTP/1.1 405 ")), "{reply}");
    let reply = post("Expect: 100-continue\r\nTransfer-Encoding: chunked", "1\r\na\r\n0\r\n\r\n");
    assert!(reply.starts_with(&format!("{interim}HTTP/1.1 405 ")), "{reply}");
    // A request that must be refused is refused before its content is sent.
    let reply = post(&format!("Expect: 100-continue\r\nContent-Length: {}", MAX_BODY + 1), "");
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
    let reply = post("Expect: 100-continue\r\nContent-Length: 0", "");
    assert!(reply.starts_with("HTTP/1.1 405 "), "no content to wait for: {reply}");
}

#[test]
fn a_rejection_closes_the_connection() {
    let reply = replies("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{reply}");
    assert!(reply.contains("\r\nConnection: close\r\n") && !reply.contains("Hello"), "{reply}");
}

#[test]
fn all_buffered_requests_are_answered_with_one_write() {
    let input = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50);
    for style in STYLES {
        let played = play(style, &site(), &Client::new().send(&input).half_close(), LIMITS);
        let writes = played.writes();
        assert_eq!(writes.len(), 1, "{style:?}");
        let count = String::from_utf8_lossy(writes[0]).matches("HTTP/1.1 200 OK").count();
        assert_eq!(count, 100, "{style:?}");
    }
}

/// The longest head and content accepted, in every style.
#[test]
fn requests_at_the_limits_are_answered() {
    const TAIL: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let start = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {MAX_BODY}\r\nX: ");
    let head = format!("{start}{}\r\n\r\n", "x".repeat(MAX_HEAD - start.len() - 4));
    assert_eq!(head.len(), MAX_HEAD);
    let input = head + &"b".repeat(MAX_BODY) + TAIL;
    let whole = answer(input.as_bytes());
    let text = String::from_utf8(whole.clone()).unwrap();
    assert!(text.starts_with("HTTP/1.1 405 ") && text.ends_with(&greeting("")), "{text}");
    for sizes in [&[1 << 20][..], &[8192], &[16384], &[8191, 3], &[65_537, 1, 4096]] {
        all_styles(site(), &cut(input.as_bytes(), sizes), &whole);
    }
}

#[test]
fn a_slow_head_or_content_times_out() {
    let client = Client::new().pause(secs(5)).send("POST / HTTP/1.1\r\nHost: a\r\n");
    let client = client.pause(secs(4)).send("Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    let client = client.pause(secs(5)).send("ab");
    for style in STYLES {
        let played = play(style, &site(), &client, LIMITS);
        assert_eq!(played.output(), b"HTTP/1.1 100 Continue\r\n\r\n", "{style:?}");
        assert_eq!(
            played.closed,
            secs(15),
            "{style:?}: an interim reply does not extend the timeout"
        );
    }
    let client = client.send("c").half_close();
    for style in STYLES {
        let played = play(style, &site(), &client, LIMITS);
        assert_eq!((played.error, played.closed), (None, secs(14)), "{style:?}");
    }
}

#[test]
fn a_reply_has_the_date_of_its_second() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let client = Client::new().send(request).pause(secs(3)).send(request).half_close();
    for style in STYLES {
        let output = String::from_utf8(play(style, &site(), &client, LIMITS).output()).unwrap();
        let dates: Vec<_> = output.split("\r\n").filter(|l| l.starts_with("Date: ")).collect();
        let seconds = dates.iter().map(|date| &date[date.len() - 6..]);
        assert_eq!(seconds.collect::<Vec<_>>(), ["37 GMT", "40 GMT"], "{style:?}");
    }
}

/// Requests and parts of requests, valid and invalid.
fn part() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        8 => Just("GET / HTTP/1.1\r\nHost: a\r\n".to_owned()),
        2 => Just("HEAD /x HTTP/1.1\r\nHost: a\r\n".to_owned()),
        2 => Just("OPTIONS * HTTP/1.1\r\nHost: a\r\n".to_owned()),
        2 => Just("GET / HTTP/1.0\r\nConnection: keep-alive\r\n".to_owned()),
        1 => Just("GET / HTTP/1.0\r\n".to_owned()),
        1 => "[A-Z]{3,7} [/a-z?*]{1,8} HTTP/1.[01]\r\n",
    ];
    let field = prop_oneof![
        8 => Just(String::new()),
        2 => "X-[a-z]{1,8}: [ -~]{0,40}\r\n",
        1 => (0usize..20_000).prop_map(|n| format!("Long: {}\r\n", "l".repeat(n))),
        1 => Just("Connection: close\r\n".to_owned()),
        1 => "[ -~]{0,20}\r\n",
    ];
    let content = prop_oneof![
        8 => Just("\r\n".to_owned()),
        2 => (0usize..70_000).prop_map(|n| format!("Content-Length: {n}\r\n\r\n{}", "c".repeat(n))),
        1 => (0usize..300).prop_map(|n| {
            format!("Expect: 100-continue\r\nContent-Length: {n}\r\n\r\n{}", "c".repeat(n))
        }),
        1 => proptest::collection::vec(1usize..3000, 0..40).prop_map(|sizes| {
            let chunk = |n: usize| format!("{n:x}\r\n{}\r\n", "k".repeat(n));
            let chunks: String = sizes.into_iter().map(chunk).collect();
            format!("Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
        }),
        1 => "[ -~\r\n]{0,40}",
    ];
    (line, field, content).prop_map(|(line, field, content)| line + &field + &content)
}

proptest! {
    #[test]
    fn hello_replies_are_the_same_in_every_style(
        parts in proptest::collection::vec(part(), 0..12),
        cuts in proptest::collection::vec(1usize..9000, 1..12),
    ) {
        let input = parts.concat().into_bytes();
        let whole = answer(&input);
        all_styles(site(), &cut(&input, &cuts), &whole);
    }
}
