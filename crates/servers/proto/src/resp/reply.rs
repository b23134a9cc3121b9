//! The client side: where replies end.

use super::{Malformed, line::length};
use memchr::memchr;

/// Finds the ends of the replies of one connection, without parsing or buffering their contents. A
/// reply of any size and nesting may pass in pieces, and takes no memory.
#[derive(Debug, Default)]
pub struct Replies {
    /// Elements still missing until the current reply ends, of all aggregates together. 0 between
    /// replies.
    missing: u64,
    /// Missing bytes of a bulk string, including its CR LF.
    bulk: u64,
    /// Inside a simple string, an error or a number, whose CR LF is missing.
    in_line: bool,
    /// The current reply is a push.
    push: bool,
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
            let is_complete = if self.bulk > 0 {
                at += self.bulk(rest)?;
                if self.bulk > 0 {
                    return more(self, at);
                }
                true
            } else if self.in_line {
                at += self.line(rest)?;
                if self.in_line {
                    return more(self, at);
                }
                true
            } else {
                let Some(&kind) = rest.first() else { return more(self, at) };
                match kind {
                    b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => {
                        self.begin(kind)?;
                        self.in_line = true;
                        at += 1;
                        false
                    }
                    b'$' | b'=' | b'!' | b'*' | b'~' | b'>' | b'%' | b'|' => {
                        let Some((length, taken)) = length(&rest[1..])? else {
                            return more(self, at);
                        };
                        self.begin(kind)?;
                        at += 1 + taken;
                        self.length(kind, length)?
                    }
                    _ => return Err(Malformed("a reply has an unknown type")),
                }
            };
            if is_complete {
                self.missing -= 1;
                if self.missing == 0 {
                    return Ok(Found { bytes: at, whole: true, push: self.push });
                }
            }
        }
    }

    /// Called at each element, before it counts.
    #[inline]
    fn begin(&mut self, kind: u8) -> Result<(), Malformed> {
        if self.missing == 0 {
            (self.missing, self.push) = (1, kind == b'>');
        } else if kind == b'>' {
            return Err(Malformed("a push inside a reply"));
        }
        Ok(())
    }

    /// Returns how many bytes belong to the current bulk string. Its CR LF is checked even if it
    /// arrives in pieces.
    fn bulk(&mut self, rest: &[u8]) -> Result<usize, Malformed> {
        let taken = self.bulk.min(rest.len() as u64);
        for place in self.bulk.saturating_sub(taken)..self.bulk.min(2) {
            let byte = rest[(self.bulk - 1 - place) as usize];
            if byte != if place == 1 { b'\r' } else { b'\n' } {
                return Err(Malformed("expected CR LF after a bulk string"));
            }
        }
        self.bulk -= taken;
        Ok(taken as usize)
    }

    /// Returns how many bytes belong to the current line. A CR is taken together with its LF.
    #[inline]
    fn line(&mut self, rest: &[u8]) -> Result<usize, Malformed> {
        let Some(end) = memchr(b'\r', rest) else { return Ok(rest.len()) };
        match rest.get(end + 1) {
            None => Ok(end),
            Some(b'\n') => {
                self.in_line = false;
                Ok(end + 2)
            }
            Some(_) => Err(Malformed("expected CR LF at the end of a line")),
        }
    }

    /// Handles the first line of an element that starts with a length. Returns whether the element
    /// is complete.
    fn length(&mut self, kind: u8, length: i64) -> Result<bool, Malformed> {
        if length == -1 && matches!(kind, b'$' | b'*') {
            return Ok(true);
        }
        let length = u64::try_from(length).map_err(|_| Malformed("a length is negative"))?;
        // An attribute is not an element itself: the element after it counts.
        let (elements, is_itself) = match kind {
            b'$' | b'=' | b'!' => {
                self.bulk = length + 2;
                return Ok(false);
            }
            b'|' => (2 * length, false),
            b'%' => (2 * length, true),
            _ => (length, true),
        };
        self.missing =
            self.missing.checked_add(elements).ok_or(Malformed("a reply has too many elements"))?;
        Ok(is_itself)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regatta_testkit::pieces::pieces;

    /// Decodes bytes that arrive in these pieces. Returns the length of each reply, and whether it
    /// is a push.
    fn ends(bytes: &[u8], cuts: &[usize]) -> Result<Vec<(usize, bool)>, Malformed> {
        let (mut replies, mut held, mut ends, mut length) =
            (Replies::default(), Vec::new(), Vec::new(), 0);
        for piece in pieces(bytes, cuts) {
            held.extend_from_slice(piece);
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

    proptest! {
        #[test]
        fn finds_the_end_of_each_reply(
            all in proptest::collection::vec((reply(), any::<bool>()), 1..6),
            cuts in proptest::collection::vec(1usize..60, 1..20),
        ) {
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
            b"*1\r\n|1\r\n+a\r\n+b\r\n>1\r\n+a\r\n",
            b"*000000000000000000000000000000001\r\n",
        ] {
            for cut in [1, usize::MAX] {
                assert!(ends(wrong, &[cut]).is_err(), "{}", wrong.escape_ascii());
            }
        }
        let huge = [&b"*999999999999999999\r\n".repeat(20)[..], b"+\r\n"].concat();
        assert!(ends(&huge, &[usize::MAX]).is_err());
    }

    /// A reply as scripts may return it: nested deeply, with a long line inside.
    fn scripted(depth: usize, kind: &str, length: usize, width: usize) -> String {
        let opening = format!("*{width}\r\n").repeat(depth);
        let line = format!("{kind}{}\r\n", "x".repeat(length));
        let closing = ":1\r\n".repeat(depth * (width - 1));
        format!("{opening}{line}{closing}")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn finds_the_end_of_replies_of_any_size_and_nesting(
            depth in prop_oneof![0usize..4, 60usize..70, 0usize..20_000],
            kind in prop::sample::select(&["+", "-ERR ", "(", ","][..]),
            length in prop_oneof![0usize..9, 65_530usize..65_550, 0usize..300_000],
            width in 1usize..3,
            // Two of each, so that a reply must leave nothing behind.
            cuts in proptest::collection::vec(
                prop_oneof![1usize..4, 1usize..2000, 1usize..200_000], 1..20,
            ),
        ) {
            let reply = scripted(depth, kind, length, width);
            let expected = Ok(vec![(reply.len(), false); 2]);
            let bytes = reply.repeat(2);
            // The first bytes one by one: the kind, the lengths, and the start of a line.
            let mut cuts = cuts;
            cuts.splice(0..0, std::iter::repeat_n(1, 30));
            prop_assert_eq!(ends(bytes.as_bytes(), &cuts), expected.clone());
            prop_assert_eq!(ends(bytes.as_bytes(), &[usize::MAX]), expected);
        }
    }

    #[test]
    fn a_long_line_is_not_held() {
        let mut replies = Replies::default();
        let some = |bytes| Ok(Found { bytes, whole: false, push: false });
        assert_eq!(replies.next(b"+abc"), some(4));
        for _ in 0..100 {
            assert_eq!(replies.next(&[b'x'; 10_000]), some(10_000));
        }
        // A CR stays until its LF has arrived.
        assert_eq!(replies.next(b"y\r"), some(1));
        assert_eq!(replies.next(b"\r\n"), Ok(Found { bytes: 2, whole: true, push: false }));
    }

    #[test]
    fn an_attribute_may_follow_an_attribute() {
        let reply = b"|1\r\n+a\r\n|0\r\n+b\r\n|1\r\n+c\r\n+d\r\n*1\r\n|0\r\n:1\r\n";
        for cut in [1, usize::MAX] {
            assert_eq!(ends(reply, &[cut]), Ok(vec![(reply.len(), false)]));
        }
    }

    #[test]
    fn a_large_reply_is_not_held() {
        let mut replies = Replies::default();
        let found = replies.next(b"$1000000000\r\nabc").unwrap();
        assert_eq!(found, Found { bytes: 16, whole: false, push: false });
        assert_eq!(replies.next(&[7; 1000]).unwrap().bytes, 1000);
    }
}
