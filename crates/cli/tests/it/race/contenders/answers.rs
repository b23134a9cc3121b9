//! Contenders that answer wrongly or stop answering.

use crate::support::race::{course::Course, wrong_reply};
use regatta_record::Kind;

#[test]
fn one_wrong_answer_in_twenty_thousand_is_found_and_shown() {
    // The others were right. How many came before the window depends on the speed of the machine.
    wrong_reply::assert_is_shown(&Course::in_rounds(), &[], 20_000, 2_000);
}

#[test]
fn a_race_does_not_fail_if_an_exhibit_is_disqualified() {
    let course = Course::new();
    let race = |name: &str, about: &str, start: &str| {
        let load = format!(
            "connections = 8\n[[contender]]\nname = '{name}'\nabout = '{about}'\n\
             workloads = ['double']\nstart = ['sh', '-c', 'exec {start}']"
        );
        course.write_quiet_race(&format!("'epoll', '{name}'"), "1s", &load);
        course.race(&["race.toml", "--out", name, "--json", "-"])
    };
    let wrong = "\"$ILL\" {port} wrong-at 10";
    let shown = race("shown", "exhibit: doubles wrongly", wrong).judged();
    shown.assert_verdict("shown", Kind::Disqualified, &["a reply was wrong"]);
    let bad = race("bad", "no exhibit: it doubles wrongly", wrong).with_status(1);
    bad.assert_verdict("bad", Kind::Disqualified, &["a reply was wrong"]);
    let right = "{regatta} serve double --model epoll --listen 127.0.0.1:{port}";
    let right = race("right", "exhibit: all the same", right).raced();
    assert!(right.summary().cells.iter().all(|cell| cell.verdict.kind() != Kind::Disqualified));
    course.assert_nothing_left();
}

#[test]
fn a_contender_that_dies_under_load_fails_with_its_last_output() {
    let course = Course::new();
    let ended = course.race_short("bad=sh -c 'exec \"$ILL\" {port} dies-at 20 3'").with_status(1);
    course.assert_nothing_left();
    let said = ["bad exited with status 3 under load", "out of cheese"];
    ended.assert_verdict("bad", Kind::Failed, &said);
    let cells = ended.summary().cells;
    assert!(cells.iter().any(|cell| cell.contender == "null" && cell.requests > 0), "{cells:?}");
}
