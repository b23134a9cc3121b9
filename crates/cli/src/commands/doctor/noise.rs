//! Judges the noise that the self-test measured: uneven speed, stalls, stolen time, late wake-ups.
//! Everything is pure except [`checks`], which runs the test.

use super::{
    check::{Check, Mark},
    selftest::{OfCpu, Piece, run},
};
use console::Term;
use regatta_report::time;

/// Runs the self-test for two seconds and judges its result.
pub fn checks() -> Vec<Check> {
    let term = Term::stderr();
    let on_terminal = term.is_term();
    if on_terminal {
        // The hint is optional, so errors are ignored.
        let _ = term.write_str("self-test, 2 s…");
    }
    let seen = run();
    if on_terminal {
        let _ = term.clear_line();
    }
    judge(&seen)
}

fn judge(seen: &[OfCpu]) -> Vec<Check> {
    vec![speed(seen), stalls(seen), steal(seen), wake_ups(seen)]
}

/// Pieces of work in a block, which takes about a tenth of a second.
const BLOCK: usize = 100;
/// Half-width of the interval of a ratio, divided by the standard deviation of one round:
/// t(0.975; 6) · √2 / √7 for 7 rounds (Student).
const FLOOR_OVER_DEVIATION: f64 = 2.447 * std::f64::consts::SQRT_2 / 2.645_75;
/// Noise floors above which a race shows only large differences, and hardly any.
const FLOOR_TO_NOTE: f64 = 0.02;
const FLOOR_TO_WARN: f64 = 0.05;
/// Relative difference of two speeds that is reported.
const APART: f64 = 0.05;

/// Judges whether the same work always costs the same, on all CPUs.
fn speed(seen: &[OfCpu]) -> Check {
    const NAME: &str = "speed";
    let Some(deviation) = deviation(seen) else { return unknown(NAME) };
    let floor = FLOOR_OVER_DEVIATION * deviation;
    let floor_text = format!("with 7 rounds a noise floor of about ±{}", percent(floor));
    let check = |found: String| Check::ok(NAME, found);
    let more = "Give the race more time (`--time 3m`), or more rounds (`--rounds 20`).";
    if let Some((share, apart)) = two_speeds(seen) {
        return check(format!(
            "two speeds: {} of the work took {} longer; {floor_text}",
            percent(share),
            percent(apart)
        ))
        .marked(
            Mark::Warn,
            format!(
                "The CPUs change their speed by {}. Contenders that take turns are compared at the same \
                 speed; of those raced in rounds, expect {floor_text}.",
                percent(apart)
            ),
            "Fix the frequency (`cpupower frequency-set -g performance`, turbo off), keep hardware \
             threads that share a core idle, use a dedicated machine, or give the race \
             more time (`--time 3m`).",
        );
    }
    if let Some((cpu, slower, than)) = slowest(seen) {
        return check(format!("CPU {cpu} is {} slower than CPU {than}", percent(slower))).marked(
            Mark::Note,
            "The cost of a server depends on the CPU on which it runs; within a race all contenders \
             use the same CPUs.",
            "To compare several races, use the same `--server-cpus` in all of them.",
        );
    }
    let check = check(format!("varies by {}; {floor_text}", percent(deviation)));
    let mark = match floor {
        ..FLOOR_TO_NOTE => return check,
        FLOOR_TO_NOTE..FLOOR_TO_WARN => Mark::Note,
        _ => Mark::Warn,
    };
    check.marked(
        mark,
        format!(
            "The cost of the same work varies: expect a {floor_text}; smaller differences cannot be \
             detected."
        ),
        more,
    )
}

/// Standard deviation of the logarithm of the CPU time of a block, around the mean of its CPU.
/// Speeds change over tenths of a second and longer, so the window of a round, which is a few blocks
/// long, hardly averages them out.
fn deviation(seen: &[OfCpu]) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for of_cpu in seen {
        let block = |pieces: &[Piece]| {
            (pieces.iter().map(|p| p.cpu_ns as f64).sum::<f64>() / pieces.len() as f64).ln()
        };
        let blocks: Vec<f64> = of_cpu.pieces.chunks_exact(BLOCK).map(block).collect();
        let mean = blocks.iter().sum::<f64>() / blocks.len().max(1) as f64;
        squares += blocks.iter().map(|block| (block - mean).powi(2)).sum::<f64>();
        freedom += blocks.len().saturating_sub(1) as f64;
    }
    (freedom >= 3.0).then(|| (squares / freedom).sqrt())
}

/// The share of pieces at the slower of two speeds, and how much longer they took. Pieces are split
/// into two groups such that the variance between the groups is largest (Fisher, *On grouping for
/// maximum homogeneity*, JASA 53, 1958).
fn two_speeds(seen: &[OfCpu]) -> Option<(f64, f64)> {
    const EXPLAINS: f64 = 0.85;
    const SMALLER_GROUP: f64 = 0.1;
    let mut all: Vec<f64> = Vec::new();
    for of_cpu in seen {
        let median = median(of_cpu)?;
        all.extend(of_cpu.pieces.iter().map(|p| p.cpu_ns as f64 / median));
    }
    all.sort_by(f64::total_cmp);
    let (n, sum) = (all.len() as f64, all.iter().sum::<f64>());
    let total: f64 = all.iter().map(|x| (x - sum / n).powi(2)).sum();
    let mut below = 0.0;
    let mut best = (0.0, 0.0, 0.0);
    for (i, x) in all.iter().enumerate().take(all.len().saturating_sub(1)) {
        below += x;
        let k = (i + 1) as f64;
        let (low, high) = (below / k, (sum - below) / (n - k));
        let between = k * (low - sum / n).powi(2) + (n - k) * (high - sum / n).powi(2);
        if between > best.0 {
            best = (between, 1.0 - k / n, high / low - 1.0);
        }
    }
    let (between, slower, apart) = best;
    let two = between > EXPLAINS * total
        && (SMALLER_GROUP..=1.0 - SMALLER_GROUP).contains(&slower)
        && apart >= APART;
    two.then_some((slower, apart))
}

/// The slowest CPU, how much slower it is than the fastest, and the fastest; `None` below [`APART`].
fn slowest(seen: &[OfCpu]) -> Option<(u32, f64, u32)> {
    let medians = || seen.iter().filter_map(|one| Some((one.cpu, median(one)?)));
    let (slow, most) = medians().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (fast, least) = medians().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let slower = most / least - 1.0;
    (slower >= APART).then_some((slow, slower, fast))
}

fn median(of_cpu: &OfCpu) -> Option<f64> {
    let mut times: Vec<u64> = of_cpu.pieces.iter().map(|p| p.cpu_ns).collect();
    times.sort_unstable();
    times.get(times.len() / 2).map(|ns| *ns as f64)
}

/// Judges how long runnable work had to wait: wall-clock time minus the thread's CPU time.
fn stalls(seen: &[OfCpu]) -> Check {
    const NAME: &str = "stalls";
    let pieces = || seen.iter().flat_map(|one| &one.pieces);
    let wall: u64 = pieces().map(|p| p.wall_ns).sum();
    let gap = |p: &Piece| p.wall_ns.saturating_sub(p.cpu_ns);
    let Some(longest) = pieces().map(gap).max() else { return unknown(NAME) };
    let share = pieces().map(gap).sum::<u64>() as f64 / wall.max(1) as f64;
    let longest_text = time(longest as f64);
    let check = Check::ok(NAME, format!("{} of the time, longest {longest_text}", percent(share)));
    let mark = match (share, longest) {
        (0.05.., _) | (_, 50_000_000..) => Mark::Warn,
        (0.01.., _) | (_, 10_000_000..) => Mark::Note,
        _ => return check,
    };
    let stolen = stolen_share(seen).unwrap_or_default();
    let remedy = if stolen > share / 2.0 {
        "The hypervisor took that time: see `steal`."
    } else {
        "Stop other programs (see `other-work`, and `top` for short-lived ones)."
    };
    check.marked(
        mark,
        format!(
            "A runnable thread waited for a CPU {} of the time, up to {longest_text}: this lowers \
             rates and raises high latency percentiles, but hardly affects CPU per request.",
            percent(share)
        ),
        remedy,
    )
}

/// Judges how much time the hypervisor gave to other guests.
fn steal(seen: &[OfCpu]) -> Check {
    const NAME: &str = "steal";
    let Some(share) = stolen_share(seen) else {
        return Check::ok(NAME, "not reported by this kernel");
    };
    let check = Check::ok(NAME, format!("{} of the time of busy CPUs", percent(share)));
    let mark = match share {
        ..0.005 => return check,
        0.005..0.03 => Mark::Note,
        _ => Mark::Warn,
    };
    check.marked(
        mark,
        format!(
            "The hypervisor gave {} of the time to other guests: rates and latencies depend on them \
             and vary between rounds.",
            percent(share)
        ),
        "Race at another time, or on a machine whose CPUs are not shared (dedicated, bare metal).",
    )
}

fn stolen_share(seen: &[OfCpu]) -> Option<f64> {
    let reported: Vec<f64> = seen.iter().filter_map(|one| one.stolen).collect();
    (!reported.is_empty()).then(|| reported.iter().sum::<f64>() / reported.len() as f64)
}

/// Judges how late sleeping threads wake.
fn wake_ups(seen: &[OfCpu]) -> Check {
    const NAME: &str = "wake-ups";
    let mut late: Vec<u64> = seen.iter().flat_map(|one| one.late_ns.iter().copied()).collect();
    late.sort_unstable();
    let at =
        |quantile: f64| late.get(((late.len() as f64 * quantile) as usize).min(late.len() - 1));
    let Some((p50, p99)) = (!late.is_empty()).then(|| at(0.5).zip(at(0.99))).flatten() else {
        return unknown(NAME);
    };
    let (p50, p99_text) = (time(*p50 as f64), time(*p99 as f64));
    let check = Check::ok(NAME, format!("{p50} late, p99 {p99_text}"));
    let mark = match *p99 {
        ..200_000 => return check,
        200_000..1_000_000 => Mark::Note,
        _ => Mark::Warn,
    };
    check.marked(
        mark,
        format!(
            "A thread wakes up to {p99_text} late: with `--rate`, requests are sent that late, and \
             the verdict may be that the load was the bottleneck."
        ),
        "Stop other programs, keep CPUs out of deep sleep (`cpupower idle-set -D 10`), and do not \
         trust shorter latencies with `--rate`.",
    )
}

fn unknown(name: &'static str) -> Check {
    Check::ok(name, "unknown").marked(
        Mark::Note,
        "The self-test got too little CPU time to measure the noise.",
        "Stop other programs, and run this again.",
    )
}

/// A percentage with one decimal below 10%, and none above.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    match percent {
        ..0.05 => "0%".to_string(),
        10.0.. => format!("{percent:.0}%"),
        _ => format!("{percent:.1}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::assert_says;
    use super::*;

    /// Two CPUs that run 1,500 nearly equal pieces of 1 ms each; sleeps 20 µs late; no stolen time.
    fn quiet() -> Vec<OfCpu> {
        let of_cpu = |cpu| OfCpu {
            cpu,
            pieces: (0..1_500).map(|i| exactly(1_000_000 + i % 7 * 500)).collect(),
            late_ns: vec![20_000; 450],
            stolen: Some(0.0),
        };
        vec![of_cpu(0), of_cpu(1)]
    }

    fn exactly(ns: u64) -> Piece {
        Piece { cpu_ns: ns, wall_ns: ns + 1_000 }
    }

    /// Changes every piece of every CPU.
    fn with(change: impl Fn(usize, &mut Piece)) -> Vec<OfCpu> {
        let mut seen = quiet();
        for of_cpu in &mut seen {
            of_cpu.pieces.iter_mut().enumerate().for_each(|(i, piece)| change(i, piece));
        }
        seen
    }

    #[test]
    fn a_quiet_machine_passes_all_checks() {
        let checks = judge(&quiet());
        let found: Vec<&str> = checks.iter().map(|check| check.found.as_str()).collect();
        assert!(checks.iter().all(|check| check.mark == Mark::Ok), "{checks:?}");
        assert_eq!(
            found,
            [
                "varies by 0%; with 7 rounds a noise floor of about ±0%",
                "0.1% of the time, longest 1.00 µs",
                "0% of the time of busy CPUs",
                "20.0 µs late, p99 20.0 µs"
            ]
        );
    }

    #[test]
    fn reports_two_speeds_and_their_difference() {
        let seen = with(|i, piece| {
            if i / 200 % 3 == 1 {
                *piece = exactly(piece.cpu_ns * 5 / 4);
            }
        });
        let check = speed(&seen);
        assert_says(&check, Mark::Warn, &["by 25%", "noise floor"], &["performance", "--time"]);
        let found = "two speeds: 33% of the work took 25% longer";
        assert!(check.found.starts_with(found), "{}", check.found);
    }

    #[test]
    fn converts_a_drifting_speed_into_a_noise_floor() {
        // Blocks are evenly distributed between -4% and +4%: a standard deviation of 2.4%.
        let seen = with(|i, piece| {
            let percent = 96 + (i as u64 / 100 * 8 / 14);
            *piece = exactly(piece.cpu_ns * percent / 100);
        });
        let check = speed(&seen);
        assert_says(&check, Mark::Note, &["±3.", "7 rounds"], &["more time"]);
    }

    #[test]
    fn names_a_slower_cpu() {
        let mut seen = quiet();
        seen[1].pieces.iter_mut().for_each(|piece| *piece = exactly(piece.cpu_ns * 6 / 5));
        let check = speed(&seen);
        assert_says(&check, Mark::Note, &["depends on the CPU"], &["--server-cpus"]);
        assert_eq!(check.found, "CPU 1 is 20% slower than CPU 0");
    }

    #[test]
    fn a_local_neighbour_causes_stalls_but_not_steal() {
        let seen = with(|i, piece| piece.wall_ns += if i % 10 == 0 { 3_000_000 } else { 0 });
        assert_says(&stalls(&seen), Mark::Warn, &["23% of the time"], &["other-work"]);
        assert_eq!((steal(&seen).mark, speed(&seen).mark), (Mark::Ok, Mark::Ok));
        let once = with(|i, piece| piece.wall_ns += if i == 700 { 12_000_000 } else { 0 });
        assert_says(&stalls(&once), Mark::Note, &["up to 12.0 ms"], &["top"]);
    }

    #[test]
    fn attributes_stolen_time_to_the_hypervisor() {
        let mut seen = with(|i, piece| piece.wall_ns += if i % 10 == 0 { 1_000_000 } else { 0 });
        seen.iter_mut().for_each(|one| one.stolen = Some(0.1));
        assert_says(&steal(&seen), Mark::Warn, &["10% of the time"], &["dedicated"]);
        assert_says(&stalls(&seen), Mark::Warn, &["9.2% of the time"], &["hypervisor", "`steal`"]);
        seen.iter_mut().for_each(|one| one.stolen = None);
        assert_eq!(steal(&seen).mark, Mark::Ok);
    }

    #[test]
    fn judges_late_wake_ups_by_their_p99() {
        let mut seen = quiet();
        seen[0].late_ns.iter_mut().take(20).for_each(|late| *late = 2_500_000);
        assert_says(&wake_ups(&seen), Mark::Warn, &["up to 2.50 ms"], &["cpupower idle-set"]);
        seen[0].late_ns.iter_mut().take(20).for_each(|late| *late = 300_000);
        assert_eq!(wake_ups(&seen).mark, Mark::Note);
    }

    #[test]
    fn notes_missing_measurements() {
        for check in [speed(&[]), stalls(&[]), wake_ups(&[])] {
            assert_says(&check, Mark::Note, &["too little"], &["run this again"]);
        }
    }
}
