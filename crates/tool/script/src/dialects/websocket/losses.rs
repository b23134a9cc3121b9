//! Losses that a hub may announce, if the load permits that: a gap, and a broadcast whose result says that it is
//! not published, or that this is not known. They are counted apart. What was lost without an announcement stays
//! an error, as what came although it was announced as not published.

use super::{
    member::DeliveryError,
    message::{Notice, Payload, Request},
    receive::Hub,
    roster::{Delivered, Fate, Place, Receiver, Settled},
    talk::ConnectionState,
};
use crate::dialect::Heard;
use regatta_record::Exchange;
use std::{mem, sync::atomic::Ordering::*};

const REFUSED: &str = "no copy of a broadcast that is not published, as its result says";

impl Hub {
    /// Handles a message that is no reply and no copy.
    #[cold]
    pub(super) fn take_loss(
        &self,
        talk: &mut ConnectionState,
        text: &[u8],
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
                    talk.place = Place::Unknown;
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
        let Settled { received, missed } = self.roster.settle(payload.id, fate);
        if fate == Fate::NotPublished && received > 0 {
            let expected =
                format!("the result of a published broadcast: {received} members got it");
            return Err(self.terms.wrong(talk, &expected, text));
        }
        let count = match fate {
            Fate::NotPublished => &self.losses.not_published,
            Fate::Owed | Fate::Unknown => &self.losses.unknown,
        };
        count.fetch_add(1, Relaxed);
        // Not published, or counted as unknown: the members that got a gap before have not missed it.
        self.losses.missed.fetch_sub(missed, Relaxed);
        self.answered(talk);
        *replies += 1;
        Ok(())
    }

    /// Handles a copy of a broadcast that may have been announced as lost.
    pub(super) fn take_uncertain(
        &self,
        talk: &mut ConnectionState,
        payload: Payload,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        let Payload { id, at, .. } = payload;
        if self.roster.fate(id) == Some(Fate::NotPublished) {
            return Err(self.terms.wrong(talk, REFUSED, text));
        }
        if talk.inbox.take_excused(id) {
            return self.take_late(talk, payload, text, heard);
        }
        talk.inbox.pass_over(id, &self.roster);
        let is_owed = match talk.inbox.take(id, &self.roster) {
            Ok(is_owed) => is_owed,
            Err(error) => return Err(self.terms.wrong(talk, error.in_words(), text)),
        };
        // What was sent before the member joined is not checked further. A broadcast that is owed to this member
        // keeps its words until the next call.
        match is_owed && self.roster.fate(id) == Some(Fate::Owed) {
            true => self.take_place(talk, id, text)?,
            false => talk.place = Place::After(id),
        }
        let receiver = if is_owed { Receiver::Owed } else { Receiver::Other };
        match self.roster.deliver(id, receiver) {
            Delivered::Refused => return Err(self.terms.wrong(talk, REFUSED, text)),
            Delivered::Unowed if !is_owed => {}
            Delivered::Unowed => heard.heard(Hub::DELIVERIES, at),
            Delivered::Owed { last } => {
                heard.heard(Hub::DELIVERIES, at);
                if last {
                    heard.heard(Hub::LAST_DELIVERIES, at);
                }
            }
        }
        Ok(())
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
        let is_published = self.roster.fate(id) == Some(Fate::Owed);
        if is_published && talk.inbox.was_overtaken(id, &self.roster) {
            return Err(self.terms.wrong(talk, DeliveryError::OutOfOrder.in_words(), text));
        }
        let place = mem::replace(&mut talk.place, Place::After(id));
        if self.terms.in_one_order {
            let checked = self.roster.check_late_place(id, place);
            checked.map_err(|other| self.other_order(talk, other, text))?;
        }
        match self.roster.deliver(id, Receiver::Excused) {
            Delivered::Refused => return Err(self.terms.wrong(talk, REFUSED, text)),
            Delivered::Unowed => heard.heard(Hub::DELIVERIES, at),
            Delivered::Owed { last } => {
                self.losses.missed.fetch_sub(1, Relaxed);
                heard.heard(Hub::DELIVERIES, at);
                if last {
                    heard.heard(Hub::LAST_DELIVERIES, at);
                }
            }
        }
        Ok(())
    }
}
