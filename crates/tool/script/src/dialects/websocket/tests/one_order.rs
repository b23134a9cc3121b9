//! One order of all broadcasts, with members in two processes: a hub that keeps it makes no wrong delivery, whatever its
//! members miss, and one that does not keep it is found.

use super::room::{Room, Tolerant};
use crate::{
    dialect::Dialect,
    dialects::websocket::{message::Payload, roster::WORDS, talk::Stage},
    protocol::Pushes,
};
use proptest::prelude::*;
use regatta_record::WrongDeliveries;
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

const PROCESSES: usize = 2;
/// Number of members in each process.
const EACH: usize = 2;
const MEMBERS: usize = PROCESSES * EACH;

/// What happens next. What cannot happen in the current state is left out.
#[derive(Clone, Debug)]
enum Step {
    Send(usize),
    /// The hub gives the oldest pending broadcast of a member its place.
    Publish {
        sender: usize,
        is_unknown: bool,
    },
    /// A member gets the next broadcast, or gets it not, if its result says that it may not be published.
    Deliver {
        member: usize,
        skips: bool,
    },
    /// The result of one of the oldest broadcasts that have a place and no result.
    Result(usize),
    /// A member gets a gap in place of so many broadcasts.
    Gap(usize, usize),
    /// The server loses the connection of a member, which joins again.
    Lose(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let member = 0..MEMBERS;
    prop_oneof![
        12 => member.clone().prop_map(Step::Send),
        12 => (member.clone(), prop::bool::weighted(0.2))
            .prop_map(|(sender, is_unknown)| Step::Publish { sender, is_unknown }),
        40 => (member.clone(), any::<bool>()).prop_map(|(member, skips)| Step::Deliver { member, skips }),
        12 => (0..3_usize).prop_map(Step::Result),
        2 => (member.clone(), 0..4_usize).prop_map(|(member, lost)| Step::Gap(member, lost)),
        1 => member.prop_map(Step::Lose),
    ]
}

/// A broadcast that has its place in the order.
struct Placed {
    payload: Payload,
    /// The number of the connection of its sender.
    by: usize,
    is_unknown: bool,
    has_result: bool,
}

/// A hub that keeps one order, and the members of a load.
struct Both {
    processes: [Room; PROCESSES],
    heard: Tolerant,
    pending: [VecDeque<Payload>; MEMBERS],
    order: Vec<Placed>,
    /// What each member gets next.
    at: [usize; MEMBERS],
    /// Number of connections of each member so far.
    connections: [usize; MEMBERS],
}

impl Both {
    fn new() -> Both {
        thread_local! {
            static SHARED: &'static [AtomicU64] =
                Box::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>());
        }
        let words = SHARED.with(|words| *words);
        words.iter().for_each(|word| word.store(0, Relaxed));
        let pushes =
            Pushes { in_one_order: true, may_be_lost: true, tolerates: true, ..Pushes::default() };
        let process = |first: usize| {
            let first = (first * EACH) as u32;
            Room::of(first..first + EACH as u32, pushes, Some(words))
        };
        Both {
            processes: [process(0), process(1)],
            heard: Tolerant::default(),
            pending: Default::default(),
            order: Vec::new(),
            at: [0; MEMBERS],
            connections: [0; MEMBERS],
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Send(member) => {
                let payload = self.processes[member / EACH].begin(member as u32);
                self.pending[member].push_back(payload);
            }
            Step::Publish { sender, is_unknown } => {
                let by = self.connections[sender];
                let next = self.pending[sender].pop_front();
                self.order.extend(next.map(|payload| Placed {
                    payload,
                    by,
                    is_unknown,
                    has_result: false,
                }));
            }
            Step::Deliver { member, skips } => {
                let Some(next) = self.order.get(self.at[member]) else { return };
                self.at[member] += 1;
                if !(next.is_unknown && skips) {
                    self.copy(member, next.payload);
                }
            }
            Step::Result(nth) => self.result(nth),
            Step::Gap(member, lost) => {
                self.at[member] = (self.at[member] + lost).min(self.order.len());
                self.processes[member / EACH].gap(member % EACH);
            }
            Step::Lose(member) => {
                let Room { hub, talks } = &mut self.processes[member / EACH];
                let talk = &mut talks[member % EACH];
                hub.undelivered(talk, &mut ());
                hub.renew(talk, member as u32);
                talk.stage = Stage::Plain;
                talk.note_reply(&hub.roster);
                self.connections[member] += 1;
                self.at[member] = self.order.len();
                // Their results do not come, and they are not published.
                self.pending[member].clear();
            }
        }
    }

    fn copy(&mut self, member: usize, payload: Payload) {
        self.processes[member / EACH].hears(member % EACH, &[payload], &mut self.heard);
    }

    fn result(&mut self, nth: usize) {
        let mut open = self.order.iter_mut().filter(|one| !one.has_result);
        let Some(placed) = open.nth(nth) else { return };
        placed.has_result = true;
        let Placed { payload, by, is_unknown, .. } = *placed;
        let sender = payload.sender as usize;
        if by != self.connections[sender] {
            return;
        }
        if !is_unknown {
            let _ = self.processes[sender / EACH].hub.roster.publish(payload.id);
            return;
        }
        let room = &mut self.processes[sender / EACH];
        room.fails(sender % EACH, payload, "unknown whether published: x", &mut self.heard);
    }

    /// Everybody gets all, and all results come.
    fn drain(&mut self) {
        let all = self.order.len();
        (0..all).for_each(|_| self.result(0));
        for member in 0..MEMBERS {
            (0..all).for_each(|_| self.take(&Step::Deliver { member, skips: false }));
        }
    }

    fn wrong(&self) -> WrongDeliveries {
        let mut wrong = WrongDeliveries::default();
        self.processes.iter().for_each(|room| wrong.add(room.hub.wrong.counted()));
        WrongDeliveries { missing: 0, ..wrong }
    }
}

proptest! {
    #[test]
    fn a_hub_that_keeps_one_order_makes_no_wrong_delivery(
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let mut both = Both::new();
        for step in &steps {
            both.take(step);
            prop_assert_eq!(both.wrong(), WrongDeliveries::default(), "{:?}", both.heard.wrong);
        }
        both.drain();
        prop_assert_eq!(both.wrong(), WrongDeliveries::default(), "{:?}", both.heard.wrong);
    }

    #[test]
    fn a_hub_that_exchanges_two_for_one_member_is_found(
        steps in prop::collection::vec(step(), 0..100),
        liar in 0..MEMBERS,
    ) {
        let mut both = Both::new();
        steps.iter().for_each(|step| both.take(step));
        both.drain();
        let placed = [0, 1, 2].map(|sender| {
            both.take(&Step::Send(sender));
            both.pending[sender].pop_back().expect("it was sent")
        });
        for payload in placed {
            let _ = both.processes[payload.sender as usize / EACH].hub.roster.publish(payload.id);
        }
        let [first, a, b] = placed;
        for member in 0..MEMBERS {
            let exchanged = if member == liar { [first, b, a] } else { placed };
            exchanged.into_iter().for_each(|payload| both.copy(member, payload));
        }
        prop_assert!(both.wrong().out_of_order > 0, "{:?}", both.wrong());
    }
}
