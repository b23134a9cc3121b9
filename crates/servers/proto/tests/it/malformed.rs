//! Each request of `testkit::malformed` gets its status, whole and split at every byte (a long one at some
//! bytes only). Requests after it are never answered.

use crate::served::{Served, serve};
use regatta_testkit::malformed::{Case, cases};

const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn each_is_refused_and_later_requests_are_not_answered() {
    let cases = cases();
    assert!(cases.len() >= 120, "{} cases", cases.len());
    for case in cases {
        let all = [&case.bytes[..], SMUGGLED, SMUGGLED].concat();
        let whole = serve([&all[..]]);
        assert_eq!(whole.statuses(), [case.status], "{}: {}", case.why, whole.text());
        let text = whole.text();
        assert!(whole.closed && text.contains("\r\nConnection: close\r\n"), "{}: {text}", case.why);
        assert!(!text.contains("smuggled"), "{}: {text}", case.why);
        for cut in cuts(case.bytes.len()) {
            assert_same(&case, cut, &serve([&all[..cut], &all[cut..]]), &whole);
        }
        if all.len() < 2000 {
            assert_same(&case, 1, &serve(all.chunks(1)), &whole);
        }
        assert_same(&case, 0, &serve([&case.bytes[..], SMUGGLED, SMUGGLED]), &whole);
    }
}

/// Requests are refused as soon as a rule is violated, without waiting for more bytes. The few
/// exceptions, which wait for an end, are listed here.
#[test]
fn each_is_refused_without_further_input() {
    let waiting: Vec<_> = cases()
        .iter()
        .filter(|case| serve([&case.bytes[..]]).statuses().is_empty())
        .map(|case| case.why)
        .collect();
    assert_eq!(
        waiting,
        ["No empty line after the last chunk: the next request would be a trailer"]
    );
}

fn assert_same(case: &Case, cut: usize, served: &Served, whole: &Served) {
    assert_eq!(served.text(), whole.text(), "{} ({}), cut at {cut}", case.why, case.status);
    assert!(served.closed, "{}, cut at {cut}", case.why);
}

/// Every position to split a short case; for a long one, the ends and some positions between.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    let long = length > 600;
    (1..=length).filter(move |&cut| !long || cut < 64 || length - cut < 64 || cut % 997 == 0)
}
