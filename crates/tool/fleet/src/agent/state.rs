//! What an agent does about each event. Pure: events and times come in, effects come out.

use crate::message::{Answer, FromAgent, LEASE, Request, ToAgent};
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
    lease_ns: u64,
    /// When the last message of the leader came, or a part of one.
    renewed_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There are no load processes.
    Idle,
    /// The load processes are being started, for the request of this number.
    Preparing { seq: u64 },
    /// There are load processes.
    Running,
    /// It exits.
    Over,
}

impl Agent {
    /// An agent that was started now.
    pub fn new(now_ns: u64) -> Agent {
        Agent { state: State::Idle, lease_ns: LEASE.as_nanos() as u64, renewed_ns: now_ns }
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
        match (event, self.state) {
            (_, State::Over) => Vec::new(),
            (Event::Message(message), _) => {
                self.receives(now_ns);
                self.carry_out(*message, now_ns)
            }
            (Event::LeaderGone, _) => self.exit(),
            (Event::Tick, _) if now_ns >= self.deadline_ns() => self.exit(),
            (Event::Started(pids), State::Preparing { seq }) => {
                self.state = State::Running;
                vec![answer(seq, Answer::Prepared { pids })]
            }
            (Event::Started(_), _) => vec![Effect::Kill],
            (Event::NotStarted(because), State::Preparing { seq }) => {
                self.state = State::Idle;
                vec![answer(seq, Answer::Refused { because })]
            }
            (Event::Report { process, message }, State::Running) => {
                vec![answer(0, Answer::Report { process, message })]
            }
            (Event::Ended { process, how }, State::Running) => {
                vec![answer(0, Answer::Ended { process, how })]
            }
            (Event::OfSite { seq, answer: Ok(found) }, _) => vec![answer(seq, Answer::Site(found))],
            (Event::OfSite { seq, answer: Err(because) }, _) => {
                vec![answer(seq, Answer::Refused { because })]
            }
            (
                Event::Tick | Event::NotStarted(_) | Event::Report { .. } | Event::Ended { .. },
                _,
            ) => Vec::new(),
        }
    }

    fn carry_out(&mut self, message: ToAgent, now_ns: u64) -> Vec<Effect> {
        let ToAgent { seq, body } = message;
        let refused = |because: String| vec![answer(seq, Answer::Refused { because })];
        match body {
            Request::Lease { ms } if LEASES_MS.contains(&ms) => {
                self.lease_ns = ms * 1_000_000;
                vec![answer(seq, Answer::Pulse)]
            }
            Request::Lease { ms } => {
                let (least, most) = (LEASES_MS.start(), LEASES_MS.end());
                refused(format!("expected a lease of {least} to {most} ms, got one of {ms} ms"))
            }
            Request::Renew => vec![answer(seq, Answer::Pulse)],
            Request::Clock => vec![answer(seq, Answer::Clock { t1_ns: now_ns, t2_ns: now_ns })],
            Request::Prepare { parts, .. } if parts.is_empty() || parts.len() > MOST_PROCESSES => {
                let count = parts.len();
                refused(format!("expected 1 to {MOST_PROCESSES} parts of a load, got {count}"))
            }
            Request::Prepare { plan, parts } => {
                self.state = State::Preparing { seq };
                vec![Effect::Kill, Effect::Start { plan, parts }]
            }
            Request::Order(order) if self.state == State::Running => {
                let late_by_ns = order.at_ns.map_or(0, |at_ns| now_ns.saturating_sub(at_ns));
                vec![Effect::Order(order), answer(seq, Answer::Taken { late_by_ns })]
            }
            Request::Order(_) => refused("there are no load processes to order".into()),
            // Its answer may come after those of later requests, which renew the lease meanwhile.
            Request::Site(ask) => vec![Effect::Site { seq, ask }],
            Request::Abort => {
                self.state = State::Idle;
                vec![Effect::Kill, answer(seq, Answer::Aborted)]
            }
        }
    }

    fn exit(&mut self) -> Vec<Effect> {
        self.state = State::Over;
        vec![Effect::Kill, Effect::Exit]
    }
}

/// Sends an answer to the request of this number, or a report with the number 0.
fn answer(seq: u64, body: Answer) -> Effect {
    Effect::Send(Box::new(FromAgent { seq, body }))
}

#[cfg(test)]
mod tests;
