//! Deliveries between agents (pure): which machine has which members, and what their latencies are by the
//! clocks of both ends. A latency between two agents is the difference of two clocks. A load process computes
//! it with the offsets that were known before the load; here the difference to what is known after it is
//! taken off, and what remains unknown is the bound.

use crate::clock::{Fault, MAX_RATE_PPB, Offset, Region};
use hdrhistogram::Histogram;
use regatta_load::{Plan, Until, WarmUp};
use regatta_record::{
    AcrossLatencies, Latency, LoadAcross, LoadAcrossPair, Machines, Part, encode_histogram,
};
use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Least shift of latencies, in nanoseconds.
const LEAST_SHIFT_NS: u64 = 1_000_000;
/// The time that opening the connections usually takes at most, in nanoseconds.
const CONNECTS_IN_NS: u64 = 10_000_000_000;
/// A value of a histogram is right to one part in this many: it has three digits.
const DIGITS: u64 = 1_000;

/// The machines of a load on agents, which are `divided` like this, with clocks that are known like this at
/// `at_ns`, in nanoseconds of the leader's clock.
///
/// # Errors
/// If the offset of a clock is not known then.
pub(super) fn machines(
    plan: &Plan,
    divided: &[Vec<Part>],
    clocks: &[Region],
    at_ns: u64,
) -> Result<Machines, Fault> {
    let threads = divided.iter().flatten().map(|part| part.own as usize).sum();
    let mut of_thread = vec![0; threads];
    for (machine, parts) in (0..).zip(divided) {
        for thread in parts.iter().flat_map(|part| part.numbers()) {
            of_thread[thread as usize] = machine;
        }
    }
    let share = |parts: &Vec<Part>, n: usize| -> u64 {
        parts.iter().map(|part| part.of_process(n as u64)).sum()
    };
    let members = |parts| share(parts, plan.connections) + share(parts, plan.idle);
    let offsets: Vec<Offset> =
        clocks.iter().map(|clock| clock.offset_at(at_ns)).collect::<Result<_, _>>()?;
    let bound_ns = offsets.iter().map(|offset| offset.bound_ns).max().unwrap_or(0);
    // Two clocks drift apart by at most twice the highest rate of one.
    let drift_ns = lasts_ns(plan) / 1_000_000_000 * 2 * MAX_RATE_PPB as u64;
    let shift_ns = bound_ns.saturating_mul(4).saturating_add(LEAST_SHIFT_NS);
    Ok(Machines {
        own: 0,
        of_thread,
        members: divided.iter().map(members).collect(),
        ahead_ns: offsets.iter().map(|offset| offset.centre_ns).collect(),
        shift_ns: shift_ns.saturating_add(drift_ns).min(1 << 60),
        key: RandomState::new().hash_one(at_ns),
    })
}

/// How long a load takes at most, without its drain, in nanoseconds.
fn lasts_ns(plan: &Plan) -> u64 {
    let warm_up = match plan.warm_up {
        WarmUp::Fixed(length) => length,
        WarmUp::Steady { longest, .. } | WarmUp::Judged { longest } => longest,
    };
    let window = match plan.until {
        Until::Elapsed(window) => window,
        Until::Requests(_) | Until::Done => Duration::ZERO,
    };
    let lasts = warm_up.saturating_add(window).as_nanos();
    u64::try_from(lasts).unwrap_or(u64::MAX).saturating_add(CONNECTS_IN_NS)
}

/// What is known of the clock of one agent, relative to that of another one, in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ahead {
    least_ns: i128,
    most_ns: i128,
}

impl Ahead {
    /// How far `to` is ahead of `from` from one time of the leader's clock to another one. In between, it is
    /// not outside of what it is at both ends, because what is possible is convex.
    fn of(from: &Region, to: &Region, times_ns: [u64; 2]) -> Result<Ahead, Fault> {
        let [begin, end] = times_ns.map(|at_ns| -> Result<Ahead, Fault> {
            let (from, to) = (from.offset_at(at_ns)?, to.offset_at(at_ns)?);
            let centre = i128::from(to.centre_ns) - i128::from(from.centre_ns);
            let bound = i128::from(from.bound_ns) + i128::from(to.bound_ns);
            Ok(Ahead { least_ns: centre - bound, most_ns: centre + bound })
        });
        let (begin, end) = (begin?, end?);
        Ok(Ahead {
            least_ns: begin.least_ns.min(end.least_ns),
            most_ns: begin.most_ns.max(end.most_ns),
        })
    }
}

/// Latencies with the final offsets.
struct Corrected {
    histogram: Histogram<u64>,
    impossible: u64,
    bound_ns: u64,
}

/// Takes the shift off, and the difference between the offset that was assumed and what is known now. `assumed_ns`
/// is how far the clock of the receivers was assumed to be ahead of that of the senders.
fn corrected(raw: &AcrossLatencies, shift_ns: u64, assumed_ns: i128, ahead: Ahead) -> Corrected {
    // A latency by the assumed offset is too high by how far the true one is higher.
    let centre = (ahead.least_ns + ahead.most_ns).div_euclid(2);
    let half = ahead.most_ns - centre;
    let bound = half + i128::from(shift_ns.div_ceil(DIGITS));
    let off = i128::from(shift_ns) + centre - assumed_ns;
    let mut corrected = Corrected {
        histogram: Histogram::new_from(&raw.histogram),
        impossible: raw.early,
        bound_ns: u64::try_from(bound).unwrap_or(u64::MAX),
    };
    for value in raw.histogram.iter_recorded() {
        let (at, count) = (value.value_iterated_to(), value.count_at_value());
        let highest = i128::from(raw.histogram.highest_equivalent(at)) - off;
        if highest < -bound {
            corrected.impossible += count;
            continue;
        }
        let latency = i128::from(raw.histogram.median_equivalent(at)) - off;
        let latency = u64::try_from(latency.max(1)).unwrap_or(u64::MAX);
        corrected.histogram.saturating_record_n(latency, count);
    }
    corrected
}

/// The deliveries between agents. `received` has the latencies of the members of each agent, and `times_ns` the
/// begin and the end of the load, by the leader's clock.
///
/// # Errors
/// If a clock cannot be compared at these times.
pub(super) fn across(
    machines: &Machines,
    names: &[String],
    received: &[&[AcrossLatencies]],
    clocks: &[Region],
    times_ns: [u64; 2],
) -> Result<Option<LoadAcross>, Fault> {
    let mut pairs = Vec::new();
    let mut sum: Option<Corrected> = None;
    let count = names.len();
    let all = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    for (from, to) in all.filter(|(from, to)| from != to) {
        let Some(raw) = received[to].get(from) else { continue };
        if raw.early == 0 && raw.histogram.is_empty() {
            continue;
        }
        let ahead = Ahead::of(&clocks[from], &clocks[to], times_ns)?;
        let [of_from, of_to] = [from, to].map(|machine| i128::from(machines.ahead_ns[machine]));
        let one = corrected(raw, machines.shift_ns, of_to - of_from, ahead);
        let ns = |ns: i128| ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        pairs.push(LoadAcrossPair {
            from: names[from].clone(),
            to: names[to].clone(),
            deliveries: one.histogram.len(),
            impossible: one.impossible,
            offset_ns: [ns(ahead.least_ns), ns(ahead.most_ns)],
            bound_ns: one.bound_ns,
            latency_ns: Latency::of(&one.histogram),
        });
        sum = Some(match sum {
            None => one,
            Some(sum) => together(sum, &one),
        });
    }
    Ok(sum.map(|Corrected { histogram, impossible, bound_ns }| LoadAcross {
        deliveries: histogram.len(),
        impossible,
        unchecked: 0,
        bound_ns,
        latency_ns: Latency::of(&histogram),
        histogram: encode_histogram(&histogram),
        pairs,
    }))
}

fn together(mut sum: Corrected, one: &Corrected) -> Corrected {
    // Both have the range and the precision of all histograms of the load.
    let _ = sum.histogram.add(&one.histogram);
    sum.impossible += one.impossible;
    sum.bound_ns = sum.bound_ns.max(one.bound_ns);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Ping;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;
    const SECOND: u64 = 1_000_000_000;

    /// A clock that is ahead of the leader's by `ahead_ns` at 100 s, and gains `ppb`.
    #[derive(Clone, Copy, Debug)]
    struct Clock {
        ahead_ns: i64,
        ppb: i64,
    }

    impl Clock {
        fn reads(self, leader_ns: u64) -> u64 {
            let since = leader_ns as i64 - 100 * SECOND as i64;
            let gained = i128::from(since) * i128::from(self.ppb) / i128::from(SECOND);
            (leader_ns as i64 + self.ahead_ns + gained as i64) as u64
        }

        /// Pings at this time, with these delays there and back.
        fn pings(self, at_ns: u64, delays: [u64; 2]) -> Vec<Ping> {
            let ping = |nth: u64| {
                let t0_ns = at_ns + nth * 10_000_000;
                let [t1_ns, t2_ns] = [0, 1_000].map(|more| self.reads(t0_ns + delays[0] + more));
                Ping { t0_ns, t1_ns, t2_ns, t3_ns: t0_ns + delays[0] + 1_000 + delays[1] }
            };
            (0..8).map(ping).collect()
        }
    }

    /// Two agents with these clocks and delays to the leader, before and after a window from 101 s to 111 s.
    /// Broadcasts of the first one reach the second one after `latency_ns`. The result, and all that was known
    /// of the clocks.
    fn measured(clocks: [Clock; 2], delays: [[u64; 2]; 2], latency_ns: i64) -> LoadAcross {
        let before: Vec<Vec<Ping>> =
            clocks.iter().zip(delays).map(|(clock, d)| clock.pings(100 * SECOND, d)).collect();
        let regions = |pings: &[Vec<Ping>]| -> Vec<Region> {
            pings.iter().map(|pings| Region::of(pings).unwrap()).collect()
        };
        let workload = regatta_script::Workload::parse("hub").unwrap();
        let until = Until::Elapsed(Duration::from_secs(10));
        let plan = Plan { until, ..Plan::closed("127.0.0.1:1".parse().unwrap(), workload) };
        let machines = Machines {
            own: 1,
            ..machines(&plan, &parts(), &regions(&before), 100 * SECOND).unwrap()
        };
        let empty = Histogram::new_with_bounds(1, 240 * SECOND, 3).unwrap();
        let mut raw = AcrossLatencies { early: 0, histogram: empty.clone() };
        for nth in 0..1_000 {
            let sent = 101 * SECOND + nth * 10 * MS as u64;
            let came = (sent as i64 + latency_ns) as u64;
            let here = machines.here_ns(0, clocks[0].reads(sent));
            raw.record(clocks[1].reads(came) as i64 - here + machines.shift_ns as i64);
        }
        let after: Vec<Vec<Ping>> =
            clocks.iter().zip(delays).map(|(clock, d)| clock.pings(112 * SECOND, d)).collect();
        let both: Vec<Vec<Ping>> =
            before.iter().zip(&after).map(|(a, b)| [&a[..], b].concat()).collect();
        let none = AcrossLatencies { early: 0, histogram: empty };
        let received = [vec![none.clone(), none.clone()], vec![raw, none]];
        let received: Vec<&[AcrossLatencies]> = received.iter().map(Vec::as_slice).collect();
        let names = ["one".to_owned(), "two".to_owned()];
        let times = [101 * SECOND, 112 * SECOND];
        across(&machines, &names, &received, &regions(&both), times).unwrap().unwrap()
    }

    fn parts() -> Vec<Vec<Part>> {
        let part =
            |first| vec![Part { process: first, processes: 2, threads: 2, first, step: 1, own: 1 }];
        vec![part(0), part(1)]
    }

    #[test]
    fn an_asymmetric_delay_is_within_the_bound() {
        let clock = |ahead_ns| Clock { ahead_ns, ppb: 0 };
        // 2 ms to the second agent and 5 ms back: its clock seems to be 1.5 ms off.
        let delays = [[30_000, 30_000], [2_000_000, 5_000_000]];
        let across = measured([clock(7_000 * MS), clock(-3_000 * MS)], delays, 20 * MS);
        let p50 = across.latency_ns.p50.unwrap() as i64;
        assert!((p50 - 20 * MS - 3 * MS / 2).abs() < MS / 10, "{across:?}");
        assert!((3_500_000..3_700_000).contains(&across.bound_ns), "{across:?}");
        assert_eq!((across.impossible, across.deliveries), (0, 1_000));
        let [least, most] = across.pairs[0].offset_ns;
        assert!((least..=most).contains(&(-10_000 * MS)), "{least} {most}");
        assert_eq!((&*across.pairs[0].from, &*across.pairs[0].to), ("one", "two"));
    }

    #[test]
    fn a_latency_below_zero_is_possible_only_within_the_bound() {
        let clock = Clock { ahead_ns: 0, ppb: 0 };
        let delays = [[30_000, 30_000], [2_000_000, 5_000_000]];
        // By the clocks it is -1.5 ms + 1.5 ms, and so on; the bound is about 3.6 ms.
        for (latency, is_possible) in
            [(0, true), (-4 * MS, true), (-6 * MS, false), (-400 * MS, false)]
        {
            let across = measured([clock; 2], delays, latency);
            let expected = if is_possible { (1_000, 0) } else { (0, 1_000) };
            assert_eq!((across.deliveries, across.impossible), expected, "{latency}: {across:?}");
        }
    }

    #[test]
    fn each_agent_has_its_threads_and_members() {
        let workload = regatta_script::Workload::parse("hub").unwrap();
        let target = "127.0.0.1:1".parse().unwrap();
        let plan = Plan { connections: 7, idle: 4, ..Plan::closed(target, workload) };
        let part = |first, own| Part { process: 0, processes: 2, threads: 3, first, step: 1, own };
        let clock = Clock { ahead_ns: 5, ppb: 0 }.pings(SECOND, [10, 10]);
        let clocks = [Region::of(&clock).unwrap(), Region::of(&clock).unwrap()];
        let divided = [vec![part(0, 2)], vec![part(2, 1)]];
        let machines = machines(&plan, &divided, &clocks, SECOND).unwrap();
        assert_eq!((machines.of_thread, machines.members), (vec![0, 0, 1], vec![8, 3]));
        let other = super::machines(&plan, &divided, &clocks, SECOND).unwrap();
        assert_ne!(machines.key, other.key, "it is drawn for each load");
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_bound(
            ahead in prop::array::uniform2(-90_000 * MS..1_000_000 * MS),
            ppb in prop::array::uniform2(-100_000..100_000_i64),
            delays in prop::array::uniform2(prop::array::uniform2(20_000..5_000_000_u64)),
            latency in 1_000..200 * MS,
        ) {
            let clocks = [0, 1].map(|nth| Clock { ahead_ns: ahead[nth], ppb: ppb[nth] });
            let across = measured(clocks, delays, latency);
            prop_assert_eq!((across.impossible, across.deliveries), (0, 1_000));
            let Latency { p50, p99, min, max, .. } = across.latency_ns;
            // Values of a histogram are rounded.
            let bound = across.bound_ns as i64 + latency / 500;
            for seen in [min, p50, p99, max].into_iter().flatten() {
                prop_assert!((seen as i64 - latency).abs() <= bound, "{seen} {latency} {bound}");
            }
            let [least, most] = across.pairs[0].offset_ns;
            for at in [101, 106, 111].map(|s| s * SECOND) {
                let truth = clocks[1].reads(at) as i64 - clocks[0].reads(at) as i64;
                prop_assert!((least - 1..=most + 1).contains(&truth));
            }
        }
    }
}
