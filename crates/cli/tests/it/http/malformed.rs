//! Every model refuses every request of `testkit::malformed`, and never answers a request
//! that is smuggled in after it.

use crate::{
    http::{GET, reply_to},
    support::{Server, on_every_shared},
};
use regatta_testkit::malformed::{Case, cases};

#[test]
fn malformed_requests_are_refused_and_no_request_after_them_is_answered() {
    let cases = cases();
    assert!(cases.len() >= 120, "{} cases", cases.len());
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        for case in &cases {
            let reply = reply_to(&server, &[&case.bytes[..], GET, GET].concat());
            assert_refused(case, &reply);
        }
        let last = reply_to(&server, b"GET / HTTP/1.0\r\n\r\n");
        assert!(last.contains("Hello"), "the server no longer serves: {last}");
    });
}

/// Checks for the status, an explanation and `Connection: close`, and nothing else.
fn assert_refused(case: &Case, reply: &str) {
    let why = format!("{} ({}): {reply}", case.why, case.status);
    let (head, sentence) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{why}"));
    assert!(head.starts_with(&format!("HTTP/1.1 {} ", case.status)), "{why}");
    assert!(head.ends_with("\r\nConnection: close"), "{why}");
    let length = head.split("Content-Length: ").nth(1).and_then(|rest| rest.lines().next());
    let length: usize = length.expect("a length").parse().expect("digits");
    // The reply to HEAD has only the length.
    let expected = if case.bytes.starts_with(b"HEAD ") { 0 } else { length };
    assert_eq!(sentence.len(), expected, "{why}");
    assert!(expected == 0 || sentence.ends_with('.'), "{why}");
}
