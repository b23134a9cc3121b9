//! How long this thread was runnable and had no CPU, and how often it got one, as the kernel counts.

use rustix::io::pread;
use std::fs::File;

/// The run-queue delay of the thread that opened it, inside a window.
pub(crate) struct RunDelay {
    file: Option<File>,
    began: Option<Waited>,
    inside: Option<Waited>,
}

/// What a thread waited for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waited {
    pub delay_ns: u64,
    /// How often it was given a CPU.
    pub turns: u64,
}

impl Waited {
    fn since(self, before: Waited) -> Waited {
        Waited {
            delay_ns: self.delay_ns.saturating_sub(before.delay_ns),
            turns: self.turns.saturating_sub(before.turns),
        }
    }

    /// Two threads together.
    pub fn plus(self, other: Waited) -> Waited {
        Waited { delay_ns: self.delay_ns + other.delay_ns, turns: self.turns + other.turns }
    }
}

impl RunDelay {
    /// Of this thread. A kernel without `CONFIG_SCHED_INFO` has no such file.
    pub fn open() -> Self {
        let file = File::open("/proc/thread-self/schedstat").ok();
        RunDelay { file, began: None, inside: None }
    }

    /// The window begins.
    pub fn begins(&mut self) {
        self.began = self.read();
    }

    /// The window ends.
    pub fn ends(&mut self) {
        self.inside = self.read().zip(self.began).map(|(end, begin)| end.since(begin));
    }

    /// Inside the window; `None` where it is not known.
    pub fn inside(&self) -> Option<Waited> {
        self.inside
    }

    /// `schedstat` has the time on a CPU, the time waiting for one, both in nanoseconds, and the
    /// number of turns (Documentation/scheduler/sched-stats.rst).
    fn read(&self) -> Option<Waited> {
        let mut buffer = [0; 64];
        let n = pread(self.file.as_ref()?, &mut buffer, 0).ok()?;
        let mut numbers = std::str::from_utf8(&buffer[..n]).ok()?.split_whitespace().skip(1);
        let mut next = || numbers.next()?.parse().ok();
        Some(Waited { delay_ns: next()?, turns: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_inside_a_window_is_no_more_than_the_whole() {
        let mut delay = RunDelay::open();
        delay.begins();
        std::thread::sleep(std::time::Duration::from_millis(1));
        delay.ends();
        assert_eq!(delay.inside().is_some(), delay.file.is_some());
        if let (Some(inside), Some(whole)) = (delay.inside(), delay.read()) {
            assert!((1..=whole.turns).contains(&inside.turns), "{inside:?} of {whole:?}");
            assert!(inside.delay_ns <= whole.delay_ns, "{inside:?} of {whole:?}");
        }
    }
}
