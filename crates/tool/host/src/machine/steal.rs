//! Stolen time: time of some CPUs that the hypervisor gave to other guests between two moments.

use rustix::param::clock_ticks_per_second;
use std::{fs, time::Instant};

/// The stolen time until one moment.
#[derive(Clone, Copy, Debug)]
pub struct Steal {
    at: Instant,
    ticks: u64,
    cpus: u32,
}

impl Steal {
    /// Reads `/proc/stat`, which takes 0.1 ms; `None` if it has none of `cpus`.
    pub fn of(cpus: &[u32]) -> Option<Steal> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let (ticks, found) = stolen(&text, cpus);
        (found > 0).then(|| Steal { at: Instant::now(), ticks, cpus: found })
    }

    /// Returns the stolen share of the CPUs' time since `earlier`. It has steps of a clock tick (10
    /// ms), so the smallest share in a window of 2 s is 0.5% of a CPU.
    pub fn since(&self, earlier: &Steal) -> Option<f64> {
        let seconds = (self.at - earlier.at).as_secs_f64() * f64::from(self.cpus);
        let ticks = self.ticks.checked_sub(earlier.ticks)? as f64;
        (self.cpus == earlier.cpus && seconds > 0.0)
            .then(|| ticks / clock_ticks_per_second() as f64 / seconds)
    }
}

/// Returns the sum of the eighth figures of the CPUs' lines (proc_stat(5)), and the number of these
/// lines.
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
    fn counts_only_the_given_cpus() {
        assert_eq!(stolen(STAT, &[0, 1]), (77, 2));
        assert_eq!(stolen(STAT, &[1]), (37, 1));
        assert_eq!(stolen(STAT, &[7]), (0, 0));
        assert!(Steal::of(&[u32::MAX]).is_none());
        assert!(Steal::of(&[0]).is_some());
    }

    #[test]
    fn the_share_is_relative_to_all_cpus_and_the_whole_time() {
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
