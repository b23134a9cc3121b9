//! The CPU time of the whole machine between two moments, from `/proc/stat`: of all processes, of the kernel and of
//! interrupts, also of those that are charged to no process.
//!
//! It is taken from the time in which CPUs were idle. A kernel that stops the timer tick of an idle CPU (NO_HZ, as
//! usual) counts that exactly (`get_cpu_idle_time_us`), and an interrupt on an idle CPU is not part of it. The busy
//! times beside it are only sampled at ticks by most kernels, and a program that sleeps at each tick evades them.

use regatta_record::MachineUse;
use std::{fs::File, os::unix::fs::FileExt, time::Instant};

/// The lines of the CPUs come first, at most about 100 bytes each, so this is enough for 1,300 CPUs.
const LONGEST: usize = 1 << 17;

/// Measures the CPU time of the machine between two calls.
#[derive(Debug, Default)]
pub struct MachineMeter {
    file: Option<File>,
    text: Vec<u8>,
    first: Option<(Instant, Ticks)>,
    last: Option<(Instant, Ticks)>,
}

/// If no counter grew in so much time of all CPUs together, nanoseconds, the kernel counts nothing.
const STANDS_STILL_NS: u128 = 100_000_000;

/// Sums over all CPUs, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    /// CPUs that are online.
    cpus: u64,
    /// Without work.
    idle: u64,
    /// Without work while a disk is waited for.
    waiting: u64,
    interrupts: u64,
    /// Given to other guests of the hypervisor.
    stolen: u64,
    /// All of that, and the time of processes.
    all: u64,
}

impl MachineMeter {
    /// Returns the CPU time since the last call; `None` at the first call, if the kernel does not report it (some sandboxes
    /// have counters that stand still), or if a CPU was switched on or off. It takes 0.1 ms.
    pub fn lap(&mut self) -> Option<MachineUse> {
        let now = self.read();
        let last = std::mem::replace(&mut self.last, now);
        let ((now, ticks), (then, before)) = (now?, last?);
        let (began, first) = *self.first.get_or_insert((then, before));
        let used = ticks.since(&before, (now - then).as_nanos() as u64)?;
        let is_counted = ticks.all != first.all || {
            (now - began).as_nanos() * u128::from(ticks.cpus) < STANDS_STILL_NS
        };
        is_counted.then(|| MachineUse { counters: ticks.grown(&first), ..used })
    }

    fn read(&mut self) -> Option<(Instant, Ticks)> {
        if self.file.is_none() {
            self.file = File::open("/proc/stat").ok();
            self.text = vec![0; LONGEST];
        }
        let at = Instant::now();
        let n = self.file.as_ref()?.read_at(&mut self.text, 0).ok()?;
        Some((at, Ticks::parse(&String::from_utf8_lossy(&self.text[..n]))?))
    }
}

impl Ticks {
    /// Reads the lines `cpu` and `cpu0`, `cpu1` and so on (proc_stat(5)).
    fn parse(stat: &str) -> Option<Ticks> {
        let mut all = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let mut ticks = [0; 8];
        for tick in &mut ticks {
            *tick = all.next()?.parse().ok()?;
        }
        let [_, _, _, idle, waiting, hard, soft, stolen] = ticks;
        let (interrupts, all) = (hard + soft, ticks.iter().sum());
        let cpus = stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).count() as u64;
        (cpus > 0).then_some(Ticks { cpus, idle, waiting, interrupts, stolen, all })
    }

    /// How many of the counters that CPU time is taken from have grown.
    fn grown(&self, before: &Ticks) -> u8 {
        let pairs = [
            (self.idle, before.idle),
            (self.waiting, before.waiting),
            (self.stolen, before.stolen),
        ];
        pairs.into_iter().map(|(now, then)| u8::from(now != then)).sum()
    }

    /// The CPU time in `ns` nanoseconds, which ended now. The time that a CPU waits for a disk may fall (proc_stat(5)),
    /// so a counter that fell counts as such.
    fn since(&self, before: &Ticks, ns: u64) -> Option<MachineUse> {
        let grown = |now: u64, then: u64| (now as i64 - then as i64) * MachineUse::STEP_NS as i64;
        let idle_ns = grown(self.idle, before.idle)
            + grown(self.waiting, before.waiting)
            + grown(self.stolen, before.stolen);
        let all_ns = i64::try_from(ns.checked_mul(self.cpus)?).ok()?;
        (self.cpus == before.cpus).then(|| MachineUse {
            spans: 1,
            ns,
            busy_ns: all_ns - idle_ns,
            interrupts_ns: grown(self.interrupts, before.interrupts).max(0) as u64,
            counters: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{thread, time::Duration};

    const STAT: &str = "cpu  10 1 12 300 20 4 6 7 2 0\ncpu0 5 0 5 5 1 2 3 40 0 0\n\
                        cpu1 5 0 5 5 1 2 3 37 0 0\nintr 7 0 0 0\nctxt 4\n";

    #[test]
    fn all_that_is_neither_idle_nor_stolen_is_cpu_time() {
        let before = Ticks::parse(STAT).unwrap();
        let expected =
            Ticks { cpus: 2, idle: 300, waiting: 20, interrupts: 10, stolen: 7, all: 360 };
        assert_eq!(before, expected);
        let later = Ticks { idle: 370, interrupts: 15, stolen: 17, ..before };
        // 2 CPUs for a second, of which 0.7 s were idle and 0.1 s stolen.
        let used = later.since(&before, 1_000_000_000).unwrap();
        let expected = MachineUse {
            spans: 1,
            ns: 1_000_000_000,
            busy_ns: 1_200_000_000,
            interrupts_ns: 50_000_000,
            counters: 0,
        };
        assert_eq!(used, expected);
        assert_eq!(later.grown(&before), 2, "idle and stolen");
        let less = Ticks { waiting: 19, ..before };
        assert_eq!(less.since(&before, 0).unwrap().busy_ns, 10_000_000, "iowait fell");
        assert_eq!(Ticks { cpus: 1, ..later }.since(&before, 1), None, "a CPU went offline");
    }

    #[test]
    fn a_text_without_its_figures_is_not_known() {
        let refused =
            ["", "cpu  1 2 3\ncpu0 1 2 3\n", "cpu  1 2 3 4 5 6 7 8\nintr 1\n", "intr 1\n"];
        assert_eq!(refused.map(Ticks::parse), [None; 4]);
    }

    #[test]
    fn a_thread_that_spins_is_in_it() {
        let mut meter = MachineMeter::default();
        assert_eq!(meter.lap(), None);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(200) {}
        let used = meter.lap().unwrap();
        // Another program may take the CPU, which is no less busy then; a hypervisor may take it, too.
        assert!(used.ns >= 200_000_000 && used.busy_ns > 100_000_000, "{used:?}");
        assert!(used.busy_ns as u64 <= used.ns * meter.last.unwrap().1.cpus + 20_000_000);
        assert!(used.counters <= 3, "none of them grows while all CPUs are busy: {used:?}");
    }

    #[test]
    fn counters_that_stand_still_are_no_cpu_time() {
        let stat = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(stat.path(), "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n")
            .unwrap();
        let (file, text) = (File::open(stat.path()).ok(), vec![0; LONGEST]);
        let mut meter = MachineMeter { file, text, ..MachineMeter::default() };
        assert_eq!(meter.lap(), None);
        thread::sleep(Duration::from_millis(110));
        assert_eq!(meter.lap(), None, "it looks as if all CPUs were busy");
    }
}
