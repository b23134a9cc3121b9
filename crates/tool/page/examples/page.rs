//! Makes the page of a stored summary: `page SUMMARY.json [ROUNDS.jsonl] > page.html`.

use regatta_record::{Round, Summary};
use std::{env, fs};

fn main() {
    let mut args = env::args().skip(1);
    let read = |path: String| fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let summary = args.next().map(read).expect("usage: page SUMMARY.json [ROUNDS.jsonl]");
    let summary: Summary = serde_json::from_str(&summary).expect("a summary");
    let rounds = args.next().map(read).unwrap_or_default();
    let rounds: Vec<Round> =
        rounds.lines().map(|line| serde_json::from_str(line).expect("a round")).collect();
    print!("{}", regatta_page::page(&summary, &rounds));
}
