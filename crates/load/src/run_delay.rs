//! How long this thread was runnable and had no CPU, as the kernel counts it.

use rustix::io::pread;
use std::fs::File;

/// The run-queue delay of the thread that opened it, inside a window.
pub(crate) struct RunDelay {
    file: Option<File>,
    began: Option<u64>,
    inside: Option<u64>,
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
        self.inside = self.read().zip(self.began).map(|(end, begin)| end.saturating_sub(begin));
    }

    /// Nanoseconds inside the window; `None` where they are not known.
    pub fn inside(&self) -> Option<u64> {
        self.inside
    }

    /// `schedstat` has the time on a CPU, the time waiting for one, both in nanoseconds, and the
    /// number of turns (Documentation/scheduler/sched-stats.rst).
    fn read(&self) -> Option<u64> {
        let mut buffer = [0; 64];
        let n = pread(self.file.as_ref()?, &mut buffer, 0).ok()?;
        std::str::from_utf8(&buffer[..n]).ok()?.split_whitespace().nth(1)?.parse().ok()
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
        assert!(delay.inside() <= delay.read());
    }
}
