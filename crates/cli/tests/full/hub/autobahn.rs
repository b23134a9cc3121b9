//! Autobahn's WebSocket fuzzing client against `/echo`: no case fails, and none is non-strict.
//!
//! Skipped if it is not installed (scripts/setup installs it, given a Python 2.7).

use crate::support::Server;
use regatta_testkit::{child::run_within, machine, skip};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::PathBuf, process::Command, time::Duration};
use tempfile::TempDir;

const MODELS: [&str; 5] = ["epoll", "percore", "green", "uring", "async"];

fn wstest() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Some(root.join(".tools/autobahn/bin/wstest")).filter(|program| program.is_file())
}

/// Returns the result of each case, by its number.
fn play(
    model: &str,
    options: &[&str],
    cases: &[&str],
    without: &[&str],
) -> BTreeMap<String, String> {
    let server =
        Server::of("hub", model, &[&["--echo", "--longest-message", "33554432"], options].concat());
    let folder = TempDir::new().unwrap();
    let specification = json!({
        "outdir": "reports",
        "servers": [{"agent": model, "url": format!("ws://{}/echo", server.addr)}],
        "cases": cases,
        "exclude-cases": without,
        "exclude-agent-cases": {},
    });
    fs::write(folder.path().join("spec.json"), specification.to_string()).unwrap();
    let mut command = Command::new(wstest().unwrap());
    command.args(["-m", "fuzzingclient", "-s", "spec.json"]).current_dir(folder.path());
    // Most cases take milliseconds, some compression cases seconds. The suite ends a case that hangs.
    let ended = run_within(Duration::from_secs(1200), command).stderr;
    let index = fs::read_to_string(folder.path().join("reports/index.json"));
    let index = index.unwrap_or_else(|_| panic!("{ended}"));
    let index: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(&index).unwrap();
    let all = &index[model];
    all.iter()
        .map(|(case, result)| {
            let word = |key: &str| result[key].as_str().unwrap_or("?").to_owned();
            // The suite judges the close of the connection separately.
            let worst = match (word("behavior"), word("behaviorClose")) {
                (behavior, close) if behavior == "OK" => close,
                (behavior, _) => behavior,
            };
            (case.clone(), worst)
        })
        .collect()
}

fn conforms(model: &str, options: &[&str], cases: &[&str], without: &[&str], least: usize) {
    let all = play(model, options, cases, without);
    let mut counts = BTreeMap::<&str, u32>::new();
    all.values().for_each(|word| *counts.entry(word).or_default() += 1);
    println!("{model}: {counts:?}");
    let wrong: Vec<_> = all
        .iter()
        .filter(|(_, word)| !["OK", "INFORMATIONAL", "UNIMPLEMENTED"].contains(&word.as_str()))
        .collect();
    assert!(wrong.is_empty(), "{model}: {wrong:?}");
    let skipped = counts.get("UNIMPLEMENTED").copied().unwrap_or(0);
    assert!(
        options.is_empty() || skipped == 0,
        "{model}: {skipped} compression cases were not run"
    );
    assert!(all.len() >= least, "{model}: {} cases", all.len());
}

/// Holds the machine with others. `None`, and reported: the suite is not installed.
fn turn() -> Option<machine::Turn> {
    if wstest().is_none() {
        skip("Autobahn's suite is not installed (scripts/setup)");
        return None;
    }
    Some(machine::shared())
}

#[test]
fn no_case_fails_and_none_is_non_strict() {
    let Some(_turn) = turn() else { return };
    MODELS.iter().for_each(|model| conforms(model, &[], &["*"], &["12.*", "13.*"], 240));
}

#[test]
fn no_compression_case_fails() {
    const FEW: [&str; 8] =
        ["12.1.1", "12.1.10", "12.2.3", "12.4.5", "13.1.1", "13.3.4", "13.5.2", "13.7.6"];
    let Some(_turn) = turn() else { return };
    MODELS.iter().for_each(|model| conforms(model, &["--deflate"], &FEW, &[], FEW.len()));
}

/// All cases of a group, on one model: all have the same code for compression, and the suite takes minutes.
fn compression(cases: &str, least: usize) {
    let Some(_turn) = turn() else { return };
    conforms("percore", &["--deflate"], &[cases], &[], least);
}

#[test]
fn no_case_with_different_data_to_compress_fails() {
    compression("12.*", 90);
}

#[test]
fn no_case_with_different_parameters_of_compression_fails() {
    compression("13.*", 126);
}
