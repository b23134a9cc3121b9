//! The bytes of the built-in workloads.

use super::*;
use regatta_record::ReplySeen;

fn first(request: &HttpRequest, place: Destination<'_>) -> String {
    let script = compose(request, Heads::Identical, 1, place);
    String::from_utf8(script.request(0).to_vec()).unwrap()
}

#[test]
fn writes_the_built_in_requests_byte_for_byte() {
    let place = Destination { host: "h:1", path: None, closes: false, timeout: None };
    assert_eq!(first(&hello(place), place), "GET / HTTP/1.1\r\nHost: h:1\r\n\r\n");
    let asks = "GET /hash?n=7&salt=0000000000000000 HTTP/1.1\r\nHost: h:1\r\n\r\n";
    assert_eq!(first(&hash(7, place), place), asks);
    let place = Destination { path: Some("/a.php"), closes: true, ..place };
    let asks = "GET /a.php?n=7&salt=0000000000000000 HTTP/1.1\r\nHost: h:1\r\n\
                Connection: close\r\n\r\n";
    assert_eq!(first(&hash(7, place), place), asks);
}

#[test]
fn varied_requests_differ_only_in_their_heads() {
    let place = Destination { host: "h:1", path: None, closes: false, timeout: None };
    let script = compose(&hello(place), Heads::Varied, 1, place);
    let mut seen = std::collections::BTreeSet::new();
    for i in 0..script.pushed() as u32 {
        let request = std::str::from_utf8(script.request(i)).unwrap();
        let fields = request.strip_prefix("GET / HTTP/1.1\r\nHost: h:1\r\n").unwrap();
        assert!(fields.ends_with("\r\n\r\n"), "{request}");
        seen.insert(fields);
    }
    assert_eq!(seen.len(), heads::HEADS);
}

#[test]
fn canned_requests_have_the_number_and_mean_length_of_hello() {
    for heads in [Heads::Varied, Heads::Identical] {
        let place = Destination { host: "h:1", path: None, closes: false, timeout: None };
        let asked = compose(&hello(place), heads, 7, place);
        let canned = compose_canned(heads, 7, place);
        assert_eq!(asked.pushed(), canned.pushed());
        let bytes = |script: &Script| -> usize {
            (0..script.pushed() as u32).map(|i| script.request(i).len()).sum()
        };
        // The mean is rounded down.
        let missing = bytes(&asked) - bytes(&canned);
        assert!(missing < asked.pushed(), "{missing}");
        assert!(canned.request(5).len() == canned.mean_request());
    }
}

#[test]
fn describes_a_reply_once_it_is_complete() {
    for closes in [false, true] {
        let reply = canned_reply(closes).as_bytes();
        for whole in 0..reply.len() {
            assert_eq!(seen::reply(&reply[..whole]), None, "{whole}");
        }
        let bytes = reply.len() as u64;
        assert_eq!(seen::reply(reply), Some(ReplySeen { bytes, has_date: true, content: None }));
    }
    let reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    let bytes = reply.len() as u64;
    assert_eq!(seen::reply(reply), Some(ReplySeen { bytes, has_date: false, content: None }));
    assert_eq!(seen::reply(b"no reply at all, but a sentence\r\n\r\n"), None);
}
