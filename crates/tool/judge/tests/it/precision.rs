//! `--precision` on simulated races: an easy pair stops early, a hard one reports the rounds that
//! it needs.

use crate::simulated::{LOAD, Machine, asked, rounds, truth};
use regatta_judge::{due, judge};
use regatta_record::{Asked, LoadShape, Precision, Round, Summary};

const OTHER: LoadShape = LoadShape::closed(1_000, 1);

fn machine(noise: f64) -> Machine {
    Machine { noise, drift: 0.05, load_ns: 3_600.0, samples: 20 }
}

fn precise(most: u32, loads: &[LoadShape]) -> Asked {
    Asked { precision: Some(0.02), ..asked(&["epoll", "null", "green"], most, loads) }
}

/// All rounds that a race would run at most.
fn all(most: u32, loads: &[LoadShape], noise: f64, seed: u64) -> Vec<Round> {
    let field = [truth("epoll", 5_000.0), truth("null", 4_000.0), truth("green", 5_500.0)];
    rounds(&field, loads, most, machine(noise), seed)
}

/// Runs the race: `all` contains the result of each start.
fn run(asked: &Asked, all: &[Round]) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::new();
    for pass in 0..=asked.rounds {
        let due = due(asked, &rounds, pass);
        if due.loads.is_empty() {
            break;
        }
        assert!(pass < due.passes && due.passes <= asked.rounds, "{due:?}");
        let is_due = |r: &&Round| r.round == pass && due.loads.contains(&r.load);
        rounds.extend(all.iter().filter(is_due).cloned());
    }
    rounds
}

fn outcome(summary: &Summary) -> &Precision {
    summary.precision.as_ref().unwrap()
}

#[test]
fn an_easy_pair_stops_early() {
    let asked = precise(50, &[LOAD]);
    let ran = run(&asked, &all(50, &[LOAD], 0.005, 1));
    let summary = judge(&asked, &ran);
    assert_eq!(
        summary.precision,
        Some(Precision { asked: 0.02, reached: true, rounds: 6, missing: vec![] })
    );
    assert!(summary.complete);
}

#[test]
fn a_hard_pair_runs_to_the_limit_and_reports_the_rounds_it_needs() {
    let asked = precise(20, &[LOAD]);
    let summary = judge(&asked, &run(&asked, &all(20, &[LOAD], 0.04, 1)));
    assert!(summary.complete && !outcome(&summary).reached);
    assert_eq!(outcome(&summary).rounds, 20, "{:?}", summary.precision);
    // s = 4% · √2 = 5.7% of log-ratios: (2 · 0.057 / 0.0198)² is about 33.
    let [missing] = &outcome(&summary).missing[..] else { panic!("{summary:?}") };
    assert!(missing.starts_with("green at 64 conn: ±"), "{missing}");
    // Simulated passes are a minute apart, so 13 more rounds are not advised.
    assert!(missing.contains("after 20 rounds; ±2% takes longer than ten minutes"), "{missing}");
}

#[test]
fn stops_at_a_pair_that_is_not_feasible() {
    let asked = precise(15, &[LOAD]);
    let summary = judge(&asked, &run(&asked, &all(15, &[LOAD], 0.4, 1)));
    assert!(summary.complete && !outcome(&summary).reached);
    assert_eq!(outcome(&summary).rounds, 10);
    assert!(outcome(&summary).missing[0].contains("takes longer than ten minutes"));
}

#[test]
fn a_load_with_narrow_ratios_gets_no_further_pass() {
    let asked = precise(50, &[LOAD, OTHER]);
    let mut rounds = all(50, &[LOAD], 0.005, 1);
    rounds.extend(all(50, &[OTHER], 0.02, 1));
    let ran = run(&asked, &rounds);
    let passes = |load| ran.iter().filter(|r| r.load == load).map(|r| r.round + 1).max().unwrap();
    assert_eq!(passes(LOAD), 6);
    assert!((8..50).contains(&passes(OTHER)), "{}", passes(OTHER));
    let summary = judge(&asked, &ran);
    assert!(summary.complete && outcome(&summary).reached, "{:?}", summary.precision);

    // If it is interrupted anywhere, it continues in the same way.
    for kept in [0, 7, ran.len() / 2, ran.len() - 1] {
        let cut = &ran[..kept];
        assert!(!judge(&asked, cut).complete, "{kept} rounds");
        let last = cut.last().map_or(0, |r| r.round);
        for pass in 0..=last {
            let before = |rounds: &[Round]| -> Vec<Round> {
                rounds.iter().filter(|r| r.round < pass).cloned().collect()
            };
            assert_eq!(
                due(&asked, &before(cut), pass).loads,
                due(&asked, &before(&ran), pass).loads
            );
        }
    }
}

#[test]
fn intervals_of_races_that_stop_early_contain_the_true_value() {
    let asked = precise(50, &[LOAD]);
    let (mut held, mut total) = (0, 0);
    for seed in 0..40 {
        let summary = judge(&asked, &run(&asked, &all(50, &[LOAD], 0.02, seed)));
        let green = summary.cells.iter().find(|c| c.contender == "green").unwrap();
        let ratio = green.ratio_to_baseline.unwrap();
        held += u32::from(ratio.low <= 1.1 && 1.1 <= ratio.high);
        total += outcome(&summary).rounds;
        assert!(outcome(&summary).reached);
    }
    // 93% are expected; fewer than 33 of 40 have a probability of 1 in 100.
    assert!(held >= 33, "{held} of 40 intervals contain the true value");
    assert!((6 * 40..20 * 40).contains(&total), "{total} rounds in 40 races");
}
