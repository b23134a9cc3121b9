//! The client side: where replies end.

use super::{MAX_NESTING, Malformed, line::line};

/// Maximum length of a simple string, error or number, in bytes. Those of Redis are far shorter,
/// but a script may return a long error.
const LONGEST_LINE: usize = 64 << 10;

/// Finds the ends of the replies of one connection, without parsing or buffering their contents: a
/// reply of gigabytes may pass in pieces.
#[derive(Debug, Default)]
pub struct Replies {
    /// For each open aggregate, the number of elements still missing.
    open: Vec<u64>,
    /// Missing bytes of a bulk string, including its CR LF.
    bulk: u64,
    /// The nesting level of an open attribute, if any. An attribute belongs to the element after
    /// it.
    attribute: Option<usize>,
    /// The current reply is a push.
    push: bool,
    started: bool,
    closed: bool,
}

/// What is at the front of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// This many bytes belong to the current reply.
    pub bytes: usize,
    /// They complete the reply. Otherwise more bytes must arrive; bytes that were not taken must be
    /// passed again.
    pub whole: bool,
    /// The reply is a push (RESP3), not the reply to a command.
    pub push: bool,
}

impl Replies {
    /// Returns how many bytes at the front of `input` belong to the current reply.
    #[inline]
    pub fn next(&mut self, input: &[u8]) -> Result<Found, Malformed> {
        if self.closed {
            return Err(Malformed("the connection failed before"));
        }
        self.take(input).inspect_err(|_| self.closed = true)
    }

    fn take(&mut self, input: &[u8]) -> Result<Found, Malformed> {
        let mut at = 0;
        loop {
            let more = |this: &Self, at| Ok(Found { bytes: at, whole: false, push: this.push });
            let rest = &input[at..];
            if self.bulk > 0 {
                let taken = self.bulk.min(rest.len() as u64);
                // The CR LF of a bulk string is checked even if it arrives in pieces.
                for place in self.bulk.saturating_sub(taken)..self.bulk.min(2) {
                    let byte = rest[(self.bulk - 1 - place) as usize];
                    if byte != if place == 1 { b'\r' } else { b'\n' } {
                        return Err(Malformed("expected CR LF after a bulk string"));
                    }
                }
                self.bulk -= taken;
                at += taken as usize;
                if self.bulk > 0 {
                    return more(self, at);
                }
                if self.ends() {
                    return Ok(self.found(at));
                }
                continue;
            }
            let Some(&kind) = rest.first() else { return more(self, at) };
            let Some((text, taken)) = line(&rest[1..], LONGEST_LINE)? else {
                return more(self, at);
            };
            if !self.started {
                (self.started, self.push) = (true, kind == b'>');
            } else if kind == b'>' {
                return Err(Malformed("a push inside a reply"));
            }
            at += 1 + taken;
            if self.element(kind, text)? && self.ends() {
                return Ok(self.found(at));
            }
        }
    }

    /// Handles the first line of an element. Returns whether the element is complete.
    fn element(&mut self, kind: u8, text: &[u8]) -> Result<bool, Malformed> {
        let length = || super::line::integer(text).ok_or(Malformed("a length is not a number"));
        match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => Ok(true),
            b'$' | b'=' | b'!' => match length()? {
                -1 if kind == b'$' => Ok(true),
                bytes @ 0.. => {
                    self.bulk = bytes as u64 + 2;
                    Ok(false)
                }
                _ => Err(Malformed("a length is negative")),
            },
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                let elements = match length()? {
                    -1 if kind == b'*' => return Ok(true),
                    count @ 0.. if matches!(kind, b'%' | b'|') => count as u64 * 2,
                    count @ 0.. => count as u64,
                    _ => return Err(Malformed("a length is negative")),
                };
                if self.open.len() >= MAX_NESTING {
                    return Err(Malformed("a reply is nested too deeply"));
                }
                if kind == b'|' {
                    // An attribute is not an element itself: the element after it counts.
                    if self.attribute.is_some() {
                        return Err(Malformed("an attribute of an attribute"));
                    }
                    if elements > 0 {
                        self.attribute = Some(self.open.len());
                        self.open.push(elements);
                    }
                    return Ok(false);
                }
                if elements == 0 {
                    return Ok(true);
                }
                self.open.push(elements);
                Ok(false)
            }
            _ => Err(Malformed("a reply has an unknown type")),
        }
    }

    /// Called when an element is complete. Returns whether the reply is.
    fn ends(&mut self) -> bool {
        while let Some(left) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                return false;
            }
            self.open.pop();
            if self.attribute == Some(self.open.len()) {
                self.attribute = None;
                return false;
            }
        }
        true
    }

    fn found(&mut self, bytes: usize) -> Found {
        self.started = false;
        Found { bytes, whole: true, push: self.push }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes bytes that arrive in these pieces. Returns the length of each reply, and whether it
    /// is a push.
    fn ends(bytes: &[u8], cuts: &[usize]) -> Result<Vec<(usize, bool)>, Malformed> {
        let (mut replies, mut held, mut ends, mut length) =
            (Replies::default(), Vec::new(), Vec::new(), 0);
        let (mut rest, mut cuts) = (bytes, cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            held.extend_from_slice(piece);
            rest = later;
            loop {
                let Found { bytes, whole, push } = replies.next(&held)?;
                held.drain(..bytes);
                length += bytes;
                if whole {
                    ends.push((std::mem::take(&mut length), push));
                } else {
                    break;
                }
            }
        }
        assert!(replies.bulk == 0 || held.is_empty(), "a bulk string must pass in pieces");
        Ok(ends)
    }

    /// A random reply.
    fn reply() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "[a-z ]{0,9}".prop_map(|text| format!("+{text}\r\n")),
            "[A-Z ]{0,9}".prop_map(|text| format!("-{text}\r\n")),
            any::<i64>().prop_map(|number| format!(":{number}\r\n")),
            Just("$-1\r\n".to_string()),
            Just("*-1\r\n".to_string()),
            Just("_\r\n".to_string()),
            Just("#t\r\n".to_string()),
            Just(",1.5\r\n".to_string()),
            Just("(12345678901234567890\r\n".to_string()),
            "[a-z\r\n]{0,40}".prop_map(|text| format!("${}\r\n{text}\r\n", text.len())),
            "[a-z]{0,9}".prop_map(|text| format!("={}\r\ntxt:{text}\r\n", text.len() + 4)),
            "[a-z]{0,9}".prop_map(|text| format!("!{}\r\n{text}\r\n", text.len())),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let some = |most| proptest::collection::vec(inner.clone(), 0..most);
            prop_oneof![
                some(5).prop_map(|all| format!("*{}\r\n{}", all.len(), all.concat())),
                some(5).prop_map(|all| format!("~{}\r\n{}", all.len(), all.concat())),
                (some(4)).prop_map(|all| {
                    let twice: String = all.iter().map(|one| format!("+k\r\n{one}")).collect();
                    format!("%{}\r\n{twice}", all.len())
                }),
                (inner.clone()).prop_map(|one| format!("|1\r\n+ttl\r\n:5\r\n{one}")),
            ]
        })
    }

    /// Returns whether no attribute directly precedes another one. A reply with two in a row is
    /// malformed, but the strategy generates some.
    fn fits(reply: &str) -> bool {
        !reply.contains("|1\r\n+ttl\r\n:5\r\n|1")
    }

    proptest! {
        #[test]
        fn finds_the_end_of_each_reply(
            all in proptest::collection::vec((reply(), any::<bool>()), 1..6),
            cuts in proptest::collection::vec(1usize..60, 1..20),
        ) {
            prop_assume!(all.iter().all(|(reply, _)| fits(reply)));
            let all: Vec<(String, bool)> = all
                .into_iter()
                .map(|(one, push)| (if push { format!(">2\r\n+message\r\n{one}") } else { one }, push))
                .collect();
            let bytes: String = all.iter().map(|(one, _)| one.as_str()).collect();
            let expected: Vec<_> = all.iter().map(|(one, push)| (one.len(), *push)).collect();
            prop_assert_eq!(ends(bytes.as_bytes(), &cuts), Ok(expected.clone()));
            prop_assert_eq!(ends(bytes.as_bytes(), &[usize::MAX]), Ok(expected));
        }
    }

    #[test]
    fn refuses_malformed_replies() {
        for wrong in [
            &b"x\r\n"[..],
            b"$x\r\n",
            b"$-2\r\n",
            b"=-1\r\n",
            b"*-2\r\n",
            b"%-1\r\n",
            b"$1\r\nab\r\n",
            b"$1\r\na\rx",
            b"+a\rb\r\n",
            b"*1\r\n>1\r\n+a\r\n",
            b"|1\r\n+a\r\n|1\r\n+a\r\n+b\r\n+c\r\n",
            &b"*1\r\n".repeat(MAX_NESTING + 1),
        ] {
            for cut in [1, usize::MAX] {
                assert!(ends(wrong, &[cut]).is_err(), "{}", wrong.escape_ascii());
            }
        }
        let deepest = [b"*1\r\n".repeat(MAX_NESTING), b"+\r\n".to_vec()].concat();
        assert_eq!(ends(&deepest, &[1]), Ok(vec![(deepest.len(), false)]));
    }

    #[test]
    fn a_large_reply_is_not_held() {
        let mut replies = Replies::default();
        let found = replies.next(b"$1000000000\r\nabc").unwrap();
        assert_eq!(found, Found { bytes: 16, whole: false, push: false });
        assert_eq!(replies.next(&[7; 1000]).unwrap().bytes, 1000);
    }
}
