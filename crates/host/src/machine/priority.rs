//! The priority of a race over other programs of the machine: one that runs for 3 ms in the middle of a slice
//! changes what a request costs, and delays replies.

use rustix::process::{getpriority_process, setpriority_process};
use std::fs;

/// The highest priority of ordinary processes (setpriority(2)).
const HIGHEST: i32 = -20;
/// The priority of the processes of a session together, relative to other sessions (sched(7), autogroup).
const SESSION: &str = "/proc/self/autogroup";

/// A raised priority of this process and of all that it starts. Dropping it gives the session back its own.
#[derive(Debug)]
pub struct Priority {
    session: Option<i32>,
}

impl Priority {
    /// Raises the priority, if the kernel permits it: only root may.
    pub fn raise() -> Priority {
        // Without the right to do so, it stays as it is.
        let _ = setpriority_process(None, HIGHEST);
        let text = fs::read_to_string(SESSION).ok();
        let session = text.and_then(|text| nice_of_session(&text));
        let raised = session.filter(|_| fs::write(SESSION, HIGHEST.to_string()).is_ok());
        Priority { session: raised }
    }

    /// Returns the nice value of this process: −20 is the highest priority, 0 the usual one.
    pub fn now() -> Option<i32> {
        getpriority_process(None).ok()
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        if let Some(nice) = self.session {
            // An error leaves a priority that only matters between sessions.
            let _ = fs::write(SESSION, nice.to_string());
        }
    }
}

/// `/autogroup-25 nice 0`
fn nice_of_session(text: &str) -> Option<i32> {
    text.rsplit_once(" nice ")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_nice_value_of_a_session() {
        assert_eq!(nice_of_session("/autogroup-25 nice -5\n"), Some(-5));
        assert_eq!(nice_of_session(""), None);
    }
}
