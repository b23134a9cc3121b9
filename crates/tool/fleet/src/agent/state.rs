//! What an agent does about each event. Pure: events and times come in, effects come out.

use crate::message::{Answer, FromAgent, LEASE, Request, ToAgent, VERSION};
use regatta_load::{Order, Plan};
use regatta_record::{Part, ProcessMessage};
use serde_json::Value;

/// Shortest and longest lease that a leader may ask for, in milliseconds.
const LEASES_MS: std::ops::RangeInclusive<u64> = 100..=600_000;
/// Most load processes on one agent.
pub(crate) const MOST_PROCESSES: usize = 64;

/// What happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// The leader sent a message.
    Message(Box<ToAgent>),
    /// The leader is gone, or sent something else.
    LeaderGone,
    /// The load processes were started: their process IDs.
    Started(Vec<u32>),
    /// They could not be started: why.
    NotStarted(String),
    /// A load process reported.
    Report { process: u32, message: Box<ProcessMessage> },
    /// A load process ended before its last report: how.
    Ended { process: u32, how: String },
    /// The site carried out a request.
    OfSite { seq: u64, answer: Result<Value, String> },
    /// Time passed.
    Tick,
}

/// What is to be done about it, in order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Send a message to the leader.
    Send(Box<FromAgent>),
    /// Start a load process for each part. An [`Event::Started`] or [`Event::NotStarted`] follows.
    Start { plan: Box<Plan>, parts: Vec<Part> },
    /// Pass an order on to the load processes.
    Order(Order),
    /// Kill the load processes, and end what the site runs.
    Kill,
    /// Have the site carry out the request of this number. An [`Event::OfSite`] follows, unless it is ended before.
    Site { seq: u64, ask: Value },
    /// Exit.
    Exit,
}

/// An agent.
#[derive(Debug)]
pub(crate) struct Agent {
    state: State,
    session: u64,
    lease_ns: u64,
    /// When the last message of the leader came, or a part of one.
    renewed_ns: u64,
    /// The number of the last request, and its answer once it was given.
    last: (u64, Option<FromAgent>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nobody has reserved it.
    Idle,
    /// Reserved, without load processes.
    Reserved,
    /// The load processes are being started.
    Preparing,
    /// There are load processes.
    Running,
    /// It exits.
    Over,
}

impl Agent {
    /// An agent that was started now.
    pub fn new(now_ns: u64) -> Agent {
        let lease_ns = LEASE.as_nanos() as u64;
        Agent { state: State::Idle, session: 0, lease_ns, renewed_ns: now_ns, last: (0, None) }
    }

    /// When the agent needs the next event at the latest.
    pub fn deadline_ns(&self) -> u64 {
        self.renewed_ns.saturating_add(self.lease_ns)
    }

    /// A part of a message of the leader came at this time. It renews the lease, because a whole message, e.g. a load
    /// with large files on a slow way, may take longer.
    pub fn receives(&mut self, at_ns: u64) {
        self.renewed_ns = self.renewed_ns.max(at_ns);
    }

    /// Returns what to do about an event at this time.
    pub fn on(&mut self, event: Event, now_ns: u64) -> Vec<Effect> {
        if self.state == State::Over {
            return Vec::new();
        }
        match event {
            Event::Message(message) => self.message(*message, now_ns),
            Event::LeaderGone => self.exit(),
            Event::Tick if now_ns >= self.deadline_ns() => self.exit(),
            Event::Tick => Vec::new(),
            Event::Started(pids) if self.state == State::Preparing => {
                self.state = State::Running;
                self.answer(Answer::Prepared { pids })
            }
            Event::NotStarted(because) if self.state == State::Preparing => {
                self.state = State::Reserved;
                self.answer(Answer::Refused { because })
            }
            Event::Started(_) => vec![Effect::Kill],
            Event::Report { process, message } if self.state == State::Running => {
                vec![self.send(0, Answer::Report { process, message })]
            }
            Event::Ended { process, how } if self.state == State::Running => {
                vec![self.send(0, Answer::Ended { process, how })]
            }
            Event::OfSite { seq, answer } if self.state != State::Idle => {
                let refused = |because| Answer::Refused { because };
                vec![self.send(seq, answer.map_or_else(refused, Answer::Site))]
            }
            Event::NotStarted(_)
            | Event::OfSite { .. }
            | Event::Report { .. }
            | Event::Ended { .. } => Vec::new(),
        }
    }

    fn message(&mut self, message: ToAgent, now_ns: u64) -> Vec<Effect> {
        let ToAgent { fleet, session, seq, body } = message;
        let refuse = |agent: &Self, because: &str| {
            vec![agent.send(seq, Answer::Refused { because: because.into() })]
        };
        if fleet != VERSION {
            let because = format!("the agent speaks version {VERSION}, and the leader {fleet}");
            return refuse(self, &because);
        }
        let is_ours = self.session == session && self.last.0 > 0;
        if is_ours && seq <= self.last.0 {
            let again = self.last.1.clone().filter(|answer| answer.seq == seq);
            return again.map(|answer| Effect::Send(Box::new(answer))).into_iter().collect();
        }
        match body {
            Request::Reserve { .. } if self.state != State::Idle => {
                return refuse(self, "the agent is reserved already");
            }
            Request::Reserve { lease_ms } if !LEASES_MS.contains(&lease_ms) => {
                let (least, most) = (LEASES_MS.start(), LEASES_MS.end());
                let because =
                    format!("expected a lease of {least} to {most} ms, got one of {lease_ms} ms");
                return refuse(self, &because);
            }
            Request::Reserve { lease_ms } => {
                (self.state, self.session) = (State::Reserved, session);
                self.lease_ns = lease_ms * 1_000_000;
            }
            _ if !is_ours || self.state == State::Idle => {
                return refuse(self, "the agent is not reserved for this leader");
            }
            _ => {}
        }
        self.renewed_ns = now_ns;
        self.last = (seq, None);
        self.carry_out(body, now_ns)
    }

    fn carry_out(&mut self, body: Request, now_ns: u64) -> Vec<Effect> {
        match body {
            Request::Reserve { .. } => self.answer(Answer::Reserved),
            Request::Renew => self.answer(Answer::Pulse),
            Request::Clock => self.answer(Answer::Clock { t1_ns: now_ns, t2_ns: now_ns }),
            Request::Prepare { plan, parts } => {
                if parts.is_empty() || parts.len() > MOST_PROCESSES {
                    let because = format!(
                        "expected 1 to {MOST_PROCESSES} parts of a load, got {}",
                        parts.len()
                    );
                    return self.answer(Answer::Refused { because });
                }
                self.state = State::Preparing;
                vec![Effect::Kill, Effect::Start { plan, parts }]
            }
            Request::Order(order) if self.state == State::Running => {
                let late_by_ns = order.at_ns.map_or(0, |at_ns| now_ns.saturating_sub(at_ns));
                let mut effects = vec![Effect::Order(order)];
                effects.extend(self.answer(Answer::Taken { late_by_ns }));
                effects
            }
            Request::Order(_) => {
                let because = "there are no load processes to order".into();
                self.answer(Answer::Refused { because })
            }
            // Its answer may come after those of later requests, which renew the lease meanwhile.
            Request::Site(ask) => vec![Effect::Site { seq: self.last.0, ask }],
            Request::Abort => self.kill(State::Reserved, Answer::Aborted),
            Request::Release => self.kill(State::Idle, Answer::Released),
        }
    }

    fn kill(&mut self, next: State, answer: Answer) -> Vec<Effect> {
        self.state = next;
        let mut effects = vec![Effect::Kill];
        effects.extend(self.answer(answer));
        effects
    }

    fn exit(&mut self) -> Vec<Effect> {
        self.state = State::Over;
        vec![Effect::Kill, Effect::Exit]
    }

    /// Answers the last request, and keeps the answer for the case that it is repeated.
    fn answer(&mut self, body: Answer) -> Vec<Effect> {
        let seq = self.last.0;
        let answer = FromAgent { fleet: VERSION, session: self.session, seq, body };
        self.last.1 = Some(answer.clone());
        vec![Effect::Send(Box::new(answer))]
    }

    fn send(&self, seq: u64, body: Answer) -> Effect {
        Effect::Send(Box::new(FromAgent { fleet: VERSION, session: self.session, seq, body }))
    }
}

#[cfg(test)]
mod tests;
