//! Losses that a hub may announce, if the load permits that: a gap, and a broadcast whose result says that it is
//! not published, or that this is not known. They are counted apart. What was lost without an announcement stays
//! an error, as what came although it was announced as not published.

use super::{
    announced::Wrong,
    copies::Taken,
    member::DeliveryError,
    message::{Notice, Payload, Request},
    order::Place,
    receive::Hub,
    roster::{Delivered, Fate, Receiver, Settled},
    talk::ConnectionState,
};
use crate::{dialect::Heard, time::Nanos};
use regatta_record::Exchange;
use std::{mem, sync::atomic::Ordering::*};

/// A copy of a broadcast that reaches nobody.
const REFUSED: (Wrong, &str) =
    (Wrong::Unsent, "no copy of a broadcast that is not published, as its result says");

impl Hub {
    /// Handles a message that is no reply and no copy.
    #[cold]
    pub(super) fn take_loss(
        &self,
        talk: &mut ConnectionState,
        text: &[u8],
        heard: &mut impl Heard,
        replies: &mut u32,
    ) -> Result<(), Box<Exchange>> {
        let notice = Notice::read(text);
        // Before the first broadcast there is nothing to lose: a hub has connected to its broker for the first time.
        if notice == Some(Notice::Gap) && self.afar.is_none() && self.roster.next() == 0 {
            return Ok(());
        }
        if !self.terms.may_be_lost {
            return Err(self.terms.wrong(talk, &self.terms.expected(talk), text));
        }
        let (payload, fate) = match notice {
            Some(Notice::Gap) => {
                self.losses.gaps.fetch_add(1, Relaxed);
                let missed = talk.inbox.gap(&self.roster);
                self.losses.missed.fetch_add(missed, Relaxed);
                // If nothing is missing, the order continues.
                if missed > 0 || !talk.inbox.is_complete(&self.roster) {
                    talk.place = talk.place.after_gap();
                }
                return Ok(());
            }
            Some(Notice::NotPublished(payload)) => (payload, Fate::NotPublished),
            Some(Notice::Unknown(payload)) => (payload, Fate::Unknown),
            None => return Err(self.terms.wrong(talk, &self.terms.expected(talk), text)),
        };
        if talk.asked.front() != Some(&Request::Broadcast(payload)) {
            return Err(self.terms.wrong(talk, &self.terms.expected(talk), text));
        }
        let Settled { received, others, missed } = self.roster.settle(payload.id, fate);
        let got = received + others;
        if fate == Fate::NotPublished && got > 0 {
            let expected = format!("the result of a published broadcast: {got} members got it");
            // Each of these copies is wrong; they were taken for deliveries when they came.
            self.wrong.add(Wrong::Unsent, got);
            heard.wrong(self.terms.wrong(talk, &expected, text), got)?;
        }
        match fate {
            Fate::NotPublished => self.losses.not_published.fetch_add(1, Relaxed),
            Fate::Owed | Fate::Unknown => {
                self.losses.unknown_deliveries.fetch_add(received, Relaxed);
                self.losses.unknown.fetch_add(1, Relaxed)
            }
        };
        // Not published, or counted as unknown: the members that got a gap before have not missed it.
        self.losses.missed.fetch_sub(missed, Relaxed);
        talk.refused.push_back(*replies);
        self.answered(talk);
        *replies += 1;
        Ok(())
    }

    /// Handles a copy of a broadcast that may have been announced as lost, or that may be given up.
    pub(super) fn take_uncertain(
        &self,
        talk: &mut ConnectionState,
        payload: Payload,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        let Payload { id, at, .. } = payload;
        if self.roster.fate(id) == Some(Fate::NotPublished) {
            return self.refused(talk, id, text, heard);
        }
        if talk.inbox.take_excused(id) {
            return self.take_late(talk, payload, text, heard);
        }
        talk.inbox.pass_over(id, &self.roster);
        let taken = self.take_into_inbox(talk, id, text, heard)?;
        let receiver = match taken {
            Taken::Nothing => return Ok(()),
            // What was sent before the member joined is not checked further.
            Taken::Unowed | Taken::Wrong { is_owed: false } => {
                talk.place = Place::After(id);
                Receiver::Other
            }
            // What may come at any time has no place.
            _ if self.roster.fate(id) == Some(Fate::Unknown) => Receiver::Owed,
            // A broadcast that is owed to this member keeps its words until the next call, unless it is given up.
            _ => {
                self.take_place(talk, id, taken, (text, &mut *heard))?;
                Receiver::Owed
            }
        };
        match self.roster.deliver(id, receiver) {
            Delivered::Refused => return self.refused(talk, id, text, heard),
            delivered => self.count_delivery(delivered, at, heard),
        }
        Ok(())
    }

    /// Counts a copy that was to reach nobody, or that came when it had been given up.
    #[cold]
    fn refused(
        &self,
        talk: &ConnectionState,
        id: u64,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        let is_refused = self.roster.fate(id) == Some(Fate::NotPublished);
        let wrong = if is_refused { REFUSED } else { self.not_known(id) };
        self.wrong_delivery(talk, wrong, text, heard)
    }

    /// Counts a copy that was not refused.
    fn count_delivery(&self, delivered: Delivered, at: Nanos, heard: &mut impl Heard) {
        if matches!(delivered, Delivered::Owed { .. } | Delivered::Unknown) {
            heard.heard(Hub::DELIVERIES, at);
        }
        if delivered == Delivered::Unknown {
            self.losses.unknown_deliveries.fetch_add(1, Relaxed);
        }
        if delivered == (Delivered::Owed { last: true }) {
            heard.heard(Hub::LAST_DELIVERIES, at);
        }
    }

    /// Handles a copy that the member was not owed any longer. After a gap it must be in order, too; if its result
    /// did not say whether it is published, it may come at any time.
    fn take_late(
        &self,
        talk: &mut ConnectionState,
        Payload { id, at, .. }: Payload,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        if self.roster.fate(id) == Some(Fate::Owed) {
            let place = mem::replace(&mut talk.place, Place::After(id));
            if talk.inbox.was_overtaken(id, &self.roster) {
                let error = DeliveryError::OutOfOrder { is_owed: false };
                self.wrong_delivery(talk, (error.kind(), error.in_words()), text, heard)?;
            } else if self.terms.in_one_order {
                let checked = self.roster.check_late_place(id, place);
                let other = |other| self.other_order(talk, (id, place, other), text, &mut *heard);
                checked.or_else(other)?;
            }
        }
        match self.roster.deliver(id, Receiver::Excused) {
            Delivered::Refused => return self.refused(talk, id, text, heard),
            delivered => {
                if matches!(delivered, Delivered::Owed { .. }) {
                    self.losses.missed.fetch_sub(1, Relaxed);
                }
                self.count_delivery(delivered, at, heard);
            }
        }
        Ok(())
    }
}
