//! The messages between a leader and an agent: lines of JSON.
//!
//! The agent first introduces itself ([`Hello`]). After that the leader sends requests, numbered upwards
//! from 1, and the agent answers each with its number. A request that comes twice is carried out once and
//! answered twice. Reports of load processes come without a request and have the number 0.

use regatta_load::{Order, Plan};
use regatta_record::{Part, ProcessMessage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Version of these messages. Leader and agent must have the same.
pub const VERSION: u32 = 1;

/// How long an agent continues without any message of its leader, unless the leader reserves it for
/// another time.
pub const LEASE: Duration = Duration::from_secs(10);

/// A message to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToAgent {
    /// [`VERSION`].
    pub fleet: u32,
    /// The number of the leader's session, which the leader draws.
    pub session: u64,
    /// The number of the request.
    pub seq: u64,
    /// The request.
    pub body: Request,
}

/// A request of a leader.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Reserves the agent for this session, until no message came for this many milliseconds.
    Reserve {
        /// Length of the lease.
        lease_ms: u64,
    },
    /// Renews the lease, as every other request does.
    Renew,
    /// Asks for the agent's time. The leader keeps its own.
    Clock,
    /// Starts a load process for each part. Those of an earlier request are killed first.
    Prepare {
        /// The whole load.
        plan: Box<Plan>,
        /// The part of each process.
        parts: Vec<Part>,
    },
    /// An order to all load processes. Its time is one of the agent's clock.
    Order(Order),
    /// Kills all load processes, and ends what the site runs. The agent stays reserved.
    Abort,
    /// The same, and ends the session.
    Release,
    /// Asks the agent's [`Site`](crate::Site), after what it was asked before.
    Site(Value),
}

/// A message from an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FromAgent {
    /// [`VERSION`].
    pub fleet: u32,
    /// The number of the session; 0 before a reservation.
    pub session: u64,
    /// The number of the request that this answers; 0 if there is none.
    pub seq: u64,
    /// The answer or report.
    pub body: Answer,
}

/// An answer or report of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The first message.
    Hello(Hello),
    /// The agent is reserved.
    Reserved,
    /// The agent is alive.
    Pulse,
    /// The agent's time.
    Clock {
        /// The agent's clock, after it received the request.
        t1_ns: u64,
        /// The agent's clock, before it sent the answer.
        t2_ns: u64,
    },
    /// The load processes were started.
    Prepared {
        /// Their process IDs.
        pids: Vec<u32>,
    },
    /// The order was passed on.
    Taken {
        /// How long after its time it came, in nanoseconds. 0 if it came in time, or had none.
        late_by_ns: u64,
    },
    /// There is no load process now.
    Aborted,
    /// There is no load process and no session now.
    Released,
    /// The request was not carried out.
    Refused {
        /// Why, as a sentence.
        because: String,
    },
    /// A report of a load process.
    Report {
        /// The number of the process on this agent, from 0.
        process: u32,
        /// The report.
        message: Box<ProcessMessage>,
    },
    /// A load process ended before it had reported its counts.
    Ended {
        /// The number of the process on this agent, from 0.
        process: u32,
        /// How it ended, as the rest of a sentence.
        how: String,
    },
    /// What the site answered.
    Site(Value),
}

/// What an agent says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version of the program, e.g. `0.1.0`.
    pub version: String,
    /// SHA-256 of the program, in hexadecimal digits.
    pub build: String,
    /// Format version of its reports, [`regatta_record::FORMAT`].
    pub format: u32,
    /// Architecture of the program, e.g. `x86_64`.
    pub arch: String,
    /// Number of CPUs that it may use.
    pub cores: u32,
    /// Number of connections that one of its load processes can open.
    pub connections: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::LeaderCommand;

    fn line(message: &impl Serialize) -> String {
        serde_json::to_string(message).unwrap()
    }

    #[test]
    fn messages_are_lines_of_json() {
        let to = |seq, body| line(&ToAgent { fleet: VERSION, session: 7, seq, body });
        assert_eq!(
            to(1, Request::Reserve { lease_ms: 10_000 }),
            r#"{"fleet":1,"session":7,"seq":1,"body":{"reserve":{"lease_ms":10000}}}"#
        );
        assert_eq!(to(2, Request::Renew), r#"{"fleet":1,"session":7,"seq":2,"body":"renew"}"#);
        let order = Order { order: LeaderCommand::OpenWindow, at_ns: Some(5) };
        assert_eq!(
            to(3, Request::Order(order)),
            r#"{"fleet":1,"session":7,"seq":3,"body":{"order":{"order":"open-window","at_ns":5}}}"#
        );
        let body = Answer::Taken { late_by_ns: 0 };
        let taken = FromAgent { fleet: VERSION, session: 7, seq: 3, body };
        assert_eq!(
            line(&taken),
            r#"{"fleet":1,"session":7,"seq":3,"body":{"taken":{"late_by_ns":0}}}"#
        );
        assert_eq!(serde_json::from_str::<FromAgent>(&line(&taken)).unwrap(), taken);
    }

    #[test]
    fn a_message_with_an_unknown_field_is_refused() {
        let text = r#"{"fleet":1,"session":7,"seq":2,"body":"renew","more":1}"#;
        let error = serde_json::from_str::<ToAgent>(text).unwrap_err().to_string();
        assert!(error.contains("unknown field `more`"), "{error}");
    }
}
