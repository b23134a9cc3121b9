//! The kernel's count of how long this thread was runnable without a CPU, and how often it got one.

use rustix::io::pread;
use std::fs::File;

/// The run-queue delay of the thread that opened it, inside a window.
pub(crate) struct RunDelay {
    file: Option<File>,
    began: Option<Waited>,
    inside: Option<Waited>,
}

/// The kernel's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waited {
    delay_ns: u64,
    turns: u64,
}

impl RunDelay {
    /// For the calling thread. A kernel without `CONFIG_SCHED_INFO` has no such file.
    pub fn open() -> Self {
        let file = File::open("/proc/thread-self/schedstat").ok();
        RunDelay { file, began: None, inside: None }
    }

    /// The same thread, for another window.
    pub fn next(&mut self) -> Self {
        RunDelay { file: self.file.take(), began: None, inside: None }
    }

    /// The window opens.
    pub fn begins(&mut self) {
        self.began = self.read();
    }

    /// The window closes.
    pub fn ends(&mut self) {
        self.inside = self.read().zip(self.began).map(|(end, begin)| Waited {
            delay_ns: end.delay_ns.saturating_sub(begin.delay_ns),
            turns: end.turns.saturating_sub(begin.turns),
        });
    }

    /// Nanoseconds of delay inside the window; `None` if unknown.
    pub fn inside(&self) -> Option<u64> {
        self.inside.map(|waited| waited.delay_ns)
    }

    /// How often the thread got a CPU inside the window: after each sleep, and after each preemption.
    /// `None` if unknown.
    pub fn turns(&self) -> Option<u64> {
        self.inside.map(|waited| waited.turns)
    }

    /// `schedstat` contains the time on a CPU and the time waiting for one, both in nanoseconds, and the
    /// number of time slices (Documentation/scheduler/sched-stats.rst).
    fn read(&self) -> Option<Waited> {
        let mut buffer = [0; 64];
        let n = pread(self.file.as_ref()?, &mut buffer, 0).ok()?;
        let mut figures = std::str::from_utf8(&buffer[..n]).ok()?.split_whitespace().skip(1);
        let mut next = || figures.next()?.parse().ok();
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
        std::thread::yield_now();
        delay.ends();
        assert_eq!(delay.inside().is_some(), delay.file.is_some());
        let whole = delay.read();
        assert!(delay.inside() <= whole.map(|whole| whole.delay_ns));
        assert!(delay.turns() <= whole.map(|whole| whole.turns));
    }

    #[test]
    fn the_delay_and_the_turns_are_the_second_and_the_third_figure_of_the_kernel() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text| std::fs::write(file.path(), text).unwrap();
        let opened = File::open(file.path()).ok();
        let mut delay = RunDelay { file: opened, began: None, inside: None };
        write("1000 200 30\n");
        delay.begins();
        write("9000 205 37\n");
        delay.ends();
        assert_eq!((delay.inside(), delay.turns()), (Some(5), Some(7)));
    }
}
