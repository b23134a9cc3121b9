//! The errors that end a race.

use std::{io, net::SocketAddr};

/// A fault of the machine, not of the contender; the race cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The load could not run.
    #[error("{0}")]
    Load(#[from] regatta_load::Error),
    /// A system call failed unexpectedly.
    #[error("cannot {what}: {error}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// A contender is ready on its machine, and this machine cannot connect to it.
    #[error(
        "port {} of {} is not reachable from this machine: is there a firewall? ({error})",
        address.port(), address.ip()
    )]
    Unreachable {
        /// Where it listens.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The agent on the contenders' machine is lost, or cannot do what it must.
    #[error("{0}")]
    Server(regatta_fleet::Error),
}
