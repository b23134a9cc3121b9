//! What the self-test says of the noise that races would meet: uneven speed, stalls, stolen time,
//! late wake-ups. Pure but for [`checks`], which runs the test.

use super::{
    check::{Check, Mark},
    selftest::{OfCpu, Piece, run},
};
use console::Term;
use regatta_report::time;

/// Tests for two seconds, and judges.
pub fn checks() -> Vec<Check> {
    let term = Term::stderr();
    let on_terminal = term.is_term();
    if on_terminal {
        // A hint that cannot be written is none.
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

/// Pieces of work in a block: about a tenth of a second.
const BLOCK: usize = 100;
/// Half-width of the interval of a ratio over the standard deviation of one round: t(0.975; 6) · √2
/// / √7, for 7 rounds (Student).
const FLOOR_OVER_DEVIATION: f64 = 2.447 * std::f64::consts::SQRT_2 / 2.645_75;
/// Noise floors from which on a race tells little and hardly anything.
const FLOOR_TO_NOTE: f64 = 0.02;
const FLOOR_TO_WARN: f64 = 0.05;
/// Speeds that lie so far apart are told.
const APART: f64 = 0.05;

/// Whether the same work costs the same at all times, and on all CPUs.
fn speed(seen: &[OfCpu]) -> Check {
    const NAME: &str = "speed";
    let Some(deviation) = deviation(seen) else { return unknown(NAME) };
    let floor = FLOOR_OVER_DEVIATION * deviation;
    let floor_text = format!("noise floor of about ±{} with 7 rounds", percent(floor));
    let check = |found: String| Check::ok(NAME, found);
    let more = "Take more rounds (`--rounds 20`).";
    if let Some((share, apart)) = two_speeds(seen) {
        return check(format!(
            "two: {} of the work took {} longer; {floor_text}",
            percent(share),
            percent(apart)
        ))
        .but(
            Mark::Warn,
            format!(
                "The CPUs change their speed by {}, so a round's cost says which speed it met: \
                 expect a {floor_text}.",
                percent(apart)
            ),
            "Fix the frequency (`cpupower frequency-set -g performance`, turbo off), leave hardware \
             threads that share a core idle, or take a machine of your own; else take more rounds.",
        );
    }
    if let Some((cpu, slower, than)) = slowest(seen) {
        return check(format!("CPU {cpu} is {} slower than CPU {than}", percent(slower))).but(
            Mark::Note,
            "What a server costs depends on the CPU that it runs on; races give all contenders the \
             same.",
            "Say which CPUs are the server's where results of several races are compared \
             (`--server-cpus`).",
        );
    }
    let check = check(format!("even to {}; {floor_text}", percent(deviation)));
    let mark = match floor {
        ..FLOOR_TO_NOTE => return check,
        FLOOR_TO_NOTE..FLOOR_TO_WARN => Mark::Note,
        _ => Mark::Warn,
    };
    check.but(
        mark,
        format!(
            "The same work costs now more and now less: expect a {floor_text}; smaller differences \
             would not be told apart."
        ),
        more,
    )
}

/// Standard deviation of the logarithm of the CPU time of a block, around the mean of its CPU.
/// Speeds change over tenths of a second and longer, so that a round's window, a few blocks long,
/// hardly averages them out.
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

/// The share of pieces at the slower of two speeds, and how much longer they took. Pieces are cut in
/// two where the variance between the groups is largest (Fisher, *On grouping for maximum
/// homogeneity*, JASA 53, 1958).
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

/// The slowest CPU, how much slower it is than the fastest, and which that is, where it matters.
fn slowest(seen: &[OfCpu]) -> Option<(usize, f64, usize)> {
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

/// Whether work that could go on had to wait: the wall's time over the thread's own.
fn stalls(seen: &[OfCpu]) -> Check {
    const NAME: &str = "stalls";
    let pieces = || seen.iter().flat_map(|one| &one.pieces);
    let wall: u64 = pieces().map(|p| p.wall_ns).sum();
    let gap = |p: &Piece| p.wall_ns.saturating_sub(p.cpu_ns);
    let Some(longest) = pieces().map(gap).max() else { return unknown(NAME) };
    let share = pieces().map(gap).sum::<u64>() as f64 / wall.max(1) as f64;
    let longest_text = time(longest as f64);
    let check =
        Check::ok(NAME, format!("{} of the time, the longest {longest_text}", percent(share)));
    let mark = match (share, longest) {
        (0.05.., _) | (_, 50_000_000..) => Mark::Warn,
        (0.01.., _) | (_, 10_000_000..) => Mark::Note,
        _ => return check,
    };
    let stolen = stolen_share(seen).unwrap_or_default();
    let remedy = if stolen > share / 2.0 {
        "The hypervisor took that time: see `steal`."
    } else {
        "End what else runs here (see `other-work`, and `top` for what comes and goes)."
    };
    check.but(
        mark,
        format!(
            "A thread that could run waited for a CPU {} of the time, up to {longest_text}: rates \
             are lower and high percentiles longer by that; CPU per request hardly suffers.",
            percent(share)
        ),
        remedy,
    )
}

/// Whether the hypervisor gave time to others.
fn steal(seen: &[OfCpu]) -> Check {
    const NAME: &str = "steal";
    let Some(share) = stolen_share(seen) else {
        return Check::ok(NAME, "not told by this kernel");
    };
    let check = Check::ok(NAME, format!("{} of the time of busy CPUs", percent(share)));
    let mark = match share {
        ..0.005 => return check,
        0.005..0.03 => Mark::Note,
        _ => Mark::Warn,
    };
    check.but(
        mark,
        format!(
            "The hypervisor gave {} of the time to other guests: rates and latencies are theirs as \
             well, and rounds differ by it.",
            percent(share)
        ),
        "Race at another hour, or on a machine whose CPUs are not shared (dedicated, bare metal).",
    )
}

fn stolen_share(seen: &[OfCpu]) -> Option<f64> {
    let told = seen.iter().filter_map(|one| one.stolen);
    let (stolen, all) = told.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))?;
    Some(stolen as f64 / all as f64)
}

/// How late sleeping threads wake.
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
    let check = Check::ok(NAME, format!("{p50} late, at p99 {p99_text}"));
    let mark = match *p99 {
        ..200_000 => return check,
        200_000..1_000_000 => Mark::Note,
        _ => Mark::Warn,
    };
    check.but(
        mark,
        format!(
            "A thread wakes up to {p99_text} late: at a rate (`--rate`) requests go out that late, \
             and the verdict may be that the load was the limit."
        ),
        "End what else runs here, keep CPUs out of deep sleep (`cpupower idle-set -D 10`), and \
         believe no latency at a rate that is shorter.",
    )
}

fn unknown(name: &'static str) -> Check {
    Check::ok(name, "unknown").but(
        Mark::Note,
        "The self-test got too little of the CPUs to tell how noisy they are.",
        "End what else runs here, and ask again.",
    )
}

/// With two digits below 10%, and no more decimals than mean something.
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

    /// Two CPUs that do 1,500 pieces of 1 ms each, all alike; sleeps 20 µs late; nothing stolen.
    fn quiet() -> Vec<OfCpu> {
        let of_cpu = |cpu| OfCpu {
            cpu,
            pieces: (0..1_500).map(|i| exactly(1_000_000 + i % 7 * 500)).collect(),
            late_ns: vec![20_000; 450],
            stolen: Some((0, 200)),
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
    fn a_quiet_machine_is_all_well() {
        let checks = judge(&quiet());
        let found: Vec<&str> = checks.iter().map(|check| check.found.as_str()).collect();
        assert!(checks.iter().all(|check| check.mark == Mark::Ok), "{checks:?}");
        assert_eq!(
            found,
            [
                "even to 0%; noise floor of about ±0% with 7 rounds",
                "0.1% of the time, the longest 1.00 µs",
                "0% of the time of busy CPUs",
                "20.0 µs late, at p99 20.0 µs"
            ]
        );
    }

    #[test]
    fn two_speeds_are_told_with_their_distance() {
        let seen = with(|i, piece| {
            if i / 200 % 3 == 1 {
                *piece = exactly(piece.cpu_ns * 5 / 4);
            }
        });
        let check = speed(&seen);
        assert_says(&check, Mark::Warn, &["by 25%", "noise floor"], &["performance", "rounds"]);
        assert!(check.found.starts_with("two: 33% of the work took 25% longer"), "{}", check.found);
    }

    #[test]
    fn a_speed_that_drifts_is_translated_into_a_noise_floor() {
        // Blocks lie evenly between -4% and +4%: a standard deviation of 2.4%.
        let seen = with(|i, piece| {
            let percent = 96 + (i as u64 / 100 * 8 / 14);
            *piece = exactly(piece.cpu_ns * percent / 100);
        });
        let check = speed(&seen);
        assert_says(&check, Mark::Note, &["±3.", "7 rounds"], &["more rounds"]);
    }

    #[test]
    fn a_slower_cpu_is_named() {
        let mut seen = quiet();
        seen[1].pieces.iter_mut().for_each(|piece| *piece = exactly(piece.cpu_ns * 6 / 5));
        let check = speed(&seen);
        assert_says(&check, Mark::Note, &["depends on the CPU"], &["--server-cpus"]);
        assert_eq!(check.found, "CPU 1 is 20% slower than CPU 0");
    }

    #[test]
    fn a_neighbour_on_this_machine_stalls_and_is_no_steal() {
        let seen = with(|i, piece| piece.wall_ns += if i % 10 == 0 { 3_000_000 } else { 0 });
        assert_says(&stalls(&seen), Mark::Warn, &["23% of the time"], &["other-work"]);
        assert_eq!((steal(&seen).mark, speed(&seen).mark), (Mark::Ok, Mark::Ok));
        let once = with(|i, piece| piece.wall_ns += if i == 700 { 12_000_000 } else { 0 });
        assert_says(&stalls(&once), Mark::Note, &["up to 12.0 ms"], &["top"]);
    }

    #[test]
    fn stolen_time_is_the_hypervisors() {
        let mut seen = with(|i, piece| piece.wall_ns += if i % 10 == 0 { 1_000_000 } else { 0 });
        seen.iter_mut().for_each(|one| one.stolen = Some((20, 200)));
        assert_says(&steal(&seen), Mark::Warn, &["10% of the time"], &["dedicated"]);
        assert_says(&stalls(&seen), Mark::Warn, &["9.2% of the time"], &["hypervisor", "`steal`"]);
        seen.iter_mut().for_each(|one| one.stolen = None);
        assert_eq!(steal(&seen).mark, Mark::Ok);
    }

    #[test]
    fn late_wake_ups_are_told_by_their_p99() {
        let mut seen = quiet();
        seen[0].late_ns.iter_mut().take(20).for_each(|late| *late = 2_500_000);
        assert_says(&wake_ups(&seen), Mark::Warn, &["up to 2.50 ms"], &["cpupower idle-set"]);
        seen[0].late_ns.iter_mut().take(20).for_each(|late| *late = 300_000);
        assert_eq!(wake_ups(&seen).mark, Mark::Note);
    }

    #[test]
    fn what_could_not_be_measured_is_noted() {
        for check in [speed(&[]), stalls(&[]), wake_ups(&[])] {
            assert_says(&check, Mark::Note, &["too little"], &["ask again"]);
        }
    }
}
