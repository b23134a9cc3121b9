//! The replies that a member of a hub gets: echoes, and the results of its broadcasts.

use super::{
    afar::Afar,
    message::{Message, Payload, Request},
    receive::Hub,
    roster::few_listeners::Few,
    talk::{ConnectionState, Standing},
};
use crate::{dialect::Heard, time::Nanos};
use regatta_record::Exchange;
use std::sync::atomic::Ordering::Relaxed;

const COPY_FIRST: &str = "the sender's own copy of the broadcast before its result";

impl Hub {
    pub(super) fn take_reply(
        &self,
        talk: &mut ConnectionState,
        reply: Message,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        let is_right = match (talk.asked.front(), reply) {
            (Some(Request::Echo(asked)), Message::Echo(payload)) => *asked == payload,
            (Some(Request::Broadcast(asked)), Message::Result(payload, listeners)) => {
                let is_right = *asked == payload;
                if is_right && !talk.inbox.has(payload.id) {
                    self.came_too_early(talk, text, heard)?;
                } else if let Some(listeners) = listeners.filter(|_| is_right) {
                    self.check_listeners(talk, (payload, listeners), text, heard)?;
                }
                is_right
            }
            _ => false,
        };
        if !is_right {
            return Err(self.terms.wrong(talk, &self.terms.expected(talk), text));
        }
        if self.terms.may_be_lost
            && let Message::Result(payload, _) = reply
        {
            self.is_published(talk, payload.id, heard)?;
        }
        self.answered(talk);
        Ok(())
    }

    /// A result says that a broadcast is published. What members lack whose connections were lost before is missing.
    pub(super) fn is_published(
        &self,
        talk: &ConnectionState,
        id: u64,
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        let Some(missing) = self.roster.publish(id) else { return Ok(()) };
        let received = "no copy for some of them, because the server had closed their connections";
        let expected = format!("a copy for each of {} members", missing.sent.members);
        let deliveries = self.are_missing([missing], heard);
        heard.wrong(self.terms.wrong(talk, &expected, received.as_bytes()), deliveries)
    }

    /// Reports a result that came before the sender's own copy.
    #[cold]
    pub(super) fn came_too_early(
        &self,
        talk: &ConnectionState,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        self.wrong_result(self.terms.wrong(talk, COPY_FIRST, text), 1, heard)
    }

    /// Reports so many wrong results, which are replies all the same. They are no wrong deliveries: a hub with many
    /// members has many more deliveries than results, among which they would be hidden. Only a load that tolerates errors
    /// continues after them.
    #[cold]
    fn wrong_result(
        &self,
        exchange: Box<Exchange>,
        results: u64,
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        heard.wrong(exchange, results)?;
        self.others.wrong_results.fetch_add(results, Relaxed);
        Ok(())
    }

    /// Checks how many listeners a result counts.
    #[inline]
    fn check_listeners(
        &self,
        talk: &ConnectionState,
        (payload, listeners): (Payload, u64),
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        let elsewhere = self.afar.as_ref().map_or(0, Afar::members_elsewhere);
        let own = self.roster.listeners(payload.id).into_inner();
        let [least, most] = [own.0, own.1].map(|own| own.saturating_add(elsewhere));
        if listeners < least || listeners > most {
            let exchange = || {
                let expected = format!("a listenerCount from {least} to {most}");
                self.terms.wrong(talk, &expected, text)
            };
            match (self.roster.closed_for(payload.id, listeners, elsewhere), &self.afar) {
                (Some(closed), _) => self.few.add(closed, talk.now, exchange),
                // A connection was closed meanwhile.
                (None, _) if listeners <= most => {}
                // How many connections there are on other machines is only known to the leader.
                (None, Some(afar)) => afar.counts_more(listeners - most),
                (None, None) => self.wrong_result(exchange(), 1, heard)?,
            }
        }
        if self.few.any() {
            self.report_few(talk.now, heard)?;
        }
        Ok(())
    }

    /// Reports earlier results that counted too few, if the load would have seen a close by now.
    #[cold]
    fn report_few(&self, now: Nanos, heard: &mut impl Heard) -> Result<(), Box<Exchange>> {
        self.wrong_few(now, |results, exchange| self.wrong_result(exchange, results, heard))
    }

    /// Calls `wrong` for these results, with the number of those like it. With members on other machines, the leader
    /// knows how many of them had left, and compares the counts.
    pub(super) fn wrong_few(
        &self,
        now: Nanos,
        mut wrong: impl FnMut(u64, Box<Exchange>) -> Result<(), Box<Exchange>>,
    ) -> Result<(), Box<Exchange>> {
        let seen = self.roster.closed();
        for Few { closed, results, exchange, .. } in self.few.wrong(now, seen) {
            match &self.afar {
                Some(afar) => afar.counts_fewer(closed - seen),
                None => wrong(results, exchange)?,
            }
        }
        Ok(())
    }

    /// Counts the oldest pending request as answered.
    pub(super) fn answered(&self, talk: &mut ConnectionState) {
        if let Some(Request::Echo(_)) = talk.asked.pop_front()
            && self.terms.broadcasts
        {
            self.others.joins.fetch_add(1, Relaxed);
        }
        talk.answered += 1;
        if talk.standing == Standing::New
            && let Some(afar) = &self.afar
        {
            afar.joins(&talk.far);
            if talk.is_away {
                afar.comes_back();
            }
        }
        talk.note_reply(&self.roster);
    }
}
