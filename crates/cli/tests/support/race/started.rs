//! A race that was started, and its result.

use crate::support::race::course::until;
use regatta_record::{Kind, Summary, Verdict};
use regatta_testkit::child::Killed;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

/// A running race, killed when dropped.
pub struct Started {
    pub child: Killed,
    /// Files that its output goes to.
    pub stdout: PathBuf,
    pub stderr: PathBuf,
}

impl Started {
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    pub fn ended(mut self) -> Ended {
        let mut status = None;
        until("the race ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let (stdout, stderr) = (read(&self.stdout), read(&self.stderr));
        Ended { status: status.unwrap(), stdout, stderr }
    }
}

#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Asserts on the exit status.
    #[track_caller]
    pub fn with_status(self, code: i32) -> Ended {
        assert_eq!(self.status.code(), Some(code), "{}", self.stderr);
        self
    }

    /// Asserts that no contender failed or was disqualified. On a busy machine a short race may not yield a cost
    /// that is trusted, which is status 1; `race::gate` tests exit statuses with simulated rounds.
    #[track_caller]
    pub fn raced(self) -> Ended {
        let is_fault =
            |line: &&str| line.starts_with("failed: ") || line.starts_with("disqualified: ");
        let fault = self.stderr.lines().find(is_fault);
        assert!(fault.is_none(), "{}", self.stderr);
        self.judged()
    }

    /// Asserts that the race was judged. A few rounds on a busy machine may not yield a cost, which is
    /// status 1.
    #[track_caller]
    pub fn judged(self) -> Ended {
        assert!(matches!(self.status.code(), Some(0 | 1)), "{}", self.stderr);
        self
    }

    /// Parses the output of `--json -`.
    #[track_caller]
    pub fn summary(&self) -> Summary {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {:?}; stderr: {}", self.stdout, self.stderr))
    }

    /// Returns the verdict on the only cell of `contender`.
    #[track_caller]
    pub fn verdict(&self, contender: &str) -> Verdict {
        let cells = self.summary().cells;
        let mut found = cells.into_iter().filter(|cell| cell.contender == contender);
        let verdict = found.next().expect("a cell").verdict;
        assert!(found.next().is_none(), "{contender} has more than one cell");
        verdict
    }

    /// Asserts on a verdict: its kind, and that its reason contains each of `said`.
    #[track_caller]
    pub fn assert_verdict(&self, contender: &str, kind: Kind, said: &[&str]) {
        let verdict = self.verdict(contender);
        assert_eq!(verdict.kind(), kind, "{verdict:?}");
        for part in said {
            assert!(verdict.because().contains(part), "no {part:?} in {:?}", verdict.because());
        }
    }

    /// Asserts that stderr contains each of `said`.
    #[track_caller]
    pub fn assert_printed(&self, said: &[&str]) {
        for part in said {
            assert!(self.stderr.contains(part), "no {part:?} in {}", self.stderr);
        }
    }
}
