//! Small requests beside large ones: a server that answers one request at a time makes the small ones wait.

use crate::support::race::course::Course;
use regatta_record::{Cell, Figure, Kind, Summary};

const FAIR: &str = "connections = 50\nrate = 50\nn = 1\nbeside = { connections = 8, n = 20 }";

const GOOD: &str = "good=sh -c 'exec \"$SLOW_HASH\" {port}'";

/// A race of only the contenders that the command line adds.
const OF_OTHERS: [&str; 7] = ["race.toml", "--out", "out", "--json", "-", "--skip", "nobody"];

fn race_of(course: &Course, workload: &str, contenders: &str, load: &str) {
    course.write(
        "race.toml",
        &format!(
            "name = 'test'\nworkload = '{workload}'\ncontenders = [{contenders}]\n\
             twin_of = 'nobody'\nrounds = 2\nwindow = '1s'\nwarm_up = '0s'\n[[load]]\n{load}\n"
        ),
    );
}

fn cell<'a>(summary: &'a Summary, contender: &str) -> &'a Cell {
    summary.cells.iter().find(|cell| cell.contender == contender).unwrap()
}

#[test]
fn small_requests_wait_for_large_ones_if_one_request_blocks_all() {
    let course = Course::alone();
    race_of(&course, "hash", "'nobody'", FAIR);
    let blocks = GOOD.replace("good=", "blocks=").replace("{port}", "{port} blocks");
    let more = ["--contender", GOOD, "--contender", &blocks, "--baseline", "good"];
    let ended = course.race(&[&OF_OTHERS[..], &more].concat());
    course.assert_nothing_left();
    let summary = ended.summary();
    let (good, blocks) = (cell(&summary, "good"), cell(&summary, "blocks"));
    for cell in [good, blocks] {
        assert!(cell.verdict.voids(Figure::Cost) && !cell.verdict.is(Kind::Failed), "{cell:?}");
        assert!(cell.beside_per_s.is_some(), "{cell:?}");
    }
    assert!(good.latency_ns.p50 < blocks.latency_ns.p50, "{good:?} {blocks:?}");
    assert!(blocks.latency_ns.p50 > Some(20_000_000), "small requests did not wait: {blocks:?}");
    let rounds = String::from_utf8(course.rounds()).unwrap();
    assert!(rounds.lines().all(|line| line.contains("\"background\":{\"requests\":")), "{rounds}");
}
