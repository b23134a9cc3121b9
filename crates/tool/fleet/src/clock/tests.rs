//! Histories of pings with a known clock: the truth is always inside the bounds, and they are narrow; what contradicts
//! itself is refused; hostile times are errors.

use super::*;
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Picoseconds in a nanosecond: events of a history are not at whole nanoseconds.
const PS: i128 = 1_000;
const BILLION: i128 = 1_000_000_000;

/// An agent's clock: `agent = leader + offset_ns + rate_ppb · (leader − start_ns) / 10^9`.
#[derive(Clone, Copy, Debug)]
struct Truth {
    start_ns: i128,
    offset_ns: i128,
    rate_ppb: i128,
}

impl Truth {
    fn random(random: &mut SmallRng) -> Truth {
        Truth {
            // The agent's clock stays above 0.
            start_ns: random.random_range(1_100_000_000_000_000..4_000_000_000_000_000),
            offset_ns: random.random_range(-1_000_000_000_000_000..=1_000_000_000_000_000),
            rate_ppb: random.random_range(-100_000..=100_000),
        }
    }

    /// The offset when the leader's clock reads `leader_ns`, in billionths of a nanosecond.
    fn offset(&self, leader_ns: i128) -> i128 {
        self.offset_ns * BILLION + self.rate_ppb * (leader_ns - self.start_ns)
    }

    /// What the agent's clock reads at a time of the leader's clock in picoseconds: whole nanoseconds.
    fn reads(&self, leader_ps: i128) -> u64 {
        let gained = self.rate_ppb * (leader_ps - self.start_ns * PS);
        let billionths = (leader_ps + self.offset_ns * PS) * BILLION + gained;
        u64::try_from(billionths.div_euclid(BILLION * PS)).unwrap()
    }

    /// Pings from `from_ns` on. The two ways have delays of their own, and jitter.
    fn pings(&self, random: &mut SmallRng, from_ns: i128, count: usize) -> Vec<Ping> {
        let ways: [f64; 2] = [(); 2].map(|()| 10_f64.powf(random.random_range(3.0..10.0)));
        let jitter = 10_f64.powf(random.random_range(1.0..9.0));
        let delay = |random: &mut SmallRng, way: f64| {
            (way - jitter * random.random::<f64>().max(1e-9).ln()) as i128
        };
        let mut now_ps = from_ns * PS;
        let mut pings = Vec::new();
        for _ in 0..count {
            now_ps += random.random_range(0..1_000_000_000);
            let sent = now_ps;
            let received = sent + delay(random, ways[0]);
            let answered = received + random.random_range(0..100_000_000);
            now_ps = answered + delay(random, ways[1]);
            pings.push(Ping {
                t0_ns: u64::try_from(sent / PS).unwrap(),
                t1_ns: self.reads(received),
                t2_ns: self.reads(answered),
                t3_ns: u64::try_from(now_ps / PS).unwrap(),
            });
        }
        pings
    }

    /// Panics unless the truth is inside the bounds at this time of the leader's clock.
    fn check(&self, region: &Region, leader_ns: u64, context: &str) {
        let offset = region.offset_at(leader_ns).unwrap();
        let is_inside = |error: i128, bound_ns: u64| error.abs() <= i128::from(bound_ns) * BILLION;
        let truth = self.offset(leader_ns.into());
        let error = truth - i128::from(offset.centre_ns) * BILLION;
        assert!(is_inside(error, offset.bound_ns), "{context}: {offset:?}, {self:?}");
        let agent = region.to_agent(leader_ns).unwrap();
        let error = i128::from(leader_ns) * BILLION + truth - i128::from(agent.at_ns) * BILLION;
        assert!(is_inside(error, agent.bound_ns), "{context}: {agent:?}, {self:?}");
        // Back again: the agent's clock reads `at_ns` at the solution of agent = leader + offset.
        let leader = region.to_leader(agent.at_ns).unwrap();
        for sign in [-1, 1] {
            let end = i128::from(leader.at_ns) + sign * i128::from(leader.bound_ns);
            let reads = end * BILLION + self.offset(end);
            let beyond = (reads - i128::from(agent.at_ns) * BILLION) * sign;
            assert!(beyond >= 0, "{context}: {leader:?}, {agent:?}, {self:?}");
        }
    }
}

/// A round with pings before and after it.
struct History {
    truth: Truth,
    before: Vec<Ping>,
    after: Vec<Ping>,
}

impl History {
    fn random(random: &mut SmallRng) -> History {
        let truth = Truth::random(random);
        let [count, again] = [(); 2].map(|()| random.random_range(1..=12));
        let before = truth.pings(random, truth.start_ns, count);
        let pause = 10_f64.powf(random.random_range(3.0..12.0)) as i128;
        let from_ns = i128::from(before.last().unwrap().t3_ns) + pause;
        let after = truth.pings(random, from_ns, again);
        History { truth, before, after }
    }

    fn all(&self) -> impl Iterator<Item = &Ping> {
        self.before.iter().chain(&self.after)
    }

    fn region(&self) -> Result<Region, Fault> {
        Region::of(self.all())
    }

    /// First and last time of the leader's clock.
    fn ends(&self) -> [u64; 2] {
        [self.before[0].t0_ns, self.after.last().unwrap().t3_ns]
    }
}

fn best(pings: &[Ping]) -> &Ping {
    pings.iter().min_by_key(|ping| ping.round_trip_ns()).unwrap()
}

#[test]
fn the_truth_is_inside_the_bounds_in_100_000_histories() {
    for seed in 0..100_000 {
        let random = &mut SmallRng::seed_from_u64(seed);
        let history = History::random(random);
        let context = format!("seed {seed}");
        let region = history.region().unwrap_or_else(|fault| panic!("{context}: {fault}"));
        let [first, last] = history.ends();
        let within = random.random_range(first..=last);
        let outside = last + random.random_range(0..10_000_000_000);
        for leader_ns in [first, within, last, outside] {
            history.truth.check(&region, leader_ns, &context);
        }
        let [low, high] = region.rates_ppb().map(i128::from);
        assert!((low..=high).contains(&history.truth.rate_ppb), "{context}: {low} to {high}");
    }
}

#[test]
fn the_bound_is_at_most_half_of_the_best_round_trip() {
    for seed in 0..100_000 {
        let random = &mut SmallRng::seed_from_u64(seed);
        let history = History::random(random);
        let region = history.region().unwrap();
        let bests = [best(&history.before), best(&history.after)];
        // Within a ping, the rate is known only to MAX_RATE_PPB. Three times, something is rounded to a nanosecond.
        let limit = |ping: &&Ping| {
            let took =
                u128::from(ping.t3_ns - ping.t0_ns) * u128::from(MAX_RATE_PPB.unsigned_abs());
            ping.round_trip_ns().unwrap() / 2 + u64::try_from(took / 1_000_000_000).unwrap() + 3
        };
        let limit = bests.iter().map(limit).max().unwrap();
        let within = random.random_range(bests[0].t0_ns..=bests[1].t0_ns);
        for leader_ns in [bests[0].t0_ns, within, bests[1].t0_ns] {
            let bound_ns = region.offset_at(leader_ns).unwrap().bound_ns;
            assert!(bound_ns <= limit, "seed {seed}: {bound_ns} over {limit}");
        }
    }
}

#[test]
fn one_set_bounds_the_offset_within_it_and_its_rate_by_the_limit() {
    for seed in 0..10_000 {
        let random = &mut SmallRng::seed_from_u64(seed);
        let truth = Truth::random(random);
        let pings = truth.pings(random, truth.start_ns, 8);
        let region = Region::of(&pings).unwrap();
        let leader_ns = random.random_range(pings[0].t0_ns..=pings[7].t3_ns);
        truth.check(&region, leader_ns, &format!("seed {seed}"));
        let later_ns = pings[7].t3_ns + 1_000_000_000;
        truth.check(&region, later_ns, &format!("seed {seed}"));
    }
}

#[test]
fn a_jump_that_no_rate_explains_is_a_contradiction() {
    for seed in 0..10_000 {
        let random = &mut SmallRng::seed_from_u64(seed);
        let mut history = History::random(random);
        let [first, last] = history.ends();
        let trips = best(&history.before).round_trip_ns().unwrap()
            + best(&history.after).round_trip_ns().unwrap();
        // What the highest rate explains, on top of the lowest.
        let drift = (last - first) / 1_000_000 * 600 + 600;
        let jump = trips + drift + random.random_range(10..1_000_000_000);
        let is_ahead = random.random::<bool>();
        for time in history.after.iter_mut().flat_map(|ping| [&mut ping.t1_ns, &mut ping.t2_ns]) {
            *time = if is_ahead { *time + jump } else { *time - jump };
        }
        let fault = history.region().unwrap_err();
        let Fault::Contradiction { least, most } = fault else { panic!("seed {seed}: {fault}") };
        let rate = |gain: Gain| gain.gained_ns as f64 / gain.over_ns as f64;
        assert!(rate(least) > rate(most), "seed {seed}: {fault}");
    }
}

#[test]
fn pings_combine_to_less_than_the_best_of_them() {
    // The offset is 5,000. One ping is slow on its way out, the other one on its way back: each alone allows 1,000 ns.
    let slow_out = Ping { t0_ns: 10_000, t1_ns: 15_990, t2_ns: 15_990, t3_ns: 11_000 };
    let slow_back = Ping { t0_ns: 20_000, t1_ns: 25_010, t2_ns: 25_010, t3_ns: 21_000 };
    let of = |pings: &[Ping]| Region::of(pings).unwrap().offset_at(15_000).unwrap();
    assert!((495..=510).contains(&of(&[slow_out]).bound_ns), "{:?}", of(&[slow_out]));
    assert!((495..=510).contains(&of(&[slow_back]).bound_ns));
    let both = of(&[slow_out, slow_back]);
    // From 15,990 − 11,000 to 25,010 − 20,000, up to what truncation and drift in 5,000 ns add.
    assert!((4_998..=5_002).contains(&both.centre_ns), "{both:?}");
    assert!((10..=15).contains(&both.bound_ns), "{both:?}");
}

#[test]
fn the_error_of_unequal_ways_is_half_of_their_difference() {
    // 2 ms out and 5 ms back: ±3.5 ms, and the centre is 1.5 ms below the truth.
    let ms = 1_000_000;
    let ping = Ping { t0_ns: 0, t1_ns: 1_002 * ms, t2_ns: 1_002 * ms, t3_ns: 7 * ms };
    let offset = Region::of(&[ping]).unwrap().offset_at(0).unwrap();
    assert!((offset.centre_ns - 998_500_000).abs() < 2_000, "{offset:?}");
    assert!(offset.bound_ns.abs_diff(3_500_000) < 4_000, "{offset:?}");
}

#[test]
fn a_suspended_agent_is_a_contradiction_with_its_figures() {
    let ping = |t: u64, ahead: u64| Ping {
        t0_ns: t,
        t1_ns: t + ahead + 50,
        t2_ns: t + ahead + 60,
        t3_ns: t + 110,
    };
    // Its clock stood for 3 s within 10 s.
    let before = ping(1_000_000_000, 7_000_000_000);
    let after = ping(11_000_000_000, 4_000_000_000);
    let fault = Region::of(&[before, after]).unwrap_err();
    let least = Gain { gained_ns: -500_000, over_ns: 1_000_000_000 };
    let Fault::Contradiction { least: found, most } = fault else { panic!("{fault}") };
    assert_eq!(found, least);
    assert!((-3_000_000_000..-2_999_999_000).contains(&most.gained_ns), "{most:?}");
    assert_eq!(most.over_ns, 9_999_999_889);
    let text = fault.to_string();
    assert!(text.contains("gained at least -500000 ns in 1000000000 ns and at most -29"), "{text}");
}

#[test]
fn a_jump_between_a_ping_and_the_next_in_the_same_nanosecond_is_a_contradiction() {
    // When the leader's clock reads 100, the offset is at least 900, and at most 401.
    let first = Ping { t0_ns: 0, t1_ns: 1_000, t2_ns: 1_000, t3_ns: 99 };
    let second = Ping { t0_ns: 100, t1_ns: 500, t2_ns: 500, t3_ns: 200 };
    let fault = Region::of(&[first, second]).unwrap_err();
    let least = Gain { gained_ns: 499, over_ns: 0 };
    let most = Gain { gained_ns: 500_000, over_ns: 1_000_000_000 };
    assert_eq!(fault, Fault::Contradiction { least, most });
}

#[test]
fn an_agent_that_claims_to_take_longer_than_the_leader_waited_contradicts_itself() {
    let ping = Ping { t0_ns: 1_000, t1_ns: 5_000, t2_ns: 6_000, t3_ns: 1_500 };
    assert!(matches!(Region::of(&[ping]), Err(Fault::Contradiction { .. })));
}

#[test]
fn every_limit_is_one() {
    let ping = Ping { t0_ns: 1_000, t1_ns: 1_050, t2_ns: 1_050, t3_ns: 1_100 };
    let at = |ns: u64| Ping { t0_ns: ns, t1_ns: ns + 50, t2_ns: ns + 50, t3_ns: ns + 100 };
    assert_eq!(Region::of(&[]).unwrap_err(), Fault::NoPings);
    assert!(Region::of(&[ping; MOST_PINGS]).is_ok());
    let fault = Region::of(&[ping; MOST_PINGS + 1]).unwrap_err();
    assert_eq!(fault, Fault::TooMany { limit: MOST_PINGS });
    assert!(Region::of(&[ping, at(900 + LONGEST_NS)]).is_ok());
    let fault = Region::of(&[ping, at(901 + LONGEST_NS)]).unwrap_err();
    assert_eq!(fault, Fault::TooLong { span_ns: LONGEST_NS + 1 });
    let region = Region::of(&[ping]).unwrap();
    assert!(region.offset_at(1_101 + LONGEST_NS).is_ok());
    let fault = Fault::Far { side: Side::Leader, ns: 1_102 + LONGEST_NS };
    assert_eq!(region.offset_at(1_102 + LONGEST_NS), Err(fault));
    assert_eq!(region.to_agent(1_102 + LONGEST_NS), Err(fault));
    let fault = Fault::Far { side: Side::Agent, ns: LONGEST_NS * 2 };
    assert_eq!(region.to_leader(LONGEST_NS * 2), Err(fault));
    let fault = Fault::TooLate { side: Side::Agent, ns: LATEST_NS + 1 };
    assert_eq!(region.to_leader(LATEST_NS + 1), Err(fault));
    let fault = Fault::Far { side: Side::Leader, ns: 0 };
    let behind = Ping { t0_ns: 1_000, t1_ns: 5, t2_ns: 5, t3_ns: 1_100 };
    assert_eq!(Region::of(&[behind]).unwrap().to_agent(0), Err(fault), "before its start");
}

#[test]
fn hostile_times_are_errors_and_never_panics() {
    const TIMES: [u64; 12] = [
        0,
        1,
        1_000,
        1_000_000_000,
        LONGEST_NS - 1,
        LONGEST_NS,
        LONGEST_NS + 1,
        LATEST_NS - 1,
        LATEST_NS,
        LATEST_NS + 1,
        u64::MAX - 1,
        u64::MAX,
    ];
    let random = &mut SmallRng::seed_from_u64(1);
    let time = |random: &mut SmallRng| TIMES[random.random_range(0..TIMES.len())];
    let mut accepted = 0;
    for _ in 0..100_000 {
        let count = random.random_range(1..=3);
        let pings: Vec<Ping> = (0..count)
            .map(|_| {
                let t0_ns = time(random);
                let t1_ns = time(random);
                // Equal times are likely, because most others are refused at once.
                let t2_ns = if random.random() { t1_ns } else { time(random) };
                let t3_ns = if random.random() { t0_ns } else { time(random) };
                let ping = Ping { t0_ns, t1_ns, t2_ns, t3_ns };
                let _ = ping.round_trip_ns();
                ping
            })
            .collect();
        let Ok(region) = Region::of(&pings) else { continue };
        accepted += 1;
        region.rates_ppb();
        for ns in TIMES {
            let _ = (region.offset_at(ns), region.to_agent(ns), region.to_leader(ns));
        }
    }
    assert!(accepted > 1_000, "only {accepted} were accepted");
}
