//! The pool of request heads.

use super::*;
use std::collections::BTreeSet;

fn lengths(heads: &[Fields]) -> Vec<usize> {
    let field = |(name, value): &(&str, String)| name.len() + ": \r\n".len() + value.len();
    heads.iter().map(|fields| fields.iter().map(field).sum()).collect()
}

#[test]
fn heads_are_distinct_and_of_many_sizes() {
    for closes in [false, true] {
        let heads = varied(1, closes);
        let distinct: BTreeSet<_> = heads.iter().collect();
        assert_eq!((heads.len(), distinct.len()), (HEADS, HEADS));
        let lengths = lengths(&heads);
        let sizes: BTreeSet<_> = lengths.iter().collect();
        assert!(sizes.len() > 300, "{}", sizes.len());
        let (least, most) = (*sizes.first().unwrap(), *sizes.last().unwrap());
        assert!(*least < 120 && (800..1500).contains(most), "{least} {most}");
        let mean = lengths.iter().sum::<usize>() / HEADS;
        assert!((250..600).contains(&mean), "{mean}");
    }
}

#[test]
fn includes_browser_heads_with_cookies() {
    let is = |fields: &&Fields| {
        let has = |name| fields.iter().any(|(field, _)| *field == name);
        ["User-Agent", "Accept-Language", "Accept-Encoding", "Cookie", "Referer"]
            .into_iter()
            .all(has)
    };
    let browsers = varied(1, false).iter().filter(is).count();
    assert!(browsers > HEADS / 5, "{browsers}");
}

#[test]
fn heads_of_another_seed_differ_but_have_the_same_total_length() {
    let (one, other) = (varied(1, false), varied(2, false));
    assert_eq!(one, varied(1, false));
    assert!(one != other);
    let sum = |heads| lengths(heads).iter().sum::<usize>();
    assert_eq!(sum(&one), sum(&other));
}

#[test]
fn sends_connection_close_once() {
    for fields in varied(1, true) {
        let connection: Vec<_> = fields.iter().filter(|(name, _)| *name == "Connection").collect();
        assert!(matches!(connection[..], [(_, value)] if value == "close"), "{fields:?}");
    }
}
