//! A race of five contenders, shared by several test files: epoll and its twin 5 µs, percore the
//! same, node 8.6 µs, null 4 µs. The load needs 3.6 µs per request, less than any of them.

use super::{LOAD, QUIET, Truth, asked, rounds, truth};
use regatta_judge::judge;
use regatta_record::{Cell, Round, Summary};

pub const NAMES: [&str; 5] = ["epoll", "epoll-twin", "null", "percore", "node"];

pub fn field() -> Vec<Truth> {
    NAMES
        .iter()
        .zip([5_000.0, 5_000.0, 4_000.0, 5_000.0, 8_600.0])
        .map(|(n, c)| truth(n, c))
        .collect()
}

pub fn race() -> Vec<Round> {
    rounds(&field(), &[LOAD], 7, QUIET, 7)
}

pub fn judged(rounds: &[Round]) -> Summary {
    judge(&asked(&NAMES, 7, &[LOAD]), rounds)
}

pub fn cell<'a>(summary: &'a Summary, name: &str) -> &'a Cell {
    summary.cells.iter().find(|c| c.contender == name).unwrap()
}

pub fn of<'a>(rounds: &'a mut [Round], name: &'a str) -> impl Iterator<Item = &'a mut Round> {
    rounds.iter_mut().filter(move |r| r.contender == name)
}

pub fn doubt<'a>(summary: &'a Summary, word: &str) -> Option<&'a String> {
    summary.doubts.iter().find(|d| d.contains(word))
}
