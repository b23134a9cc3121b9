//! How a process ended.

use serde::{Deserialize, Serialize};
use std::{fmt, os::unix::process::ExitStatusExt, process::ExitStatus};

/// How a process ended: by itself with a code, or by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Exit code.
    Code(i32),
    /// Number of the signal.
    Signal(i32),
}

impl Status {
    pub(crate) fn of_raw(wait_status: i32) -> Status {
        let status = ExitStatus::from_raw(wait_status);
        match (status.code(), status.signal()) {
            (Some(code), _) => Status::Code(code),
            (None, signal) => Status::Signal(signal.unwrap_or_default()),
        }
    }

    /// Whether it is exit code 0.
    pub fn is_success(self) -> bool {
        self == Status::Code(0)
    }
}

impl fmt::Display for Status {
    /// Writes e.g. `exited with status 1` or `was killed by signal 9 (SIGKILL)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Status::Code(code) => write!(f, "exited with status {code}"),
            Status::Signal(signal) => {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("unnamed");
                write!(f, "was killed by signal {signal} ({name})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_exit_code_or_the_signal() {
        assert_eq!(Status::of_raw(1 << 8).to_string(), "exited with status 1");
        assert_eq!(Status::of_raw(9).to_string(), "was killed by signal 9 (SIGKILL)");
    }
}
