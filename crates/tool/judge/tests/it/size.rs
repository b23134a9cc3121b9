//! Disk space of a race.

use crate::simulated::{
    LOAD, QUIET, open, open_loop,
    open_loop::{Parts, quiet},
    rounds, truth,
};
use regatta_record::{LoadShape, Round};

const AT_RATE: LoadShape = LoadShape { drive: open(20_000), ..LOAD };

/// Open loops are the largest: four histograms each. Requests of all kinds: most are quick, some
/// wait for their connection, a few are stalled.
fn mixed(samples: u64, seed: u64) -> Vec<Parts> {
    let mixed = |(i, p): (usize, Parts)| match i % 100 {
        0..8 => Parts { wait: p.service * (1 + i as u64 % 90), ..p },
        8 => Parts { wait: 3_000_000 + (i as u64 * 7_919) % 90_000_000, lag: p.lag * 40, ..p },
        _ => p,
    };
    quiet(samples, seed).into_iter().enumerate().map(mixed).collect()
}

#[test]
fn five_rounds_of_20_cells_stay_under_5_mb() {
    let mut rounds: Vec<Round> = rounds(&[truth("epoll", 5_000.0)], &[AT_RATE], 5, QUIET, 1);
    for r in &mut rounds {
        open_loop::set(r, &mixed(40_000, u64::from(r.round)), 0);
    }
    let bytes: usize = rounds.iter().map(|r| serde_json::to_string(r).unwrap().len() + 1).sum();
    let of_20_cells = 20 * bytes;
    assert!(of_20_cells > 200_000, "{of_20_cells}: are the histograms in it?");
    // The report and the summary take some hundred KB in addition.
    assert!(of_20_cells < 4_000_000, "{of_20_cells}");
}
