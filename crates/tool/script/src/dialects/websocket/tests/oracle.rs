//! Compares what the dialect counts with a model that keeps every broadcast and every copy.

use super::room::{Room, Tolerant};
use crate::{
    dialect::Dialect,
    dialects::websocket::{
        message::{Payload, Request},
        roster::Fate,
        talk::{Stage, Standing},
    },
    protocol::Pushes,
};
use proptest::{prelude::*, sample::Index};
use regatta_record::{AnnouncedLosses, WrongDeliveries};
use std::collections::HashSet;

const MEMBERS: usize = 3;

/// What happens next. What cannot happen in the current state is left out.
#[derive(Clone, Debug)]
enum Step {
    /// A member gets its first reply.
    Join(usize),
    /// A member begins to leave.
    Leave(usize),
    /// The server loses the connection of a member, which connects again.
    Lose(usize),
    Send(usize),
    /// A member gets a copy of one of the broadcasts.
    Get(usize, Index),
    /// A member gets a copy of one of the last broadcasts.
    GetNew(usize, usize),
    /// A member gets a copy with another time.
    GetAltered(usize, Index),
    Gap(usize),
    /// The result of one of the last broadcasts.
    Result(usize, Fate),
}

fn step() -> impl Strategy<Value = Step> {
    let member = 0..MEMBERS;
    let fate = prop_oneof![
        6 => Just(Fate::Owed),
        1 => Just(Fate::NotPublished),
        1 => Just(Fate::Unknown),
    ];
    prop_oneof![
        4 => member.clone().prop_map(Step::Join),
        1 => member.clone().prop_map(Step::Leave),
        1 => member.clone().prop_map(Step::Lose),
        12 => member.clone().prop_map(Step::Send),
        6 => (member.clone(), any::<Index>()).prop_map(|(member, at)| Step::Get(member, at)),
        24 => (member.clone(), 0..5_usize).prop_map(|(member, at)| Step::GetNew(member, at)),
        1 => (member.clone(), any::<Index>()).prop_map(|(member, at)| Step::GetAltered(member, at)),
        2 => member.prop_map(Step::Gap),
        8 => (0..5_usize, fate).prop_map(|(at, fate)| Step::Result(at, fate)),
    ]
}

/// A broadcast.
struct Sent {
    payload: Payload,
    /// The connection that sent it.
    by: usize,
    /// The connections that were owed it.
    owed: HashSet<usize>,
    /// The connections that got it.
    got: HashSet<usize>,
    /// The connections that got a gap before it.
    gap: HashSet<usize>,
    /// The connections that were lost before it came.
    lost: HashSet<usize>,
    fate: Option<Fate>,
}

impl Sent {
    /// The connections that are still owed it.
    fn open(&self) -> impl Iterator<Item = usize> {
        let is_published = matches!(self.fate, None | Some(Fate::Owed));
        let open = self.owed.iter().filter(move |_| is_published);
        open.filter(|one| ![&self.got, &self.gap, &self.lost].iter().any(|set| set.contains(one)))
            .copied()
    }
}

/// Keeps everything.
#[derive(Default)]
struct Model {
    sent: Vec<Sent>,
    /// The number of the connection of each member. Each connection has another one.
    connections: [usize; MEMBERS],
    wrong: WrongDeliveries,
    /// What was missing when a result came.
    reported: u64,
    announced: AnnouncedLosses,
    deliveries: u64,
    last: u64,
}

/// The dialect and the model.
struct Both {
    room: Room,
    pushes: Pushes<'static>,
    model: Model,
    heard: Tolerant,
}

impl Both {
    fn new(pushes: Pushes<'static>) -> Both {
        let room = Room::with(MEMBERS as u32, pushes);
        let model = Model { connections: [0, 1, 2], ..Model::default() };
        Both { room, pushes, model, heard: Tolerant::default() }
    }

    fn standing(&self, member: usize) -> Standing {
        self.room.talks[member].standing
    }

    fn take(&mut self, step: &Step) {
        let sent = &self.model.sent;
        let number = match step {
            Step::Get(_, at) | Step::GetAltered(_, at) if !sent.is_empty() => at.index(sent.len()),
            Step::GetNew(_, back) | Step::Result(back, _) if *back < sent.len() => {
                sent.len() - 1 - back
            }
            _ => usize::MAX,
        };
        match *step {
            Step::Join(member) => self.room.talks[member].note_reply(&self.room.hub.roster),
            Step::Leave(member) if !self.pushes.may_be_lost => {
                self.room.talks[member].leaves(&self.room.hub.roster);
            }
            Step::Lose(member) => self.lose(member),
            Step::Send(member) if self.standing(member) == Standing::Member => self.send(member),
            Step::Gap(member) if self.pushes.may_be_lost => self.gap(member),
            _ if number == usize::MAX => {}
            Step::Get(member, _) | Step::GetNew(member, _) => self.get(member, number),
            Step::GetAltered(member, _) => {
                let altered = Payload { at: 6, ..sent[number].payload };
                self.room.hears(member, &[altered], &mut self.heard);
                self.model.wrong.unsent += 1;
            }
            Step::Result(_, fate) if self.pushes.may_be_lost => self.result(number, fate),
            Step::Leave(_) | Step::Send(_) | Step::Gap(_) | Step::Result(..) => {}
        }
    }

    fn lose(&mut self, member: usize) {
        let connection = self.model.connections[member];
        let model = &mut self.model;
        let mut lost = 0;
        for sent in &mut model.sent {
            if sent.open().any(|one| one == connection) {
                sent.lost.insert(connection);
                // Otherwise it counts when the result says that it is published.
                lost += u64::from(!self.pushes.may_be_lost || sent.fate.is_some());
            }
        }
        model.wrong.missing += lost;
        model.connections[member] = 1 + model.connections.iter().max().unwrap();
        let talk = &mut self.room.talks[member];
        assert_eq!(self.room.hub.undelivered(talk, &mut self.heard), lost);
        self.room.hub.renew(talk, member as u32);
        talk.stage = Stage::Plain;
    }

    fn send(&mut self, member: usize) {
        let payload = self.room.begin(member as u32);
        self.room.talks[member].asked.push_back(Request::Broadcast(payload));
        let members = (0..MEMBERS).filter(|one| self.standing(*one) == Standing::Member);
        let owed = members.map(|one| self.model.connections[one]).collect();
        let by = self.model.connections[member];
        let [got, gap, lost]: [HashSet<usize>; 3] = Default::default();
        self.model.sent.push(Sent { payload, by, owed, got, gap, lost, fate: None });
    }

    fn gap(&mut self, member: usize) {
        // Before the first broadcast it is no loss.
        if self.model.sent.is_empty() {
            return;
        }
        self.model.announced.gaps += 1;
        let connection = self.model.connections[member];
        for sent in &mut self.model.sent {
            if sent.open().any(|one| one == connection) {
                sent.gap.insert(connection);
            }
        }
        self.room.gap(member);
    }

    fn get(&mut self, member: usize, number: usize) {
        let connection = self.model.connections[member];
        let model = &mut self.model;
        // What is not published, or may not be, has no order.
        let has_order = |sent: &Sent| matches!(sent.fate, None | Some(Fate::Owed));
        let sender = model.sent[number].payload.sender;
        let later = model.sent[number + 1..].iter();
        let mut later = later.filter(|later| later.payload.sender == sender && has_order(later));
        let is_overtaken =
            has_order(&model.sent[number]) && later.any(|later| later.got.contains(&connection));
        let sent = &mut model.sent[number];
        match () {
            () if sent.fate == Some(Fate::NotPublished) => model.wrong.unsent += 1,
            () if sent.got.contains(&connection) => model.wrong.twice += 1,
            () => {
                model.wrong.out_of_order += u64::from(is_overtaken);
                sent.got.insert(connection);
                sent.gap.remove(&connection);
                if sent.owed.contains(&connection) {
                    model.deliveries += 1;
                    let all_have_it = sent.owed.iter().all(|one| sent.got.contains(one));
                    let is_published = sent.fate != Some(Fate::Unknown);
                    model.last += u64::from(is_published && all_have_it);
                }
            }
        }
        let payload = sent.payload;
        self.room.hears(member, &[payload], &mut self.heard);
    }

    fn result(&mut self, number: usize, fate: Fate) {
        let sent = &mut self.model.sent[number];
        let (member, payload) = (sent.payload.sender as usize, sent.payload);
        if sent.fate.is_some() || self.model.connections[member] != sent.by {
            return;
        }
        sent.fate = Some(fate);
        let talk = &mut self.room.talks[member];
        talk.asked.retain(|asked| *asked != Request::Broadcast(payload));
        let announced = &mut self.model.announced;
        let why = match fate {
            Fate::Owed => {
                let lost = sent.lost.len() as u64;
                self.model.wrong.missing += lost;
                self.model.reported += lost;
                let published = self.room.hub.is_published(talk, payload.id, &mut self.heard);
                return published.unwrap();
            }
            Fate::NotPublished => {
                announced.not_published += 1;
                self.model.wrong.unsent += sent.got.len() as u64;
                "not published: x"
            }
            Fate::Unknown => {
                announced.unknown += 1;
                "unknown whether published: x"
            }
        };
        self.room.fails(member, payload, why, &mut self.heard);
    }

    /// What must be equal.
    fn check(&mut self) {
        let Model { sent, wrong, announced, .. } = &self.model;
        let published = sent.iter().filter(|sent| matches!(sent.fate, None | Some(Fate::Owed)));
        let missed = published.map(|sent| sent.gap.len() as u64).sum();
        let unknown = sent.iter().filter(|sent| sent.fate == Some(Fate::Unknown));
        let unknown = unknown.map(|sent| sent.got.intersection(&sent.owed).count() as u64).sum();
        let announced = AnnouncedLosses { missed, unknown_deliveries: unknown, ..*announced };
        let hub = &self.room.hub;
        assert_eq!(hub.wrong_deliveries(), Some(*wrong));
        assert_eq!(hub.losses.counted(), announced);
        assert_eq!(self.heard.deliveries, self.model.deliveries);
        // What is missing at a lost connection is not reported there.
        let reported = wrong.total() - wrong.missing + self.model.reported;
        assert_eq!(self.heard.wrong.len() as u64, reported);
        let may_be_lost = self.pushes.may_be_lost;
        let is_known = |sent: &&Sent| !may_be_lost || sent.fate == Some(Fate::Owed);
        let known = sent.iter().filter(is_known);
        let incomplete = known.filter(|sent| !sent.lost.is_empty()).count() as u64;
        assert_eq!(self.heard.missing, [wrong.missing, incomplete]);
        if self.pushes.may_be_lost || self.pushes.tolerates {
            assert_eq!(self.heard.last, self.model.last);
        }
        let open: usize = sent.iter().map(|sent| sent.open().count()).sum();
        assert_eq!(hub.owes(), open > 0);
    }

    /// The load ends: what is owed is missing.
    fn end(mut self) {
        let is_open = |sent: &&Sent| self.pushes.may_be_lost && sent.fate.is_none();
        let lost = self.model.sent.iter().filter(is_open).map(|sent| sent.lost.len());
        let open = self.model.sent.iter().map(|sent| sent.open().count());
        let open: usize = open.chain(lost).sum();
        let mut missing = 0;
        self.room.hub.missing(&mut self.heard, &mut |deliveries, _| missing += deliveries);
        assert_eq!(missing, open as u64);
        self.model.wrong.missing += missing;
        let is_published = |sent: &&Sent| matches!(sent.fate, None | Some(Fate::Owed));
        let is_incomplete = |sent: &&Sent| {
            let lost = !sent.lost.is_empty() && (!self.pushes.may_be_lost || is_published(sent));
            lost || sent.open().next().is_some()
        };
        let incomplete = self.model.sent.iter().filter(is_incomplete).count() as u64;
        assert_eq!(self.heard.missing, [self.model.wrong.missing, incomplete]);
        assert_eq!(self.room.hub.wrong_deliveries(), Some(self.model.wrong));
        // A connection that is lost afterwards adds nothing.
        (0..MEMBERS).for_each(|member| {
            assert_eq!(self.room.hub.undelivered(&mut self.room.talks[member], &mut ()), 0);
        });
    }
}

proptest! {
    #[test]
    fn the_counts_are_those_of_a_model_that_keeps_everything(
        may_be_lost: bool,
        tolerates: bool,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut both = Both::new(Pushes { may_be_lost, tolerates, ..Pushes::default() });
        for step in &steps {
            both.take(step);
            both.check();
        }
        both.end();
    }
}
