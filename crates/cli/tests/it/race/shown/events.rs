//! `events.jsonl`: its content, and races that cannot write to it or to their output.

use crate::support::race::course::{Course, SHORT, until};
use regatta_race::StoredEvents;
use regatta_record::{Event, Happened, Phase, Round, Summary};
use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    process::{Command, Stdio},
};

const GOOD: &str = "good=sh -c 'exec \"$ILL\" {port}'";

fn events(course: &Course) -> Vec<Event> {
    StoredEvents::open(&course.out()).unwrap().map(|event| event.unwrap()).collect()
}

#[test]
fn the_events_describe_a_whole_race() {
    let course = Course::in_rounds();
    course.write_quiet_race("'null'", "300ms", "connections = [4, 8]");
    let args = ["race.toml", "--rounds", "2", "--out", "out", "--contender", GOOD];
    let race = course.race(&args);
    course.assert_nothing_left();
    let events = events(&course);
    assert!(events.windows(2).all(|two| two[0].ns <= two[1].ns), "times decrease: {events:?}");
    let happened: Vec<&Happened> = events.iter().map(|event| &event.happened).collect();

    let Happened::RaceStarted(header) = happened[0] else { panic!("{:?}", happened[0]) };
    let asked: regatta_record::Asked =
        toml::from_str(&fs::read_to_string(course.out().join("race.toml")).unwrap()).unwrap();
    assert_eq!((&header.asked, &header.dir[..]), (&asked, "out"));
    assert!(matches!(happened.last(), Some(Happened::RaceFinished)), "{}", race.stderr);

    let rounds = String::from_utf8(course.rounds()).unwrap();
    let rounds: Vec<Round> =
        rounds.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut stored = rounds.iter();
    for (i, what) in happened.iter().enumerate() {
        let Happened::RoundEnded(end) = what else { continue };
        let round = stored.next().unwrap();
        assert_eq!((&end.contender, end.load), (&round.contender, round.load));
        assert_eq!((end.pass, end.requests), (Some(round.round), round.requests));
        assert_eq!(end.outcome, round.outcome);
        // The phases of this round, since its start.
        let start = happened[..i].iter().rposition(|e| matches!(e, Happened::RoundStarted(_)));
        let phases: Vec<Phase> = happened[start.unwrap()..i]
            .iter()
            .filter_map(|e| match e {
                Happened::PhaseStarted { phase } => Some(*phase),
                _ => None,
            })
            .collect();
        use Phase::{Connecting, Starting, Stopping, WarmUp, Window};
        let expected = [Starting, Connecting, WarmUp, Window, Stopping];
        // A warm-up of 0 s may end before it is observed.
        let is_warm_up = |phase: &&Phase| **phase == WarmUp && !phases.contains(&WarmUp);
        let expected: Vec<&Phase> = expected.iter().filter(|p| !is_warm_up(p)).collect();
        assert_eq!(phases.iter().collect::<Vec<_>>(), expected);
    }
    assert_eq!(stored.count(), 0, "a round of each line ended");

    let judged: Vec<(u32, usize)> = happened
        .iter()
        .filter_map(|what| match what {
            Happened::PassJudged { pass, changed } => Some((*pass, changed.len())),
            _ => None,
        })
        .collect();
    let cells = asked.contenders.len() * asked.loads.len();
    assert_eq!(judged, [(0, cells), (1, cells)], "each pass adds a round to each cell");
    let saved = fs::read_to_string(course.out().join("summary.json")).unwrap();
    let saved: Summary = serde_json::from_str(&saved).unwrap();
    let Happened::Judged(judged) = happened[happened.len() - 2] else { panic!("{happened:?}") };
    assert_eq!(judged.summary, saved);
}

#[test]
fn the_events_of_duels_have_the_order_of_the_lines_of_their_rounds() {
    let course = Course::new();
    course.write_quiet_race("'null'", "300ms", "connections = [4, 8]");
    course.race(&["race.toml", "--rounds", "1", "--out", "out", "--contender", GOOD]);
    let rounds = String::from_utf8(course.rounds()).unwrap();
    let stored = rounds.lines().map(|line| {
        let round: Round = serde_json::from_str(line).unwrap();
        assert!(round.life.is_some());
        (round.contender, round.load, round.requests)
    });
    let ended = events(&course).into_iter().filter_map(|event| match event.happened {
        Happened::RoundEnded(end) => Some((end.contender, end.load, end.requests)),
        _ => None,
    });
    assert_eq!(ended.collect::<Vec<_>>(), stored.collect::<Vec<_>>());
}

#[test]
fn times_continue_when_a_race_is_resumed() {
    let course = Course::in_rounds();
    course.write_quiet_race("'null'", "300ms", "connections = [8, 16]");
    let race = course.start(&["race.toml", "--out", "out", "--contender", GOOD]);
    until("a round is stored", || !course.rounds().is_empty());
    race.signal("INT");
    race.ended().with_status(130);
    let before = events(&course);
    course.race(&["--resume", "out"]);
    course.assert_nothing_left();
    let after = events(&course);
    assert_eq!(after[..before.len()], before, "stored events have changed");
    let resumed = &after[before.len()];
    let Happened::RaceResumed(header) = &resumed.happened else { panic!("{resumed:?}") };
    assert!(!header.events_missing);
    let Happened::RaceStarted(first) = &before[0].happened else { panic!("{:?}", before[0]) };
    let by_clock = before[0].ns + (header.unix_ms - first.unix_ms) * 1_000_000;
    let apart = resumed.ns.abs_diff(by_clock);
    assert!(apart < 1_000_000_000, "{} ns is not {by_clock} ns after the start", resumed.ns);
    assert!(after.windows(2).all(|two| two[0].ns <= two[1].ns), "times decrease: {after:?}");
}

#[test]
fn resuming_a_finished_race_adds_no_second_end() {
    let course = Course::in_rounds();
    course.race(&[&SHORT[..], &["--out", "out", "--contender", GOOD]].concat());
    let before = events(&course);
    assert!(matches!(before.last().unwrap().happened, Happened::RaceFinished), "{before:?}");
    let path = course.out().join("summary.json");
    fs::remove_file(&path).unwrap();
    let resumed = course.race(&["--resume", "out"]);
    assert!(resumed.stdout.contains("report: out/report.html"), "{}", resumed.stdout);
    assert!(path.exists(), "the result is written again");
    assert_eq!(events(&course), before);

    // If the last line is missing, e.g. after a crash, the race has no end yet.
    let path = course.out().join("events.jsonl");
    let lines = fs::read_to_string(&path).unwrap();
    fs::write(&path, &lines[..lines.len() - 1]).unwrap();
    course.race(&["--resume", "out"]);
    let ends = |event: &&Event| matches!(event.happened, Happened::RaceFinished);
    assert_eq!(events(&course).iter().filter(ends).count(), 1);
}

#[test]
fn a_full_disk_stops_the_race_before_its_first_round() {
    let course = Course::new();
    fs::create_dir(course.out()).unwrap();
    symlink("/dev/full", course.out().join("events.jsonl")).unwrap();
    course.write_quiet_race("'null'", "300ms", "connections = 4");
    let args = ["race.toml", "--out", "out", "--contender", GOOD];
    let ended = course.race(&args).with_status(2);
    ended.assert_printed(&["regatta: cannot append to out/events.jsonl: No space left on device"]);
    assert!(course.log().is_empty(), "a contender was started");
    // With free space the race continues.
    fs::remove_file(course.out().join("events.jsonl")).unwrap();
    course.race(&["--resume", "out"]).assert_printed(&["life 1: 0 of 2 starts are done, "]);
    course.assert_nothing_left();
}

#[test]
fn a_race_can_be_resumed_after_the_disk_became_full() {
    let course = Course::in_rounds();
    course.write_quiet_race("'null'", "300ms", "connections = [4, 8]");
    let race = course.start(&["race.toml", "--out", "out", "--contender", GOOD]);
    until("a round is stored", || !course.rounds().is_empty());
    race.signal("INT");
    race.ended().with_status(130);
    // There is room for the first event of the resumed race, and for little more.
    let path = course.out().join("events.jsonl");
    let events = fs::read_to_string(&path).unwrap();
    let room = events.len() + events.lines().next().unwrap().len() + 1_000;
    let resumed = course.command(&["--resume", "out"]);
    let mut limited = Command::new("sh");
    limited
        // The unit is 512 bytes (POSIX, ulimit).
        .args(["-c", "trap '' XFSZ; ulimit -f $0; exec \"$@\"", &(room / 512).to_string()])
        .arg(resumed.get_program())
        .args(resumed.get_args())
        .current_dir(resumed.get_current_dir().unwrap())
        .envs(resumed.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = course.started(limited).ended().with_status(2);
    ended.assert_printed(&[
        "regatta: the race stopped: cannot append to out/events.jsonl: File too large",
        "starts are saved; resume with: regatta race --resume out",
    ]);
    let torn = fs::read(&path).unwrap();
    assert!(!torn.ends_with(b"\n"), "the last line is complete");
    course.race(&["--resume", "out"]).assert_printed(&["round 1: "]);
    let replay = course.replay("out").with_status(0);
    replay.assert_printed(&["interrupted; "]);
    assert!(replay.stdout.ends_with("\nreport: out/report.html\n"), "{}", replay.stdout);
    course.assert_nothing_left();
}

#[test]
fn a_race_continues_if_its_output_is_closed() {
    let course = Course::new();
    let mut command =
        course.command(&[&SHORT[..], &["--out", "out", "--contender", GOOD]].concat());
    let mut race = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((race.stdout.take(), race.stderr.take()));
    until("the race ends", || race.try_wait().unwrap().is_some());
    let status = race.wait().unwrap().code();
    course.assert_nothing_left();
    let summary = fs::read_to_string(course.out().join("summary.json")).unwrap();
    let summary: Summary = serde_json::from_str(&summary).unwrap();
    assert!(summary.complete, "{status:?}");
    // The messages were lost, but can be replayed.
    let replay = course.replay("out").with_status(0);
    replay.assert_printed(&["life 1: 0 of 2 starts are done, "]);
    assert!(replay.stdout.contains("report: out/report.html"), "{}", replay.stdout);
}

#[test]
fn a_full_stdout_is_reported_and_the_result_is_saved() {
    let course = Course::new();
    let mut command =
        course.command(&[&SHORT[..], &["--out", "out", "--contender", GOOD]].concat());
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ended = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("regatta: cannot write to stdout: No space left on device"), "{said}");
    course.assert_nothing_left();
    let replay = course.replay("out").with_status(0);
    assert!(replay.stdout.contains("report: out/report.html"), "{}", replay.stdout);
}
