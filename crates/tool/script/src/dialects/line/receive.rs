//! Checks replies that are not all known to the byte: splits received bytes at newlines and checks line
//! by line. A partial line is kept until the rest of it arrives.

use super::patterns::Patterns;
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    script::Script,
    text::{line, printable, unsolicited},
    time::Nanos,
};
use regatta_record::Exchange;

/// Exchanges of lines, and the patterns of their replies.
#[derive(Debug)]
pub struct Lines {
    script: Script,
    patterns: Patterns,
}

/// A partial line. Its capacity is reused for the next one.
#[derive(Debug, Default)]
pub struct Part(Vec<u8>);

impl Lines {
    /// Creates the dialect of a closed script.
    pub(super) fn new(script: Script, patterns: Patterns) -> Self {
        Lines { script, patterns }
    }

    /// Describes the line that does not match, and the expected line.
    #[cold]
    fn explain(&self, cursor: &Cursor, part: &Part, bytes: &[u8]) -> Box<Exchange> {
        let Lines { script, patterns } = self;
        let owed_to = cursor.owed_to(script);
        let data = [&part.0, bytes].concat();
        let (mut at, mut rest) = (cursor.answered(), &data[..]);
        let wrong = loop {
            let line = line(rest);
            let fits = |text: &[u8]| patterns.fits(at, text, script.reply(at));
            if at >= owed_to || !line.strip_suffix(b"\n").is_some_and(fits) {
                break line;
            }
            at += 1;
            rest = &rest[line.len()..];
        };
        let reply_index = at - cursor.answered();
        let received = printable(wrong);
        if at >= owed_to {
            return Box::new(unsolicited(cursor.last_request(script), received, reply_index));
        }
        let mut expected = patterns.describe(at, &printable(script.reply(at)));
        if wrong.len() > patterns.longest() {
            expected += &format!(" (at most {} bytes of it)", patterns.longest());
        }
        let sent = printable(script.request(at));
        Box::new(Exchange { sent, expected, received, reply_index: reply_index.into() })
    }

    /// Returns how many replies the received bytes complete. Returns `None` if they are wrong, and
    /// changes nothing.
    fn take(&self, cursor: &mut Cursor, part: &mut Part, bytes: &[u8]) -> Option<u32> {
        let Lines { script, patterns } = self;
        let owed_to = cursor.owed_to(script);
        let (mut at, mut rest) = (cursor.answered(), bytes);
        let part = &mut part.0;
        let came_before = part.len();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let right = at < owed_to
                && if at == cursor.answered() && came_before > 0 {
                    part.extend_from_slice(&rest[..end]);
                    let fits = patterns.fits(at, part, script.reply(at));
                    part.truncate(came_before);
                    fits
                } else {
                    patterns.fits(at, &rest[..end], script.reply(at))
                };
            if !right {
                return None;
            }
            at += 1;
            rest = &rest[end + 1..];
        }
        let complete = at - cursor.answered();
        if !rest.is_empty() {
            let before = if complete == 0 { came_before } else { 0 };
            // A line that is too long is not kept beyond its earlier bytes.
            let fits = at < owed_to && before + rest.len() <= patterns.longest() && {
                part.extend_from_slice(rest);
                let line = &part[part.len() - rest.len() - before..];
                patterns.may_fit(at, line, script.reply(at))
            };
            if !fits {
                part.truncate(came_before);
                return None;
            }
        }
        if complete > 0 {
            part.drain(..came_before);
        }
        cursor.answer(complete, script);
        Some(complete)
    }
}

impl Dialect for Lines {
    type ThreadState = ();
    type ConnectionState = Part;

    #[inline]
    fn script(&self) -> &Script {
        &self.script
    }

    fn desk(&self, _: fn() -> Nanos) {}

    fn talk(&self, _: u32) -> Part {
        Part::default()
    }

    fn receive(
        &self,
        at: At<'_, Self>,
        data: &[u8],
        _: Nanos,
        _: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        let At { cursor, talk, .. } = at;
        self.take(cursor, talk, data).ok_or_else(|| self.explain(cursor, talk, data))
    }

    fn unfinished(&self, cursor: &Cursor, Part(data): &Part) -> Option<Exchange> {
        let Lines { script, patterns } = self;
        let at = cursor.answered();
        (cursor.owed() > 0 && !data.is_empty()).then(|| Exchange {
            sent: printable(script.request(at)),
            expected: patterns.describe(at, &printable(script.reply(at))),
            received: printable(data),
            reply_index: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::patterns::Expectation;
    use super::*;
    use crate::{
        exact::Exact,
        pieces,
        script::{Conversations, Script},
    };
    use proptest::prelude::*;
    use regex::bytes::Regex;

    const PIPELINE: u32 = 20;
    /// Shorter than the pipeline, so the requests in flight span the script more than once.
    const REPLIES: [&str; 8] = ["0", "a", "bb", "-17", "x y", "", "hello", "12345678901234567890"];

    /// Lines whose replies have the patterns of `due`. The n-th regular expression matches only the
    /// n-th reply.
    fn patterns(due: impl Fn(u16) -> Expectation) -> Lines {
        let anchored = |text: &str| Regex::new(&format!(r"\A(?:{})\z", regex::escape(text)));
        let regexes = REPLIES.map(|text| (format!("/{text}/"), anchored(text).unwrap()));
        let mut script = Script::new(Conversations::Each(1));
        let mut patterns = Patterns::new(regexes, 30);
        for (n, reply) in REPLIES.iter().enumerate() {
            let due = due(n as u16);
            let text = if matches!(due, Expectation::Regex(_)) { "" } else { reply };
            script.push(format!("{n}\n").as_bytes(), text.as_bytes());
            patterns.push(due);
        }
        script.close(PIPELINE as usize).unwrap();
        Lines::new(script, patterns)
    }

    /// The same replies, compared as memory.
    fn exact() -> Exact {
        let mut script = Script::new(Conversations::Each(1));
        for (n, reply) in REPLIES.iter().enumerate() {
            let (request, reply) = (format!("{n}\n"), format!("{reply}\n"));
            script.push(request.as_bytes(), reply.as_bytes());
        }
        script.close(PIPELINE as usize).unwrap();
        Exact::new(script)
    }

    fn right(start: u32, k: u32) -> Vec<u8> {
        let reply = |i: u32| format!("{}\n", REPLIES[i as usize % REPLIES.len()]);
        (start..start + k).flat_map(|i| reply(i).into_bytes()).collect()
    }

    /// A cursor at `start`, with `k` requests written.
    fn asked(script: &Script, start: u32, k: u32) -> Cursor {
        let mut cursor = Cursor::new(script, start);
        cursor.ask(k);
        cursor.wrote(cursor.unsent(script).len());
        cursor
    }

    /// Returns how many replies were correct, or the exchange that was not.
    fn verdict<D: Dialect<ThreadState = ()>>(
        dialect: &D,
        (start, k): (u32, u32),
        stream: &[u8],
        cuts: &[usize],
    ) -> Result<u64, Box<Exchange>> {
        let (mut cursor, mut talk) = (asked(dialect.script(), start, k), dialect.talk(0));
        let complete = pieces::receive(stream, cuts, |data| {
            let at = At { cursor: &mut cursor, talk: &mut talk, desk: &mut () };
            dialect.receive(at, data, 0, &mut ())
        })?;
        assert_eq!(u64::from(cursor.owed()), u64::from(k) - complete);
        Ok(complete)
    }

    /// A change to a stream of replies.
    #[derive(Clone, Debug)]
    enum Change {
        Nothing,
        Replaced(prop::sample::Index, u8),
        Inserted(prop::sample::Index, u8),
        Removed(prop::sample::Index),
        Appended(&'static [u8]),
    }

    fn change() -> impl Strategy<Value = Change> {
        let byte = || prop_oneof![Just(b'\n'), Just(b'0'), any::<u8>()];
        let at = any::<prop::sample::Index>;
        prop_oneof![
            Just(Change::Nothing),
            (at(), byte()).prop_map(|(at, byte)| Change::Replaced(at, byte)),
            (at(), byte()).prop_map(|(at, byte)| Change::Inserted(at, byte)),
            at().prop_map(Change::Removed),
            prop::sample::select(vec![&b"\n"[..], b"0\n", b"0"]).prop_map(Change::Appended),
        ]
    }

    fn changed(mut stream: Vec<u8>, change: &Change) -> Vec<u8> {
        let length = stream.len();
        match change {
            Change::Nothing => {}
            Change::Replaced(at, byte) => stream[at.index(length)] = *byte,
            Change::Inserted(at, byte) => stream.insert(at.index(length), *byte),
            Change::Removed(at) => {
                stream.remove(at.index(length));
            }
            Change::Appended(bytes) => stream.extend_from_slice(bytes),
        }
        stream
    }

    proptest! {
        #[test]
        fn agrees_with_comparing_memory_however_replies_are_split(
            asked in (0..REPLIES.len() as u32, 1..=PIPELINE),
            change in change(),
            cuts in prop::collection::vec(1..40_usize, 1..40),
        ) {
            let stream = changed(right(asked.0, asked.1), &change);
            let index = |verdict: Result<u64, Box<Exchange>>| verdict.map_err(|e| e.reply_index);
            let exact = index(verdict(&exact(), asked, &stream, &cuts));
            let lines = verdict(&patterns(|_| Expectation::Exact), asked, &stream, &cuts);
            prop_assert_eq!(index(lines), exact);
            match (index(verdict(&patterns(Expectation::Regex), asked, &stream, &cuts)), exact) {
                // Whether a line matches a regular expression is not known before it ends.
                (Ok(right), Err(wrong)) => {
                    prop_assert!(right == wrong && !stream.ends_with(b"\n"));
                }
                (regex, exact) => prop_assert_eq!(regex, exact),
            }
        }

        #[test]
        fn accepts_matching_prefixes_however_replies_are_split(
            (start, k) in (0..REPLIES.len() as u32, 1..=PIPELINE),
            after in "[ -~]{0,10}",
            cuts in prop::collection::vec(1..40_usize, 1..40),
            wrong in any::<prop::sample::Index>(),
        ) {
            let script = patterns(|_| Expectation::Prefix);
            let right = String::from_utf8(right(start, k)).unwrap().replace('\n', &format!("{after}\n"));
            prop_assert_eq!(verdict(&script, (start, k), right.as_bytes(), &cuts), Ok(k.into()));

            let wrong = wrong.index(k as usize);
            if REPLIES[(start as usize + wrong) % REPLIES.len()].is_empty() {
                return Ok(()); // Every line starts with the empty text.
            }
            let mut lines: Vec<String> = right.lines().map(|line| format!("{line}\n")).collect();
            lines[wrong].insert(0, '?');
            let exchange = verdict(&script, (start, k), lines.concat().as_bytes(), &cuts).unwrap_err();
            prop_assert_eq!(exchange.reply_index, wrong as u64);
            prop_assert!(exchange.received.starts_with('?'));
        }
    }

    #[test]
    fn reports_a_wrong_reply_with_the_expected_one() {
        let report = |lines: &Lines, start: u32, stream: &[u8], cuts: &[usize]| {
            let exchange = verdict(lines, (start, 2), stream, cuts).unwrap_err();
            let Exchange { sent, expected, received, reply_index } = *exchange;
            (sent, expected, received, reply_index)
        };
        let is = |sent: &str, expected: &str, received: &str, index: u64| {
            (sent.to_owned(), expected.to_owned(), received.to_owned(), index)
        };
        for cuts in [&[1][..], &[3], &[100]] {
            let prefix = patterns(|_| Expectation::Prefix);
            let beginning = is("3\\n", "a line starting with -17", "-18\\n", 1);
            assert_eq!(report(&prefix, 2, b"bbb\n-18\n", &[100]), beginning);
            let regex = patterns(Expectation::Regex);
            let matching = is("3\\n", "a line matching /-17/", "-170\\n", 1);
            assert_eq!(report(&regex, 2, b"bb\n-170\nx", cuts), matching);
            let exact = patterns(|_| Expectation::Exact);
            assert_eq!(report(&exact, 2, b"b\n", cuts), is("2\\n", "bb\\n", "b\\n", 0));
            let unsolicited = report(&regex, 0, b"0\na\nmore\n", cuts);
            assert_eq!((unsolicited.0.as_str(), unsolicited.3), ("1\\n", 2));
            assert!(unsolicited.1.starts_with("nothing more"), "{}", unsolicited.1);
        }
    }

    #[test]
    fn accepts_a_line_of_the_maximum_length_and_rejects_a_longer_one() {
        let script = patterns(|_| Expectation::Prefix);
        let line = |length: usize| [&b"0".repeat(length)[..], b"\n"].concat();
        for cuts in [&[1][..], &[7], &[100]] {
            assert_eq!(verdict(&script, (0, 1), &line(30), cuts), Ok(1));
            let exchange = verdict(&script, (0, 1), &line(31), cuts).unwrap_err();
            assert_eq!(exchange.expected, "a line starting with 0 (at most 30 bytes of it)");
            // A line without an end is wrong as soon as it is too long, so it is not buffered further.
            assert!(verdict(&script, (0, 1), &b"0".repeat(31), cuts).is_err());
        }
    }

    #[test]
    fn a_reply_to_a_half_written_request_is_unsolicited() {
        let lines = patterns(Expectation::Regex);
        let (mut cursor, mut talk) = (Cursor::new(&lines.script, 0), lines.talk(0));
        cursor.ask(2);
        cursor.wrote(cursor.unsent(&lines.script).len() - 1);
        let mut receive = |cursor: &mut Cursor, data: &[u8]| {
            let at = At { cursor, talk: &mut talk, desk: &mut () };
            lines.receive(at, data, 0, &mut ()).map_err(|_| ())
        };
        assert_eq!(receive(&mut cursor, b"0\na\n"), Err(()));
        assert_eq!(receive(&mut cursor, b"0\n"), Ok(1));
        assert_eq!(receive(&mut cursor, b"a"), Err(()));
        cursor.wrote(1);
        assert_eq!(receive(&mut cursor, b"a\n"), Ok(1));
    }
}
