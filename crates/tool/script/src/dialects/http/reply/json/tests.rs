//! Comparison of JSON values.

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    serde_json::from_str(text).unwrap()
}

fn are_same(a: &str, b: &str) -> bool {
    let (a, b) = (raw(a), raw(b));
    assert_eq!(same(&a, &b, DEEPEST), same(&b, &a, DEEPEST));
    same(&a, &b, DEEPEST)
}

#[test]
fn compares_numbers_to_the_last_digit_in_any_notation() {
    for (a, b) in [
        ("1", "1.0"),
        ("100", "1e2"),
        ("0.01", "1E-2"),
        ("-0", "0"),
        ("0e5", "0.000"),
        ("12e+1", "120"),
        ("18446744073709551617", "18446744073709551617.0"),
        ("1e400", "10e399"),
    ] {
        assert!(are_same(a, b), "{a} {b}");
    }
    for (a, b) in [
        ("9007199254740993", "9007199254740992.0"),
        ("18446744073709551617", "18446744073709551616"),
        ("1", "-1"),
        ("1", "10"),
        ("1", "\"1\""),
        ("0", "false"),
        ("1e99999999999999999999", "1e99999999999999999998"),
    ] {
        assert!(!are_same(a, b), "{a} {b}");
    }
}

#[test]
fn compares_structures_in_any_order_of_members() {
    assert!(are_same("{\"a\": [1, null], \"b\": \"\\u0041\"}", "{\"b\":\"A\",\"a\":[1.0,null]}"));
    for (a, b) in [
        ("[1, 2]", "[2, 1]"),
        ("[1]", "[1, 1]"),
        ("{\"a\": 1}", "{\"a\": 1, \"b\": 1}"),
        ("{}", "[]"),
        ("null", "false"),
    ] {
        assert!(!are_same(a, b), "{a} {b}");
    }
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(are_same(&deep(100), &deep(100)));
    assert!(
        !are_same(&deep(10_000), &deep(10_000)),
        "too deep to compare, without a stack overflow"
    );
}

#[test]
fn pointers_find_their_values() {
    let whole = raw("{\"a/b\": [10, {\"~\": 20}], \"\": 30, \"00\": 40}");
    let found = |pointer: &str| find(&whole, pointer).map(|value| value.get().to_owned());
    assert_eq!(found("/a~1b/0").as_deref(), Some("10"));
    assert_eq!(found("/a~1b/1/~0").as_deref(), Some("20"));
    assert_eq!(found("/").as_deref(), Some("30"));
    assert_eq!(found("/00").as_deref(), Some("40"));
    for nothing in ["/a", "/a~1b/00", "/a~1b/+0", "/a~1b/2", "/a~1b/0/0", "/a~1b/-"] {
        assert_eq!(found(nothing), None, "{nothing}");
    }
}
