//! The CPU time of the whole machine, to see work that is done for a contender by processes that are not its
//! own: kernel threads, daemons, siblings in another control group.

use std::{fs::File, os::unix::fs::FileExt};

/// Reads the CPU time of the root control group: all tasks of the machine (in a container: all that it sees).
#[derive(Debug)]
pub struct MachineClock {
    file: File,
    /// The name of the figure, in version 2.
    key: Option<&'static str>,
    /// Nanoseconds per unit of the figure.
    scale: u64,
}

impl MachineClock {
    /// Opens it; `None` if the kernel does not report this.
    pub fn open() -> Option<MachineClock> {
        let v1 =
            ["/sys/fs/cgroup/cpuacct/cpuacct.usage", "/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage"];
        let v2 = ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/unified/cpu.stat"];
        let open = |paths: [&str; 2], key, scale| {
            let file = paths.iter().find_map(|path| File::open(path).ok())?;
            Some(MachineClock { file, key, scale }).filter(|clock| clock.read_ns().is_some())
        };
        open(v1, None, 1).or_else(|| open(v2, Some("usage_usec "), 1_000))
    }

    /// Returns the CPU time until now, nanoseconds; that of a running thread since the last timer tick may be
    /// missing.
    pub fn read_ns(&self) -> Option<u64> {
        let mut buffer = [0; 512];
        let n = self.file.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..n]).ok()?;
        let figure = match self.key {
            None => text,
            Some(key) => text.lines().find_map(|line| line.strip_prefix(key))?,
        };
        Some(figure.trim().parse::<u64>().ok()? * self.scale)
    }
}
