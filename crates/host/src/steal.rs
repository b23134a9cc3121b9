//! Time that the hypervisor gave to others, of some CPUs, between two moments.

use rustix::param::clock_ticks_per_second;
use std::{fs, time::Instant};

/// Until now.
#[derive(Clone, Copy, Debug)]
pub struct Steal {
    at: Instant,
    ticks: u64,
    cpus: u32,
}

impl Steal {
    /// Reads `/proc/stat`; `None` where it has none of `cpus`. Takes a tenth of a millisecond.
    pub fn of(cpus: &[u32]) -> Option<Steal> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let (ticks, found) = stolen(&text, cpus);
        (found > 0).then(|| Steal { at: Instant::now(), ticks, cpus: found })
    }

    /// Share of the time of the CPUs since `earlier`. It comes in steps of a clock tick (10 ms),
    /// so a window of 2 s tells no less than half a percent of a CPU.
    pub fn since(&self, earlier: &Steal) -> Option<f64> {
        let seconds = (self.at - earlier.at).as_secs_f64() * f64::from(self.cpus);
        let ticks = self.ticks.checked_sub(earlier.ticks)? as f64;
        (self.cpus == earlier.cpus && seconds > 0.0)
            .then(|| ticks / clock_ticks_per_second() as f64 / seconds)
    }
}

/// The eighth figure of each CPU's line (proc_stat(5)), summed, and how many lines there were.
fn stolen(stat: &str, cpus: &[u32]) -> (u64, u32) {
    let of_line = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let cpu: u32 = fields.next()?.parse().ok()?;
        let ticks: u64 = fields.nth(7)?.parse().ok()?;
        cpus.contains(&cpu).then_some(ticks)
    };
    stat.lines().filter_map(of_line).fold((0, 0), |(sum, n), ticks| (sum + ticks, n + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const STAT: &str = "cpu  10 0 10 10 0 0 0 77 0 0\ncpu0 5 0 5 5 1 2 3 40 0 0\n\
                        cpu1 5 0 5 5 1 2 3 37 0 0\nintr 7 0 0 0 0 0 0 0 99\nctxt 4\n";

    #[test]
    fn only_the_cpus_asked_for_count() {
        assert_eq!(stolen(STAT, &[0, 1]), (77, 2));
        assert_eq!(stolen(STAT, &[1]), (37, 1));
        assert_eq!(stolen(STAT, &[7]), (0, 0));
        assert!(Steal::of(&[u32::MAX]).is_none());
        assert!(Steal::of(&[0]).is_some());
    }

    #[test]
    fn a_share_is_of_all_cpus_and_all_of_the_time() {
        let at = Instant::now();
        let earlier = Steal { at, ticks: 100, cpus: 2 };
        let later = |ticks, cpus| Steal { at: at + Duration::from_secs(2), ticks, cpus };
        let tick = 1.0 / clock_ticks_per_second() as f64;
        let share = later(140, 2).since(&earlier).unwrap();
        assert!((share - 40.0 * tick / 4.0).abs() < 1e-12, "{share}");
        assert_eq!(later(100, 2).since(&earlier), Some(0.0));
        assert_eq!(later(140, 1).since(&earlier), None, "a CPU went offline");
    }
}
