//! Replies that are known to the byte, in any protocol. Received bytes are compared with the
//! script's bytes in memory, however many replies they contain.

use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    script::Script,
    text::{line, printable, unsolicited},
    time::Nanos,
};
use regatta_record::Exchange;

/// Exchanges whose exact replies are in the script.
#[derive(Debug)]
pub struct Exact {
    script: Script,
}

impl Exact {
    /// Creates a checker for a closed script.
    pub fn new(script: Script) -> Self {
        Exact { script }
    }

    /// End of the replies to requests that the server can have read. A reply to a request that is
    /// not completely written is unsolicited.
    #[inline]
    fn owed_to(&self, cursor: &Cursor) -> u32 {
        self.script.begin(cursor.owed_to(&self.script)).reply
    }

    /// Describes the exchange that the mismatching bytes belong to.
    #[cold]
    fn explain(&self, cursor: &Cursor, bytes: &[u8]) -> Box<Exchange> {
        let Exact { script } = self;
        let owed = script.replies(cursor.checked_to, self.owed_to(cursor));
        let right = bytes.iter().zip(owed).take_while(|(data, due)| data == due).count();
        let at = cursor.checked_to + right as u32;
        if right == owed.len() {
            let owed = cursor.owed_to(script) - cursor.answered;
            let received = printable(line(&bytes[right..]));
            return Box::new(unsolicited(cursor.last_request(script), received, owed));
        }
        let exchange = script.exchange_of_reply(at);
        let begin = script.begin(exchange).reply;
        let mut received = script.replies(begin, at).to_vec();
        received.extend_from_slice(line(&bytes[right..]));
        Box::new(Exchange {
            sent: printable(script.request(exchange)),
            expected: printable(script.reply(exchange)),
            received: printable(&received),
            reply_index: (exchange - cursor.answered).into(),
        })
    }
}

impl Dialect for Exact {
    type ThreadState = ();
    type ConnectionState = ();

    #[inline]
    fn script(&self) -> &Script {
        &self.script
    }

    fn desk(&self, _: fn() -> Nanos) {}

    fn talk(&self, _: u32) {}

    #[inline]
    fn receive(
        &self,
        at: At<'_, Self>,
        data: &[u8],
        _: Nanos,
        _: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        let At { cursor, .. } = at;
        let to = cursor.checked_to + data.len() as u32;
        let is_owed = to <= self.owed_to(cursor);
        if !is_owed || self.script.replies(cursor.checked_to, to) != data {
            return Err(self.explain(cursor, data));
        }
        cursor.checked_to = to;
        let (before, most) = (cursor.answered, cursor.answered + cursor.owed());
        while cursor.answered < most && self.script.begin(cursor.answered + 1).reply <= to {
            cursor.answered += 1;
        }
        let complete = cursor.answered - before;
        cursor.wrap(&self.script);
        Ok(complete)
    }

    fn unfinished(&self, cursor: &Cursor, _: &()) -> Option<Exchange> {
        let at = cursor.answered;
        let data = self.script.replies(self.script.begin(at).reply, cursor.checked_to);
        (cursor.owed() > 0 && !data.is_empty()).then(|| Exchange {
            sent: printable(self.script.request(at)),
            expected: printable(self.script.reply(at)),
            received: printable(data),
            reply_index: 0,
        })
    }
}

#[cfg(test)]
mod tests;
