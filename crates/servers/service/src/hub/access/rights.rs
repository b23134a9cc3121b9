//! What a token allows in which rooms.

use serde::Deserialize;

/// The rooms of a token, from its claims. Without `channels` and `caps` it is for all rooms.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Deserialize))]
pub(in super::super) struct Scope {
    /// These rooms, to receive and to send.
    pub channels: Option<Vec<String>>,
    /// What is allowed where, as in tokens for Centrifugo.
    pub caps: Option<Vec<Capability>>,
}

/// A claim of `caps`.
#[derive(Debug, Deserialize)]
pub(in super::super) struct Capability {
    /// Names of rooms, in which `*` stands for any text.
    #[serde(default)]
    channels: Vec<String>,
    /// `sub` to enter, `pub` to send, `prs` to see who is there, `hst` to read what is kept; others have no effect here.
    #[serde(default)]
    allow: Vec<String>,
    /// How the names are compared: `wildcard`, or nothing. One of another kind allows nothing.
    #[serde(default, rename = "match")]
    comparison: Option<String>,
}

/// What a member may do in its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Rights {
    /// Whether it may send messages to the room.
    pub sends: bool,
    /// Whether it may ask who is in the room.
    pub sees: bool,
    /// Whether it may ask for the messages that are kept.
    pub reads: bool,
}

impl Rights {
    /// Everything.
    pub const ALL: Rights = Rights { sends: true, sees: true, reads: true };
}

impl Scope {
    /// What is allowed in a room; `None`: it may not be entered. The lobby has the empty name.
    pub fn rights(&self, room: &str) -> Option<Rights> {
        if self.channels.is_none() && self.caps.is_none() {
            return Some(Rights::ALL);
        }
        if self.channels.iter().flatten().any(|channel| channel == room) {
            return Some(Rights::ALL);
        }
        let allows = |what: &str| {
            let mut caps = self.caps.iter().flatten();
            caps.any(|cap| cap.is_for(room) && cap.allow.iter().any(|allowed| allowed == what))
        };
        allows("sub").then(|| Rights {
            sends: allows("pub"),
            sees: allows("prs"),
            reads: allows("hst"),
        })
    }
}

impl Capability {
    fn is_for(&self, room: &str) -> bool {
        matches!(self.comparison.as_deref(), None | Some("" | "wildcard"))
            && self.channels.iter().any(|pattern| matches(pattern, room))
    }
}

/// Whether a text has the form of a pattern, in which `*` stands for any text.
pub(in super::super) fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(claims: &str, room: &str) -> Option<bool> {
        let scope: Scope = serde_json::from_str(claims).unwrap();
        scope.rights(room).map(|rights| rights.sends)
    }

    #[test]
    fn a_token_without_rooms_is_for_all_of_them() {
        assert_eq!(rights("{}", "any"), Some(true));
        assert_eq!(rights(r#"{"channels":null}"#, ""), Some(true));
    }

    #[test]
    fn a_token_with_rooms_is_for_no_others() {
        let channels = r#"{"channels":["a","b*"]}"#;
        for (room, expected) in [("a", Some(true)), ("b*", Some(true)), ("b1", None), ("", None)] {
            assert_eq!(rights(channels, room), expected, "{room}: names are exact");
        }
        assert_eq!(rights(r#"{"channels":[]}"#, "a"), None);
        assert_eq!(rights(r#"{"caps":[]}"#, "a"), None);
        assert_eq!(rights(r#"{"channels":[""]}"#, ""), Some(true), "the lobby");
    }

    #[test]
    fn capabilities_allow_entering_and_sending_separately() {
        let caps = r#"{"channels":["own"],"caps":[
            {"channels":["news","chat:*"],"allow":["sub","hst"]},
            {"channels":["chat:a"],"allow":["pub"],"match":"wildcard"},
            {"channels":[".*"],"allow":["sub","pub"],"match":"regex"},
            {"channels":["only"],"allow":["pub"]}, {}]}"#;
        for (room, expected) in [
            ("own", Some(true)),
            ("news", Some(false)),
            ("chat:b", Some(false)),
            ("chat:a", Some(true)),
            ("only", None),
            ("other", None),
            ("", None),
        ] {
            assert_eq!(rights(caps, room), expected, "{room}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, yes, no) in [
            ("*", &["", "a", "*"][..], &[][..]),
            ("a*", &["a", "ab"], &["", "ba"]),
            ("*a", &["a", "ba", "aa"], &["ab", ""]),
            ("a*a", &["aa", "aba", "aaa"], &["a", "ab"]),
            ("a*b*c", &["abc", "axbxc", "abbcc"], &["ac", "acb", "abcd", "ab"]),
            ("a**b", &["ab", "axb"], &["a", "b"]),
            ("ab", &["ab"], &["abc", "a*"]),
            ("ü*", &["ü", "üx"], &["u"]),
        ] {
            for text in yes {
                assert!(matches(pattern, text), "{pattern} and {text}");
            }
            for text in no {
                assert!(!matches(pattern, text), "{pattern} and {text}");
            }
        }
    }
}
