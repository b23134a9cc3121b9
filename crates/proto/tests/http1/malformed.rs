//! Every request of `malformed.txt` gets its status, whole and cut at every byte, and what
//! follows it is never answered.

use crate::{
    cases::{Case, cases},
    served::{Served, serve},
};

const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn each_is_refused_and_nothing_behind_it_is_answered() {
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

/// All that break a rule are answered as soon as the rule is broken, not when more has come.
/// Those that only wait for an end are few and listed here.
#[test]
fn each_is_refused_by_itself() {
    let waiting: Vec<_> = cases()
        .iter()
        .filter(|case| serve([&case.bytes[..]]).statuses().is_empty())
        .map(|case| case.why)
        .collect();
    assert_eq!(
        waiting,
        ["No empty line behind the last chunk: the next request would be a trailer"]
    );
}

fn assert_same(case: &Case, cut: usize, served: &Served, whole: &Served) {
    assert_eq!(served.text(), whole.text(), "{} ({}), cut at {cut}", case.why, case.status);
    assert!(served.closed, "{}, cut at {cut}", case.why);
}

/// Every place to cut a short case; of a long one, the ends and some places between.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    let long = length > 600;
    (1..=length).filter(move |&cut| !long || cut < 64 || length - cut < 64 || cut % 997 == 0)
}
