//! The outcome of a call: `grpc-status` and `grpc-message`.
//!
//! Source: the gRPC repository, `doc/PROTOCOL-HTTP2.md` and `doc/statuscodes.md`.

use crate::text::cut;
use percent_encoding::percent_decode;
use regatta_http2::hpack::Fields;

/// Maximum number of characters of a message that are shown.
const SHOWN: usize = 300;

/// The names of the codes, from 0 on.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// What fields say about the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing.
    Absent,
    /// `grpc-status` is 0.
    Ok,
    /// `grpc-status` is something else, or there are several.
    Other,
}

/// Returns the outcome in these fields.
#[inline]
pub(super) fn outcome(fields: &Fields) -> Outcome {
    let mut outcome = Outcome::Absent;
    for field in fields.iter().filter(|field| field.name == b"grpc-status") {
        let is_ok = outcome == Outcome::Absent && field.value == b"0";
        outcome = if is_ok { Outcome::Ok } else { Outcome::Other };
    }
    outcome
}

/// The outcome in these fields, for people: `grpc-status 5 (NOT_FOUND): no such item`.
#[cold]
pub(super) fn in_words(fields: &Fields) -> String {
    let values = |name: &'static [u8]| {
        fields.iter().filter(move |field| field.name == name).map(|field| field.value)
    };
    let statuses: Vec<String> = values(b"grpc-status").map(named).collect();
    let mut text = match &statuses[..] {
        [] => "no grpc-status".to_owned(),
        [status] => format!("grpc-status {status}"),
        several => format!("several fields grpc-status: {}", several.join(", ")),
    };
    if let Some(message) = values(b"grpc-message").next().filter(|message| !message.is_empty()) {
        text = format!("{text}: {}", as_text(message));
    }
    text
}

/// A code with its name.
fn named(value: &[u8]) -> String {
    let number = |text: &str| text.parse::<u8>().ok().filter(|number| number.to_string() == text);
    let number = std::str::from_utf8(value).ok().and_then(number);
    match number.and_then(|number| NAMES.get(usize::from(number))) {
        Some(name) => format!("{} ({name})", cut(value, SHOWN)),
        None => format!("\"{}\" (not a code of gRPC)", cut(value, SHOWN)),
    }
}

/// A message for people, which is percent-encoded UTF-8. Control characters are escaped.
fn as_text(message: &[u8]) -> String {
    let text = percent_decode(message).decode_utf8_lossy();
    let mut shown = String::new();
    for c in text.chars() {
        if shown.len() >= SHOWN {
            shown.push_str("...");
            break;
        }
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_http2::hpack::{Decoder, Encoder, Indexing};

    fn fields(of: &[(&str, &str)]) -> Fields {
        let (mut block, mut fields) = (Vec::new(), Fields::default());
        let of =
            of.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without));
        Encoder::default().encode(of, &mut block);
        Decoder::new(4096).decode(&block, &mut fields).unwrap();
        fields
    }

    fn of_status(value: &str) -> (Outcome, String) {
        let fields = fields(&[("grpc-status", value)]);
        (outcome(&fields), in_words(&fields))
    }

    #[test]
    fn only_zero_is_right() {
        assert_eq!(of_status("0"), (Outcome::Ok, "grpc-status 0 (OK)".into()));
        assert_eq!(of_status("5"), (Outcome::Other, "grpc-status 5 (NOT_FOUND)".into()));
        assert_eq!(of_status("16").1, "grpc-status 16 (UNAUTHENTICATED)");
        for odd in ["", "00", "05", "17", "+0", "0 ", "-1", "OK", "99999999999"] {
            let (outcome, text) = of_status(odd);
            assert_eq!(outcome, Outcome::Other, "{odd}");
            assert!(text.ends_with(&format!("\"{odd}\" (not a code of gRPC)")), "{text}");
        }
    }

    #[test]
    fn exactly_one_status_is_right() {
        let none = fields(&[("grpc-message", "a")]);
        assert_eq!(
            (outcome(&none), in_words(&none)),
            (Outcome::Absent, "no grpc-status: a".into())
        );
        let twice = fields(&[("grpc-status", "0"), ("grpc-status", "0")]);
        assert_eq!(outcome(&twice), Outcome::Other);
        assert_eq!(in_words(&twice), "several fields grpc-status: 0 (OK), 0 (OK)");
    }

    #[test]
    fn messages_are_decoded() {
        let shown =
            |message: &str| in_words(&fields(&[("grpc-status", "2"), ("grpc-message", message)]));
        assert_eq!(shown("a%20b%C3%A4"), "grpc-status 2 (UNKNOWN): a bä");
        assert_eq!(shown("100%"), "grpc-status 2 (UNKNOWN): 100%");
        assert_eq!(shown("%zz%2"), "grpc-status 2 (UNKNOWN): %zz%2");
        assert_eq!(shown("a%0Ab%1b"), "grpc-status 2 (UNKNOWN): a\\nb\\u{1b}");
        assert!(shown(&"x".repeat(5_000)).len() < 400);
        assert!(shown("%ff").ends_with('\u{fffd}'));
    }
}
