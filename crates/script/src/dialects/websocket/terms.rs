//! What is asked of a hub, and how; and what went wrong, in words.

use super::{
    adapters::Adapter,
    message::{Message, Request},
    talk::Talk,
};
use crate::text::printable;
use regatta_record::Exchange;

/// What is asked of a hub, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Messages go to every member, not only back to their sender.
    pub broadcasts: bool,
    /// The protocol that it speaks, if not ours.
    pub adapter: Option<Adapter>,
}

impl Terms {
    /// What had to come next.
    pub fn due(self, talk: &Talk) -> String {
        match (talk.asked.front(), self.adapter) {
            (None, Some(adapter)) if adapter.greets() && !talk.is_greeted => {
                "the server's greeting".into()
            }
            (None, _) => {
                "copies of broadcasts alone: every request on this connection has its reply".into()
            }
            (Some(Request::Echo(_)), Some(_)) => "that the member is subscribed".into(),
            (Some(Request::Broadcast(_)), Some(_)) => {
                "a copy of a broadcast, or that this one is done".into()
            }
            (Some(Request::Echo(payload)), None) => Message::Echo(*payload).text(),
            (Some(Request::Broadcast(payload)), None) => Message::Result(*payload, None).text(),
        }
    }

    /// The text of a request; `number` is its own on its connection.
    pub fn sent(self, request: Request, number: u64) -> String {
        match (self.adapter, request) {
            (Some(adapter), _) => printable(adapter.text(request, number).as_bytes()),
            (None, Request::Echo(payload)) => Message::Echo(payload).text(),
            (None, Request::Broadcast(payload)) => Message::Broadcast(payload).text(),
        }
    }

    /// The wrong exchange, in which `text` came.
    #[cold]
    pub fn wrong(self, talk: &Talk, expected: &str, text: &[u8]) -> Box<Exchange> {
        let sent = talk.asked.front().map(|request| self.sent(*request, talk.answered + 1));
        Box::new(Exchange {
            sent: sent.unwrap_or_default(),
            expected: expected.into(),
            received: printable(text),
            reply_index: 0,
        })
    }
}
