//! How a contender stopped, and the sentence that describes the fault if it stopped wrongly.

use crate::process::{listed::Listed, status::Status};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a contender reacted to the request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All of its processes ended within the grace period.
    Obeyed,
    /// The started process was still running after the grace period.
    IgnoredSigterm,
    /// The started process ended within the grace period, but some of its descendants did not.
    LeftDescendants,
    /// The started process had already exited with status 0, while descendants kept running.
    Background,
    /// The started process had already ended before the request.
    EndedBefore,
}

/// What the supervisor saw of the stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stopped {
    pub ending: Ending,
    pub status: Option<Status>,
    pub killed: Listed,
    pub remaining: Listed,
    pub last_words: String,
    /// CPU time of its control group until its end.
    pub cpu_ns: Option<u64>,
}

/// How a contender stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReport {
    /// Name of the contender.
    pub name: String,
    /// How it reacted to the request.
    pub ending: Ending,
    /// How the started process ended.
    pub status: Option<Status>,
    /// The processes that had to be killed after the grace period.
    pub killed: Listed,
    /// The processes that survived SIGKILL, because they hang in the kernel.
    pub remaining: Listed,
    /// Whether the port is free again.
    pub port_free: bool,
    /// Its port.
    pub port: u16,
    /// Its grace period.
    pub grace: Duration,
    /// Its last output, at most 4 KiB.
    pub last_words: String,
    /// CPU time of all of its processes from their start to their end, nanoseconds; `None` without a control
    /// group of regatta's.
    pub cpu_ns: Option<u64>,
}

impl StopReport {
    /// Whether its measurements remain valid in spite of a fault: it served until it was asked to stop,
    /// then all of it obeyed or the started process had to be killed, and none of it remains. They are
    /// void if the started process ended and left descendants.
    pub fn keeps_results(&self) -> bool {
        let served = matches!(self.ending, Ending::Obeyed | Ending::IgnoredSigterm);
        served && self.remaining.is_empty() && self.port_free
    }

    /// Returns what was wrong with how it stopped, with the remedy if one is known; `None` if nothing
    /// was wrong.
    pub fn fault(&self) -> Option<String> {
        let StopReport { name, grace, .. } = self;
        let grace = grace.as_secs_f64();
        let pids = &self.killed;
        let mut fault = match self.ending {
            Ending::Obeyed => None,
            Ending::IgnoredSigterm => Some(format!(
                "{name} ignored SIGTERM for {grace} s and had to be killed ({pids}): \
                 make it exit on SIGTERM"
            )),
            Ending::LeftDescendants => Some(format!(
                "{name} ended on SIGTERM but left {} processes that had to be killed after {grace} s \
                 ({pids}): make it stop its children and wait for them",
                self.killed.len()
            )),
            Ending::Background => Some(background(name)),
            Ending::EndedBefore => {
                let status = self.status.map_or("ended".to_string(), |status| status.to_string());
                let words = last_words(&self.last_words);
                Some(format!("{name} {status} before it was asked to stop{words}"))
            }
        };
        if !self.remaining.is_empty() {
            fault = Some(format!(
                "processes of {name} survived SIGKILL: {}; they hang in the kernel; restart the \
                 machine",
                self.remaining
            ));
        } else if !self.port_free && fault.is_none() {
            fault = Some(format!(
                "{name} ended, but a process still listens on port {}; find it with `ss -ltnp`",
                self.port
            ));
        }
        fault
    }
}

/// Returns the message for a contender that moved into the background.
pub fn background(name: &str) -> String {
    format!(
        "{name} put itself into the background: its start command exited with status 0 while its \
         processes kept running. Start it in the foreground (most servers have a flag for that), so \
         that it can be observed and stopped"
    )
}

/// Returns `; its last output: …`, or an empty string.
pub fn last_words(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("; its last output: {words}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tree::Process;

    fn report(ending: Ending) -> StopReport {
        StopReport {
            name: "node".into(),
            ending,
            status: Some(Status::Code(3)),
            killed: (1..=7).map(|pid| Process { pid, name: "w".into() }).collect::<Vec<_>>().into(),
            remaining: Listed::default(),
            port_free: true,
            port: 4001,
            grace: Duration::from_millis(1500),
            last_words: "oops".into(),
            cpu_ns: None,
        }
    }

    #[test]
    fn a_clean_stop_has_no_fault_unless_the_port_is_held() {
        let mut clean = report(Ending::Obeyed);
        assert_eq!(clean.fault(), None);
        clean.port_free = false;
        assert!(clean.fault().unwrap().contains("still listens on port 4001"));
    }

    #[test]
    fn each_fault_names_its_cause() {
        let ignored = report(Ending::IgnoredSigterm).fault().unwrap();
        assert!(ignored.contains("ignored SIGTERM for 1.5 s"), "{ignored}");
        assert!(ignored.contains("w (5), and 2 more"), "{ignored}");
        let left = report(Ending::LeftDescendants).fault().unwrap();
        assert!(left.contains("left 7 processes"), "{left}");
        let before = report(Ending::EndedBefore).fault().unwrap();
        assert!(before.contains("exited with status 3") && before.contains("oops"), "{before}");
        assert!(report(Ending::Background).fault().unwrap().contains("foreground"));
    }
}
