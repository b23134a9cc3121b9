//! The second way to check replies, for those that are not known to the byte: cut at newlines and
//! looked at line by line. A line that came in part is kept until the rest is there.

use super::{Cursor, Wrong, line, printable};
use crate::{patterns::Patterns, script::Script};
use regatta_record::Exchange;

/// The beginning of a reply line whose end has not come. Its room is kept for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    bytes: Vec<u8>,
}

impl Cursor {
    /// As [`Cursor::receive`], where the script has patterns.
    pub(super) fn receive_lines(
        &mut self,
        bytes: &[u8],
        script: &Script,
        patterns: &Patterns,
    ) -> Result<u32, Wrong> {
        let owed_to = self.owed_exchanges(script);
        let (mut at, mut rest) = (self.answered, bytes);
        let came_before = self.part.as_ref().map_or(0, |part| part.bytes.len());
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let right = at < owed_to
                && match &mut self.part {
                    Some(part) if at == self.answered && came_before > 0 => {
                        part.bytes.extend_from_slice(&rest[..end]);
                        let fits = patterns.fits(at, &part.bytes, script.reply(at));
                        part.bytes.truncate(came_before);
                        fits
                    }
                    _ => patterns.fits(at, &rest[..end], script.reply(at)),
                };
            if !right {
                return Err(Wrong);
            }
            at += 1;
            rest = &rest[end + 1..];
        }
        let complete = at - self.answered;
        if !rest.is_empty() {
            let part = self.part.get_or_insert_default();
            let before = if complete == 0 { came_before } else { 0 };
            // Of a line that is too long no more is kept than what came before.
            let fits = at < owed_to && before + rest.len() <= patterns.longest() && {
                part.bytes.extend_from_slice(rest);
                let line = &part.bytes[part.bytes.len() - rest.len() - before..];
                patterns.may_fit(at, line, script.reply(at))
            };
            if !fits {
                part.bytes.truncate(came_before);
                return Err(Wrong);
            }
        }
        if complete > 0
            && let Some(part) = &mut self.part
        {
            part.bytes.drain(..came_before);
        }
        self.answered = at;
        self.checked_to = script.begin(at).reply;
        if at >= script.count() {
            self.wrap(script);
        }
        Ok(complete)
    }

    /// As [`Cursor::explain`], where the script has patterns.
    pub(super) fn explain_lines(
        &self,
        bytes: &[u8],
        script: &Script,
        patterns: &Patterns,
        replies: u64,
    ) -> Exchange {
        let owed_to = self.owed_exchanges(script);
        let before = self.part.as_ref().map_or(&[][..], |part| &part.bytes);
        let came = [before, bytes].concat();
        let (mut at, mut rest) = (self.answered, &came[..]);
        let wrong = loop {
            let line = line(rest);
            let fits = |text: &[u8]| patterns.fits(at, text, script.reply(at));
            if at >= owed_to || !line.strip_suffix(b"\n").is_some_and(fits) {
                break line;
            }
            at += 1;
            rest = &rest[line.len()..];
        };
        let reply_index = replies + u64::from(at - self.answered);
        let received = printable(wrong);
        if at >= owed_to {
            return self.unasked_for(script, reply_index, received);
        }
        let mut expected = patterns.describe(at, &printable(script.reply(at)));
        if wrong.len() > patterns.longest() {
            expected += &format!(" (at most {} bytes of it)", patterns.longest());
        }
        Exchange { sent: printable(script.request(at)), expected, received, reply_index }
    }

    /// As [`Cursor::unfinished`], where the script has patterns.
    pub(super) fn unfinished_line(
        &self,
        script: &Script,
        patterns: &Patterns,
        replies: u64,
    ) -> Option<Exchange> {
        let came = self.part.as_ref().map(|part| &part.bytes).filter(|came| !came.is_empty())?;
        Some(Exchange {
            sent: printable(script.request(self.answered)),
            expected: patterns.describe(self.answered, &printable(script.reply(self.answered))),
            received: printable(came),
            reply_index: replies,
        })
    }

    /// First exchange to which no reply may come yet: see [`Cursor::owed_to`].
    fn owed_exchanges(&self, script: &Script) -> u32 {
        if self.written_to == script.begin(self.asked).request {
            return self.asked;
        }
        self.whole_asked(script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        patterns::Due,
        script::{Conversations, Script},
    };
    use proptest::prelude::*;
    use regex::bytes::Regex;

    const PIPELINE: u32 = 20;
    /// Shorter than the pipeline: what is outstanding goes round the script more than once.
    const REPLIES: [&str; 8] = ["0", "a", "bb", "-17", "x y", "", "hello", "12345678901234567890"];

    /// Every reply as `due` says. The n-th regular expression matches the n-th reply only.
    fn patterns(due: impl Fn(u16) -> Due) -> Script {
        let anchored = |text: &str| Regex::new(&format!(r"\A(?:{})\z", regex::escape(text)));
        let regexes = REPLIES.map(|text| (format!("/{text}/"), anchored(text).unwrap()));
        let mut script = Script::new(Conversations::Each(1), Some(Patterns::new(regexes, 30)));
        for (n, reply) in REPLIES.iter().enumerate() {
            let due = due(n as u16);
            let text = if matches!(due, Due::Regex(_)) { "" } else { reply };
            script.push(format!("{n}\n").as_bytes(), text.as_bytes(), due);
        }
        script.close(PIPELINE as usize).unwrap();
        script
    }

    /// The same replies, to be compared as memory.
    fn exact() -> Script {
        let mut script = Script::new(Conversations::Each(1), None);
        for (n, reply) in REPLIES.iter().enumerate() {
            let (request, reply) = (format!("{n}\n"), format!("{reply}\n"));
            script.push(request.as_bytes(), reply.as_bytes(), Due::Exact);
        }
        script.close(PIPELINE as usize).unwrap();
        script
    }

    fn right(start: u32, k: u32) -> Vec<u8> {
        let reply = |i: u32| format!("{}\n", REPLIES[i as usize % REPLIES.len()]);
        (start..start + k).flat_map(|i| reply(i).into_bytes()).collect()
    }

    /// At `start`, with `k` requests written.
    fn asked(script: &Script, start: u32, k: u32) -> Cursor {
        let mut cursor = Cursor::new(script, start);
        cursor.ask(k);
        cursor.wrote(cursor.unsent(script).len());
        cursor
    }

    /// How many replies were right, or which exchange was not.
    fn verdict(
        script: &Script,
        (start, k): (u32, u32),
        mut stream: &[u8],
        cuts: &[usize],
    ) -> Result<u64, Box<Exchange>> {
        let (mut cursor, mut complete) = (asked(script, start, k), 0);
        let mut cuts = cuts.iter().cycle();
        while !stream.is_empty() {
            let (came, rest) = stream.split_at((*cuts.next().unwrap()).min(stream.len()));
            match cursor.receive(came, script) {
                Ok(n) => complete += u64::from(n),
                Err(Wrong) => return Err(cursor.explain(came, script, complete).into()),
            }
            stream = rest;
        }
        assert_eq!(u64::from(cursor.owed()), u64::from(k) - complete);
        Ok(complete)
    }

    /// What can happen to a stream of replies.
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
        fn however_replies_are_cut_the_verdict_is_that_of_comparing_memory(
            asked in (0..REPLIES.len() as u32, 1..=PIPELINE),
            change in change(),
            cuts in prop::collection::vec(1..40_usize, 1..40),
        ) {
            let stream = changed(right(asked.0, asked.1), &change);
            let index = |verdict: Result<u64, Box<Exchange>>| verdict.map_err(|e| e.reply_index);
            let exact = index(verdict(&exact(), asked, &stream, &cuts));
            let lines = verdict(&patterns(|_| Due::Exact), asked, &stream, &cuts);
            prop_assert_eq!(index(lines), exact);
            match (index(verdict(&patterns(Due::Regex), asked, &stream, &cuts)), exact) {
                // Nothing is known of a line for a regular expression before it ends.
                (Ok(right), Err(wrong)) => {
                    prop_assert!(right == wrong && !stream.ends_with(b"\n"));
                }
                (regex, exact) => prop_assert_eq!(regex, exact),
            }
        }

        #[test]
        fn a_prefix_is_enough_however_replies_are_cut(
            (start, k) in (0..REPLIES.len() as u32, 1..=PIPELINE),
            after in "[ -~]{0,10}",
            cuts in prop::collection::vec(1..40_usize, 1..40),
            wrong in any::<prop::sample::Index>(),
        ) {
            let script = patterns(|_| Due::Prefix);
            let right = String::from_utf8(right(start, k)).unwrap().replace('\n', &format!("{after}\n"));
            prop_assert_eq!(verdict(&script, (start, k), right.as_bytes(), &cuts), Ok(k.into()));

            let wrong = wrong.index(k as usize);
            if REPLIES[(start as usize + wrong) % REPLIES.len()].is_empty() {
                return Ok(()); // Any line begins with nothing.
            }
            let mut lines: Vec<String> = right.lines().map(|line| format!("{line}\n")).collect();
            lines[wrong].insert(0, '?');
            let exchange = verdict(&script, (start, k), lines.concat().as_bytes(), &cuts).unwrap_err();
            prop_assert_eq!(exchange.reply_index, wrong as u64);
            prop_assert!(exchange.received.starts_with('?'));
        }
    }

    #[test]
    fn a_wrong_reply_is_told_with_what_was_due() {
        let told = |script: &Script, start: u32, stream: &[u8], cuts: &[usize]| {
            let exchange = verdict(script, (start, 2), stream, cuts).unwrap_err();
            let Exchange { sent, expected, received, reply_index } = *exchange;
            (sent, expected, received, reply_index)
        };
        let is = |sent: &str, expected: &str, received: &str, index: u64| {
            (sent.to_owned(), expected.to_owned(), received.to_owned(), index)
        };
        for cuts in [&[1][..], &[3], &[100]] {
            let prefix = patterns(|_| Due::Prefix);
            let beginning = is("3\\n", "a line beginning with -17", "-18\\n", 1);
            assert_eq!(told(&prefix, 2, b"bbb\n-18\n", &[100]), beginning);
            let regex = patterns(Due::Regex);
            let matching = is("3\\n", "a line matching /-17/", "-170\\n", 1);
            assert_eq!(told(&regex, 2, b"bb\n-170\nx", cuts), matching);
            let exact = patterns(|_| Due::Exact);
            assert_eq!(told(&exact, 2, b"b\n", cuts), is("2\\n", "bb\\n", "b\\n", 0));
            let unasked = told(&regex, 0, b"0\na\nmore\n", cuts);
            assert_eq!((unasked.0.as_str(), unasked.3), ("1\\n", 2));
            assert!(unasked.1.starts_with("nothing more"), "{}", unasked.1);
        }
    }

    #[test]
    fn a_line_of_the_longest_length_passes_and_one_byte_more_does_not() {
        let script = patterns(|_| Due::Prefix);
        let line = |length: usize| [&b"0".repeat(length)[..], b"\n"].concat();
        for cuts in [&[1][..], &[7], &[100]] {
            assert_eq!(verdict(&script, (0, 1), &line(30), cuts), Ok(1));
            let exchange = verdict(&script, (0, 1), &line(31), cuts).unwrap_err();
            assert_eq!(exchange.expected, "a line beginning with 0 (at most 30 bytes of it)");
            // Without an end it is wrong as soon as it is too long: nothing is heaped up.
            assert!(verdict(&script, (0, 1), &b"0".repeat(31), cuts).is_err());
        }
    }

    #[test]
    fn a_reply_to_a_request_that_is_half_written_is_unasked() {
        let script = patterns(Due::Regex);
        let mut cursor = Cursor::new(&script, 0);
        cursor.ask(2);
        cursor.wrote(cursor.unsent(&script).len() - 1);
        assert_eq!(cursor.receive(b"0\na\n", &script), Err(Wrong));
        assert_eq!(cursor.receive(b"0\n", &script), Ok(1));
        assert_eq!(cursor.receive(b"a", &script), Err(Wrong));
        cursor.wrote(1);
        assert_eq!(cursor.receive(b"a\n", &script), Ok(1));
    }
}
