//! The copies of broadcasts that members of a hub get.

use super::{
    announced::Wrong,
    member::DeliveryError,
    message::Payload,
    order::{OtherOrder, Place},
    receive::Hub,
    roster::Sent,
    talk::ConnectionState,
};
use crate::dialect::Heard;
use regatta_record::Exchange;
use std::mem;

/// What became of a copy in the inbox of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The member was owed it.
    Owed,
    /// The member was not owed it, and may get it.
    Unowed,
    /// It is not in the order of its sender, and counted as wrong. It has come nevertheless.
    Wrong { is_owed: bool },
    /// It is counted as wrong, and as nothing else.
    Nothing,
}

impl Hub {
    pub(super) fn take_copy(
        &self,
        talk: &mut ConnectionState,
        payload: Payload,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        let Payload { sender, id, at } = payload;
        if let Some(afar) = &self.afar
            && let Some(machine) = afar.origin(sender)
        {
            let inbox = &mut talk.far[machine as usize];
            if let Err(error) = inbox.take(payload) {
                return Err(self.terms.wrong(talk, error.in_words(), text));
            }
            afar.record(machine, payload, inbox);
            heard.heard_from(Hub::DELIVERIES, machine, afar.here_ns(machine, at));
            return Ok(());
        }
        let sent = self.roster.sent(id).filter(|sent| sent.sender == sender && sent.at == at);
        if sent.is_none() {
            let wrong = self.not_known(id);
            return self.wrong_delivery(talk, wrong, text, heard);
        }
        if self.terms.are_uncertain() {
            return self.take_uncertain(talk, payload, text, heard);
        }
        match self.take_into_inbox(talk, id, text, heard)? {
            Taken::Nothing => {}
            Taken::Unowed | Taken::Wrong { is_owed: false } => talk.place = Place::After(id),
            taken => {
                self.take_place(talk, id, taken, (text, &mut *heard))?;
                heard.heard(Hub::DELIVERIES, at);
                if self.roster.record_delivery(id) {
                    heard.heard(Hub::LAST_DELIVERIES, at);
                }
            }
        }
        Ok(())
    }

    /// What a copy is that is none of a broadcast which is known.
    #[cold]
    pub(super) fn not_known(&self, id: u64) -> (Wrong, &'static str) {
        let is_too_old = id < self.roster.next() && self.roster.sent(id).is_none();
        match is_too_old {
            true => (Wrong::OutOfOrder, "no broadcast that was sent before so many others"),
            false => (Wrong::Unsent, "only broadcasts that a member has sent"),
        }
    }

    /// Records the copy of a broadcast in the inbox.
    #[inline]
    pub(super) fn take_into_inbox(
        &self,
        talk: &mut ConnectionState,
        id: u64,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<Taken, Box<Exchange>> {
        let error = match talk.inbox.take(id, &self.roster) {
            Ok(true) => return Ok(Taken::Owed),
            Ok(false) => return Ok(Taken::Unowed),
            Err(error) => error,
        };
        self.wrong_delivery(talk, (error.kind(), error.in_words()), text, heard)?;
        Ok(match error {
            DeliveryError::OutOfOrder { is_owed } => Taken::Wrong { is_owed },
            DeliveryError::Twice | DeliveryError::TooFar => Taken::Nothing,
        })
    }

    /// Counts a wrong delivery. Only a load that tolerates errors continues after it.
    #[cold]
    pub(super) fn wrong_delivery(
        &self,
        talk: &ConnectionState,
        (wrong, expected): (Wrong, &str),
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        self.wrong.add(wrong, 1);
        heard.wrong(self.terms.wrong(talk, expected, text), 1)
    }

    /// Compares the order of a member with that of the others. A delivery that is wrong already is not counted again.
    #[inline]
    pub(super) fn take_place<H: Heard>(
        &self,
        talk: &mut ConnectionState,
        id: u64,
        taken: Taken,
        (text, heard): (&[u8], &mut H),
    ) -> Result<(), Box<Exchange>> {
        if !self.terms.in_one_order {
            return Ok(());
        }
        let place = mem::replace(&mut talk.place, Place::After(id));
        if taken != Taken::Owed {
            return Ok(());
        }
        let checked = self.roster.check_place(id, place);
        checked.or_else(|other| self.other_order(talk, (id, place, other), text, heard))
    }

    /// A copy whose order differs from that of other members.
    #[cold]
    pub(super) fn other_order(
        &self,
        talk: &ConnectionState,
        (id, place, other): (u64, Place, OtherOrder),
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        if let OtherOrder::At(theirs) = other
            && self.terms.may_be_lost
            && self.roster.may_be_one(id, [place, theirs])
        {
            return Ok(());
        }
        let broadcast = |number| match self.roster.sent(number) {
            Some(Sent { sender, at, .. }) => {
                let digits = Payload { sender, id: number, at }.digits();
                String::from_utf8_lossy(&digits).into_owned()
            }
            None => format!("broadcast {number}"),
        };
        let other = match other {
            OtherOrder::At(Place::After(number)) => {
                format!("another member got this one directly after {}", broadcast(number))
            }
            OtherOrder::At(_) => "another member got this one directly before all others".into(),
            OtherOrder::Before(number) => {
                format!("other members got this one before {}", broadcast(number))
            }
            OtherOrder::Behind(number) => {
                format!("another member got this one, a gap, and then {}", broadcast(number))
            }
        };
        let expected = format!("one order for all members; {other}");
        self.wrong_delivery(talk, (Wrong::OutOfOrder, &expected), text, heard)
    }
}
