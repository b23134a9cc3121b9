//! How a contender stopped, and the sentence that says what was wrong with that.

use crate::{listed::Listed, status::Status};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a contender took the request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All of it ended within the grace.
    Obeyed,
    /// The started process was still there after the grace.
    IgnoredSigterm,
    /// The started process ended within the grace, descendants of it did not.
    LeftDescendants,
    /// The started process had exited with status 0 before, and descendants went on.
    Background,
    /// The started process had ended before it was asked to.
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
}

/// How a contender stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReport {
    /// Name of the contender.
    pub name: String,
    /// How it took the request.
    pub ending: Ending,
    /// How the started process ended.
    pub status: Option<Status>,
    /// Who was still there after the grace and had to be killed.
    pub killed: Listed,
    /// Who is still there after SIGKILL; processes that hang in the kernel.
    pub remaining: Listed,
    /// Whether the port is free again.
    pub port_free: bool,
    /// Its port.
    pub port: u16,
    /// The grace that it was given.
    pub grace: Duration,
    /// Its last output, at most 4 KiB.
    pub last_words: String,
}

impl StopReport {
    /// Whether what it measured stands all the same: it had to be killed, but served until it was
    /// asked to stop, and nothing of it remains.
    pub fn voids_nothing(&self) -> bool {
        let served = matches!(self.ending, Ending::Obeyed | Ending::IgnoredSigterm);
        served && self.remaining.is_empty() && self.port_free
    }

    /// What was wrong with how it stopped, with the remedy; `None` if nothing.
    pub fn fault(&self) -> Option<String> {
        let StopReport { name, grace, .. } = self;
        let grace = grace.as_secs_f64();
        let pids = &self.killed;
        let mut fault = match self.ending {
            Ending::Obeyed => None,
            Ending::IgnoredSigterm => Some(format!(
                "{name} ignored SIGTERM for {grace} s and had to be killed ({pids}): \
                 let it end on SIGTERM"
            )),
            Ending::LeftDescendants => Some(format!(
                "{name} ended on SIGTERM but left {} processes that had to be killed after {grace} s \
                 ({pids}): let it end its children and wait for them",
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
                "{} of {name} survived SIGKILL: they hang in the kernel; restart the machine",
                self.remaining
            ));
        } else if !self.port_free && fault.is_none() {
            fault = Some(format!(
                "{name} ended, but somebody still listens on port {}; see `ss -ltnp`",
                self.port
            ));
        }
        fault
    }
}

/// The sentence about a contender that leaves the foreground.
pub fn background(name: &str) -> String {
    format!(
        "{name} put itself into the background: its start command exited with status 0 while \
         processes of it went on. Start it in the foreground (most servers have a flag for it), so \
         that it can be watched and stopped"
    )
}

/// `; its last words: …`, or nothing.
pub fn last_words(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("; its last words: {words}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

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
