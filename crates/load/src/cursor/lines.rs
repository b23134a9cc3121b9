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
            let (sent, expected) = (String::new(), String::new());
            return Exchange { sent, expected, received, reply_index };
        }
        let mut expected = patterns.describe(at, &printable(script.reply(at)));
        if wrong.len() > patterns.longest() {
            expected += &format!(" (at most {} bytes of it)", patterns.longest());
        }
        Exchange { sent: printable(script.request(at)), expected, received, reply_index }
    }

    /// First exchange to which no reply may come yet: see [`Cursor::owed_to`].
    fn owed_exchanges(&self, script: &Script) -> u32 {
        if self.written_to == script.begin(self.asked).request {
            return self.asked;
        }
        self.whole_asked(script)
    }
}
