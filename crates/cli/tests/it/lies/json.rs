//! JSON numbers are compared exactly, to the last digit.

use crate::lies::{
    load,
    server::{Server, reply},
};

#[test]
fn numbers_are_equal_only_if_every_digit_is() {
    for (expected, came, is_equal) in [
        ("9007199254740993", "9007199254740992.0", false),
        ("18446744073709551617", "18446744073709551616", false),
        ("0.1", "0.1000000000000000055511151231257827", false),
        ("-0.5", "0.5", false),
        ("1e400", "1e401", false),
        ("100000000000000000000", "1E+20", true),
        ("1e-2", "0.010", true),
        ("-0", "0.0", true),
        ("12", "12.00", true),
        ("[1, {\"a\": 2.50}]", "[1.0, {\"a\": 25e-1}]", true),
        ("\"1\"", "1", false),
    ] {
        let content = format!("{{\"n\": {came}}}");
        let server = Server::http(move |_, _| (reply(200, &content), true));
        let expectation = format!("/n={expected}");
        let more = ["-n", "4", "-c", "1", "--expect-json", &expectation];
        let ended = load(&server.http_url(), &more);
        let status = if is_equal { 0 } else { 1 };
        assert_eq!(ended.status, Some(status), "{expected} and {came}: {}", ended.text());
        if !is_equal {
            assert!(ended.line("expected").contains(expected), "{}", ended.stdout);
        }
    }
}
