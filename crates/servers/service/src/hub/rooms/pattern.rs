//! Patterns of the names of rooms.

use crate::hub::census::LONGEST_NAME;
use regatta_proto::http1::server;
use std::{fmt, str::FromStr};

/// The rooms of a rule: the one with this name, or, with a `*` at the end, all whose names begin so. The lobby has
/// the empty name, so `*` is for all rooms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomPattern {
    /// The name, or how it begins.
    text: Box<str>,
    /// A `*` follows.
    is_start: bool,
}

/// Why a text is not a pattern, or one of no room.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// A `*` that is not the last character.
    #[error(
        "`*` is only possible as the last character; expected a name, or a start of names and `*`, e.g. chat:*"
    )]
    Star,
    /// Longer than the name of any room.
    #[error("no room has a name of more than {LONGEST_NAME} bytes")]
    Long,
    /// A character that is in no path of a URL.
    #[error(
        "no room has {0:?} in its name, which is a part of a URL; write it percent-encoded, as clients do"
    )]
    Character(char),
}

impl RoomPattern {
    /// Whether the room with this name is one of its rooms.
    pub fn matches(&self, room: &str) -> bool {
        if self.is_start { room.starts_with(&*self.text) } else { room == &*self.text }
    }

    /// Whether all rooms of another pattern are also rooms of this one.
    pub fn covers(&self, other: &RoomPattern) -> bool {
        match (self.is_start, other.is_start) {
            (true, _) => other.text.starts_with(&*self.text),
            (false, false) => self == other,
            (false, true) => false,
        }
    }
}

impl FromStr for RoomPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let (text, is_start) = match text.strip_suffix('*') {
            Some(start) => (start, true),
            None => (text, false),
        };
        if text.contains('*') {
            return Err(InvalidPattern::Star);
        }
        if text.len() > LONGEST_NAME {
            return Err(InvalidPattern::Long);
        }
        let is_of_no_path = |&(at, c): &(usize, char)| {
            let length = if c == '%' { 3 } else { c.len_utf8() };
            c == '?' || !text.get(at..at + length).is_some_and(is_in_a_target)
        };
        match text.char_indices().find(is_of_no_path) {
            Some((_, character)) => Err(InvalidPattern::Character(character)),
            None => Ok(RoomPattern { text: text.into(), is_start }),
        }
    }
}

/// Whether a request target may contain this character or escape, by the rule of the HTTP parser.
fn is_in_a_target(part: &str) -> bool {
    if part.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return false;
    }
    let head = format!("GET /{part} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    let request = server::Decoder::default().decode(&head);
    matches!(request, Some((server::Event::Request(_), _)))
}

impl fmt::Display for RoomPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_start { "*" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> RoomPattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_pattern_is_a_name_or_a_start_of_names() {
        for (text, yes, no) in [
            ("chat", &["chat"][..], &["", "cha", "chat:1"][..]),
            ("chat:*", &["chat:", "chat:1", "chat:a/b"], &["chat", "", "xchat:1"]),
            ("", &[""], &["a"]),
            ("*", &["", "a", "chat:1"], &[]),
        ] {
            assert!(yes.iter().all(|room| pattern(text).matches(room)), "{text}");
            assert!(!no.iter().any(|room| pattern(text).matches(room)), "{text}");
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    #[test]
    fn a_pattern_that_no_room_can_have_is_refused() {
        let longest = "x".repeat(LONGEST_NAME);
        assert!(pattern(&format!("{longest}*")).matches(&longest));
        for (text, expected) in [
            ("a*b", InvalidPattern::Star),
            ("**", InvalidPattern::Star),
            (&format!("{longest}x"), InvalidPattern::Long),
            ("a b", InvalidPattern::Character(' ')),
            ("a?*", InvalidPattern::Character('?')),
            ("#", InvalidPattern::Character('#')),
        ] {
            assert_eq!(text.parse::<RoomPattern>(), Err(expected), "{text}");
        }
        for character in "\u{fc}\\\"<>{}|^`[]%".chars() {
            for text in [format!("a{character}"), format!("{character}*"), format!("{character}4")]
            {
                let expected = Err(InvalidPattern::Character(character));
                assert_eq!(text.parse::<RoomPattern>(), expected, "{text}");
            }
        }
        for text in ["a%2Fb", "%c3%bc*", "a/b:c@d'(1),;=+$!&~._-*"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn a_room_of_a_covered_pattern_is_one_of_the_pattern_that_covers_it(
            one in "[ab]{0,3}\\*?", other in "[ab]{0,3}\\*?", room in "[ab]{0,5}",
        ) {
            let (one, other) = (pattern(&one), pattern(&other));
            if one.covers(&other) && other.matches(&room) {
                prop_assert!(one.matches(&room));
            }
            // The pattern's own text is the shortest of its rooms.
            let own = other.to_string();
            if !one.covers(&other) && !other.is_start {
                prop_assert!(!one.matches(&own));
            }
        }
    }
}
