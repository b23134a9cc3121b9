//! Every request of `proto/tests/http1/malformed.txt` is refused on every model, and a request
//! that is smuggled behind it is never answered.

use crate::{
    GET,
    cases::{Case, cases},
    support::{Server, on_every_shared},
    told,
};

#[test]
fn every_malformed_request_is_refused_and_nothing_behind_it_is_answered() {
    let cases = cases();
    assert!(cases.len() >= 120, "{} cases", cases.len());
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        for case in &cases {
            let reply = told(&server, &[&case.bytes[..], GET, GET].concat());
            assert_refused(case, &reply);
        }
        assert!(told(&server, b"GET / HTTP/1.0\r\n\r\n").contains("Hello"), "it serves on");
    });
}

/// The status, a sentence, and that the connection is closed; nothing else.
fn assert_refused(case: &Case, reply: &str) {
    let why = format!("{} ({}): {reply}", case.why, case.status);
    let (head, sentence) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{why}"));
    assert!(head.starts_with(&format!("HTTP/1.1 {} ", case.status)), "{why}");
    assert!(head.ends_with("\r\nConnection: close"), "{why}");
    let length = head.split("Content-Length: ").nth(1).and_then(|rest| rest.lines().next());
    let length: usize = length.expect("a length").parse().expect("digits");
    // The reply to HEAD has the length only.
    let expected = if case.bytes.starts_with(b"HEAD ") { 0 } else { length };
    assert_eq!(sentence.len(), expected, "{why}");
    assert!(expected == 0 || sentence.ends_with('.'), "{why}");
}
