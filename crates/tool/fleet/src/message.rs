//! The messages between a leader and an agent: lines of JSON.
//!
//! The agent first introduces itself ([`Hello`]). A leader sends nothing to another build, so no further
//! message has a version. It sends requests, numbered upwards from 1, and the agent answers each with its
//! number. Reports of load processes come without a request and have the number 0.
//!
//! A pipe, and the stream over NATS, deliver each message once and in order, so an agent does not look for
//! repetitions.

use regatta_load::{Order, Plan};
use regatta_record::{Part, ProcessMessage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// How long an agent continues without any message of its leader, unless the leader sets another lease.
pub const LEASE: Duration = Duration::from_secs(10);

/// A message to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToAgent {
    /// The number of the request.
    pub seq: u64,
    /// The request.
    pub body: Request,
}

/// A request of a leader.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Sets the lease: the agent exits once no message came for so long.
    Lease {
        /// Its length, in milliseconds.
        ms: u64,
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
    /// Kills all load processes, and ends what the site runs.
    Abort,
    /// Asks the agent's [`Site`](crate::Site), after what it was asked before.
    Site(Value),
}

impl Request {
    /// Whether this is what an agent answers that carried the request out.
    pub(crate) fn is_answered_by(&self, answer: &Answer) -> bool {
        matches!(
            (self, answer),
            (Request::Lease { .. } | Request::Renew, Answer::Pulse)
                | (Request::Clock, Answer::Clock { .. })
                | (Request::Prepare { .. }, Answer::Prepared { .. })
                | (Request::Order(_), Answer::Taken { .. })
                | (Request::Abort, Answer::Aborted)
                | (Request::Site(_), Answer::Site(_))
        )
    }
}

/// A message from an agent. The first one may have other fields, because the agent may be another build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FromAgent {
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
    /// The agent is alive, and the lease is renewed.
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

/// What an agent says of itself. Every build sends at least its version and its hash, by which a leader of
/// another build names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the program, e.g. `0.1.0`.
    pub version: String,
    /// SHA-256 of the program, in hexadecimal digits.
    pub build: String,
    /// Number of CPUs that it may use.
    #[serde(default)]
    pub cores: u32,
    /// Number of connections that one of its load processes can open.
    #[serde(default)]
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
        let to = |seq, body| line(&ToAgent { seq, body });
        let lease = to(1, Request::Lease { ms: 10_000 });
        assert_eq!(lease, r#"{"seq":1,"body":{"lease":{"ms":10000}}}"#);
        assert_eq!(to(2, Request::Renew), r#"{"seq":2,"body":"renew"}"#);
        let order = Order { order: LeaderCommand::OpenWindow, at_ns: Some(5) };
        assert_eq!(
            to(3, Request::Order(order)),
            r#"{"seq":3,"body":{"order":{"order":"open-window","at_ns":5}}}"#
        );
        let taken = FromAgent { seq: 3, body: Answer::Taken { late_by_ns: 0 } };
        assert_eq!(line(&taken), r#"{"seq":3,"body":{"taken":{"late_by_ns":0}}}"#);
        assert_eq!(serde_json::from_str::<FromAgent>(&line(&taken)).unwrap(), taken);
    }

    #[test]
    fn another_build_that_says_more_or_less_of_itself_is_known_by_its_hash() {
        for (outer, inner) in [
            ("", ""),
            (
                r#""fleet":1,"session":0,"#,
                r#","format":3,"arch":"x86_64","cores":4,"connections":9"#,
            ),
        ] {
            let text = format!(
                r#"{{{outer}"seq":0,"body":{{"hello":{{"version":"9","build":"ab"{inner}}}}}}}"#
            );
            let message: FromAgent = serde_json::from_str(&text).unwrap();
            let Answer::Hello(hello) = message.body else { panic!("{text}") };
            assert_eq!((hello.version.as_str(), hello.build.as_str()), ("9", "ab"));
        }
    }

    #[test]
    fn a_request_with_an_unknown_field_is_refused() {
        let text = r#"{"seq":2,"body":"renew","more":1}"#;
        let error = serde_json::from_str::<ToAgent>(text).unwrap_err().to_string();
        assert!(error.contains("unknown field `more`"), "{error}");
    }
}
