//! The errors that a load can return.

use std::io;

/// Why a load has no result at all. A contender that answers wrongly or dies under load is not an
/// error: the [`crate::Tally`] records it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan contradicts itself or a limit.
    #[error("{0}")]
    Plan(String),
    /// The descriptor limit is too low for the connections.
    #[error(
        "{wanted} connections need more descriptors than the limit permits: at most {possible} are \
         possible; raise the hard limit (ulimit -Hn)"
    )]
    Descriptors {
        /// Connections that the plan needs.
        wanted: usize,
        /// Connections that are possible within the limit.
        possible: usize,
    },
    /// A load process failed. The others were killed.
    #[error("load process {number} of {processes} {because}")]
    Process {
        /// Its number, counted from 1.
        number: usize,
        /// Number of load processes.
        processes: usize,
        /// What happened, as the rest of a sentence.
        because: String,
    },
    /// An agent failed, or the connection to it. The load was ended on all agents.
    #[error("agent {name} {because}")]
    Agent {
        /// Its name.
        name: String,
        /// What happened, as the rest of a sentence.
        because: String,
    },
    /// The server closed so many connections of members of a hub on an agent that it cannot be known
    /// whether the deliveries to that agent were right.
    #[error("{name} {because}")]
    Unverified {
        /// What to call the agent.
        name: String,
        /// What is not known, as the rest of a sentence.
        because: String,
    },
    /// Not all connections could be opened. A connection is open once it received its first reply, which
    /// must be correct unless errors are tolerated.
    #[error("{opened} of {wanted} connections got a correct first reply; last error: {last}")]
    NotOpened {
        /// Maximum number of connections that were open at a time.
        opened: usize,
        /// Connections that the plan needs.
        wanted: usize,
        /// The error of the last attempt, or "none".
        last: String,
    },
    /// TLS failed before any reply, e.g. because the server does not speak it; or the server's
    /// certificate is not acceptable.
    #[error("{0}")]
    Tls(String),
    /// A system call failed that the load itself needs.
    #[error("the load cannot {what}: {error}")]
    Machine {
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}
