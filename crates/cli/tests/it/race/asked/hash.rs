//! Loads over HTTP: counted requests, the file that is hashed, and small requests beside large ones.

use crate::support::race::course::Course;
use regatta_record::{Cell, Figure, Kind, Summary};

fn race_of(course: &Course, workload: &str, contenders: &str, load: &str) {
    course.write(
        "race.toml",
        &format!(
            "name = 'test'\nworkload = '{workload}'\ncontenders = [{contenders}]\n\
             twin_of = 'nobody'\nrounds = 2\nwindow = '1s'\nwarm_up = '0s'\n[[load]]\n{load}\n"
        ),
    );
}

const RACE: [&str; 5] = ["race.toml", "--out", "out", "--json", "-"];

/// A race of only the contenders that the command line adds.
const OF_OTHERS: [&str; 7] = ["race.toml", "--out", "out", "--json", "-", "--skip", "nobody"];

fn cell<'a>(summary: &'a Summary, contender: &str) -> &'a Cell {
    summary.cells.iter().find(|cell| cell.contender == contender).unwrap()
}

#[test]
fn a_counted_churn_of_hello_reports_the_time_per_request() {
    let course = Course::new();
    let load = "connections = 5\nchurn = true\nrequests = 40";
    race_of(&course, "hello", "'epoll', 'threads'", load);
    let ended = course.race(&RACE).judged();
    course.assert_nothing_left();
    let summary = ended.summary();
    assert_eq!(summary.cells.len(), 3, "and the twin");
    for cell in &summary.cells {
        assert_eq!((cell.rounds, cell.requests), (2, 2 * 40), "{cell:?}");
        // Intervals that are too wide are omitted.
        let (Some(ms), Some(rate)) = (cell.ms_per_request, cell.rate_per_s) else { continue };
        assert!((ms.mean * rate.mean / 1e3 - 1.0).abs() < 1e-9, "{cell:?}");
    }
}

#[test]
fn the_file_is_hashed_as_often_as_the_load_says() {
    let course = Course::new();
    race_of(&course, "hash", "'nobody'", "connections = 4\nrequests = 12\nn = [1, 3]");
    let serve = |model: &str| {
        format!(
            "{model}={{regatta}} serve hash --file {{file}} --model {model} --listen \
             127.0.0.1:{{port}}"
        )
    };
    let (epoll, threads) = (serve("epoll"), serve("threads"));
    let more = ["--contender", &epoll[..], "--contender", &threads[..]];
    let ended = course.race(&[&OF_OTHERS[..], &more].concat()).judged();
    course.assert_nothing_left();
    let summary = ended.summary();
    let loads: Vec<_> = summary.asked.loads.iter().map(ToString::to_string).collect();
    assert_eq!(loads, ["4 conn, 12 requests, n=1", "4 conn, 12 requests, n=3"]);
    let raced: Vec<&Cell> =
        summary.cells.iter().filter(|c| c.verdict.kind() != Kind::Skipped).collect();
    assert_eq!(raced.len(), 2 * 3, "and the twin");
    assert!(raced.iter().all(|cell| cell.requests == 2 * 12), "{raced:?}");
}

/// 8 large requests of 20 ms each, and small ones of 1 ms.
const FAIR: &str = "connections = 50\nrate = 50\nn = 1\nbeside = { connections = 8, n = 20 }";

const GOOD: &str = "good=sh -c 'exec \"$SLOW_HASH\" {port}'";

#[test]
fn small_requests_beside_large_ones_are_timed_alone() {
    let course = Course::new();
    race_of(&course, "hash", "'nobody'", FAIR);
    let blocks = GOOD.replace("good=", "blocks=").replace("{port}", "{port} blocks");
    // A busy machine may not reach the rate, so the exit status is not checked.
    let ended = course.race(&[&OF_OTHERS[..], &["--contender", &blocks]].concat());
    course.assert_nothing_left();
    let summary = ended.summary();
    let blocks = cell(&summary, "blocks");
    assert!(blocks.verdict.voids(Figure::Cost) && !blocks.verdict.is(Kind::Failed), "{blocks:?}");
    assert!(blocks.latency_ns.p50 > Some(20_000_000), "small requests did not wait: {blocks:?}");
    let rounds = String::from_utf8(course.rounds()).unwrap();
    assert!(rounds.lines().all(|line| line.contains("\"background\":{\"requests\":")), "{rounds}");
}

#[test]
fn a_wrong_reply_of_either_load_disqualifies_and_a_dead_server_fails() {
    let course = Course::new();
    race_of(&course, "hash", "'nobody'", FAIR);
    let of = |name: &str| {
        let how = format!("{{port}} {name}");
        GOOD.replace("good=", &format!("{name}=")).replace("{port}", &how)
    };
    let contenders = ["wrong-when-small", "wrong-when-large", "dies-when-large"].map(of);
    let more = contenders.iter().flat_map(|contender| ["--contender", contender]);
    let args: Vec<&str> = OF_OTHERS.into_iter().chain(more).collect();
    let ended = course.race(&args).with_status(1);
    course.assert_nothing_left();
    let large = "among the large requests beside";
    ended.assert_verdict("wrong-when-large", Kind::Disqualified, &[large]);
    ended.assert_verdict("dies-when-large", Kind::Failed, &["exited with status 3"]);
    // The exchange is shown for the small request.
    ended.assert_verdict(
        "wrong-when-small",
        Kind::Disqualified,
        &["a reply was wrong", "?n=1&salt="],
    );
    let small = ended.verdict("wrong-when-small").because();
    assert!(!small.contains(large), "{small}");
}
