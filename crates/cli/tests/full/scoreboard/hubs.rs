//! Hubs: does each member receive each broadcast once and in the order of its sender, while others join and
//! leave, and beside members that do not read?

use super::{contenders, is_exhibit, load, load_in_words, publish, start, url};
use regatta_race::Contender;
use regatta_record::LoadResult;
use regatta_testkit::{child::in_own_process, machine};
use std::{fmt::Write, time::Duration};

/// Members join and leave during the whole load.
const PASSING: [&str; 6] = ["-c", "100", "--in-flight", "4", "--passing", "50"];
/// Some members never read again.
const STALLED: [&str; 8] = ["-c", "100", "--in-flight", "4", "--idle", "10", "--stalled", "5"];

#[test]
fn every_broadcast_reaches_every_member_once_and_in_order() {
    let _turn = machine::alone();
    in_own_process(Duration::from_secs(1800), || {
        let mut table = String::from(
            "| hub | members join and leave | some members do not read |\n|---|---|---|\n",
        );
        let mut faults = Vec::new();
        for contender in contenders("hub") {
            let found = [&PASSING[..], &STALLED].map(|arguments| play(&contender, arguments));
            let cells = found.each_ref().map(|found| match found {
                Ok(said) | Err(said) => &said[..],
            });
            let name = &contender.manifest.name;
            writeln!(table, "| {name} | {} |", cells.join(" | ")).expect("a text grows");
            let is_right = found.iter().all(Result::is_ok);
            // A peer may be wrong: that is its result. Ours must be right, and the exhibit must be found.
            if (name == super::OURS && !is_right) || (is_exhibit(&contender) && is_right) {
                faults.push(format!("{name}: {}", cells.join("; ")));
            }
        }
        let (passing, stalled) = (load_in_words("ws", &PASSING), load_in_words("ws", &STALLED));
        write!(table, "\nBy `{passing}` and `{stalled}`, on one core.\n").expect("a text grows");
        publish("hubs", &table);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    });
}

/// Loads a fresh hub. What was found, in words; as an error if something was wrong.
fn play(contender: &Contender, arguments: &[&str]) -> Result<String, String> {
    let running = start(contender, "hub");
    let found = load(contender, &url(contender, "ws", running.addr), arguments);
    let stopped = running.stop();
    let said = judged(&found?)?;
    stopped.map(|()| said)
}

fn judged(result: &LoadResult) -> Result<String, String> {
    if let Some(wrong) = &result.first_wrong {
        return Err(format!("**wrong**: expected {}", wrong.expected.replace('|', "\\|")));
    }
    let lost = result.errors.failed();
    if lost > 0 {
        let kinds = result.errors.by_kind().into_iter().filter(|(_, count)| *count > 0);
        let kinds: Vec<String> =
            kinds.map(|(kind, count)| format!("{count} {}", kind.replace('_', " "))).collect();
        return Err(format!("**lost**: {}", kinds.join(", ")));
    }
    let deliveries = result.operations.iter().find(|one| one.operation.name == "deliveries");
    match deliveries.map_or(0, |one| one.whole_run) {
        0 => Err("**nothing delivered**".into()),
        count => Ok(format!("right: {count} deliveries")),
    }
}
