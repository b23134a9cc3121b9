//! What is requested from a hub, in which protocol; and descriptions of wrong exchanges.

use super::{
    adapters::Adapter,
    message::{Message, Request},
    talk::ConnectionState,
};
use crate::text::printable;
use regatta_record::Exchange;

/// What is requested from a hub, and in which protocol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Whether messages go to every member instead of only back to their sender.
    pub broadcasts: bool,
    /// The hub's own protocol, if it has one.
    pub adapter: Option<Adapter>,
    /// Whether all members must get one order.
    pub in_one_order: bool,
    /// Whether the hub may announce losses.
    pub may_be_lost: bool,
    /// Whether the load continues after a wrong delivery.
    pub tolerates: bool,
}

impl Terms {
    /// Whether a broadcast may be given up, or no longer be owed, while its copies come.
    #[inline]
    pub fn are_uncertain(self) -> bool {
        self.may_be_lost | self.tolerates
    }

    /// Describes what was expected next.
    pub fn expected(self, talk: &ConnectionState) -> String {
        match (talk.asked.front(), self.adapter) {
            (None, Some(adapter)) if adapter.greets() && !talk.is_greeted => {
                "the server's greeting".into()
            }
            (None, _) => {
                "only copies of broadcasts: every request on this connection has its reply".into()
            }
            (Some(Request::Echo(_)), Some(_)) => "a confirmation of the subscription".into(),
            (Some(Request::Broadcast(_)), Some(_)) => {
                "a copy of a broadcast, or the result of this one".into()
            }
            (Some(Request::Echo(payload)), None) => Message::Echo(*payload).text(),
            (Some(Request::Broadcast(payload)), None) => Message::Result(*payload, None).text(),
        }
    }

    /// Returns the text of a request; `number` is its number on its connection.
    pub fn sent(self, request: Request, number: u64) -> String {
        match (self.adapter, request) {
            (Some(adapter), _) => printable(adapter.text(request, number).as_bytes()),
            (None, Request::Echo(payload)) => Message::Echo(payload).text(),
            (None, Request::Broadcast(payload)) => Message::Broadcast(payload).text(),
        }
    }

    /// Returns the wrong exchange in which `text` was received.
    #[cold]
    pub fn wrong(self, talk: &ConnectionState, expected: &str, text: &[u8]) -> Box<Exchange> {
        let sent = talk.asked.front().map(|request| self.sent(*request, talk.answered + 1));
        Box::new(Exchange {
            sent: sent.unwrap_or_default(),
            expected: expected.into(),
            received: printable(text),
            reply_index: 0,
        })
    }
}
