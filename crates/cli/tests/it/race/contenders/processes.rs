//! Contenders that serve correctly and do not exit, or leave processes behind.

use crate::support::race::course::{Course, SHORT};
use regatta_record::Kind;

#[test]
fn a_contender_that_ignores_sigterm_is_killed_and_keeps_its_figures_with_a_remark() {
    let course = Course::new();
    let ended = course.race_short("bad=sh -c 'exec \"$ILL\" {port} deaf'").raced();
    course.assert_nothing_left();
    assert!(course.log().iter().any(|(_, what)| what == "asked"), "it never got SIGTERM");
    let summary = ended.summary();
    let cell = summary.cells.iter().find(|cell| cell.contender == "bad").unwrap();
    assert_ne!(cell.verdict.kind(), Kind::Failed, "{:?}", cell.verdict);
    assert!(cell.rounds == 1 && cell.requests > 0, "{cell:?}");
    let doubts: Vec<_> = summary.doubts.iter().filter(|doubt| doubt.contains("SIGTERM")).collect();
    let [doubt] = doubts[..] else { panic!("{:?}", summary.doubts) };
    for said in ["bad in 1 of 1 starts: ignored SIGTERM for 2 s", "make it exit on SIGTERM"] {
        assert!(doubt.contains(said), "{doubt}");
    }
}

#[test]
fn a_contender_that_becomes_a_daemon_before_it_listens_fails() {
    let course = Course::new();
    // Forked twice, in a new session, and with only the log in its environment.
    let bad = "bad=sh -c '(setsid env -i ILL_BEHAVED_LOG=\"$ILL_BEHAVED_LOG\" \"$ILL\" {port} &)'";
    let ended = course.race_short(bad).with_status(1);
    course.assert_nothing_left();
    ended.assert_verdict("bad", Kind::Failed, &["bad put itself into the background"]);
}

#[test]
fn a_contender_that_becomes_a_daemon_after_it_listens_fails() {
    let course = Course::new();
    let bad = "bad=sh -c '(setsid \"$ILL\" {port} &)
        until grep -q listens \"$ILL_BEHAVED_LOG\"; do sleep 0.01; done'";
    let ended = course.race_short(bad).with_status(1);
    course.assert_nothing_left();
    let said = ["bad put itself into the background", "Start it in the foreground"];
    ended.assert_verdict("bad", Kind::Failed, &said);
    assert_eq!(course.log().len(), 1, "it never listened");
}

#[test]
fn a_contender_that_leaves_grandchildren_fails_and_they_are_killed() {
    let course = Course::new();
    // One in the contender's session that ignores SIGTERM, and an orphan in another session.
    let bad = "bad=sh -c '(trap \"\" TERM; sleep 1000 & setsid sleep 1001 &)
        exec \"$ILL\" {port}'";
    let ended = course.race_short(bad).with_status(1);
    course.assert_nothing_left();
    let said = ["bad ended on SIGTERM but left 2 processes that had to be killed", "sleep ("];
    ended.assert_verdict("bad", Kind::Failed, &said);
}

#[test]
fn a_contender_that_kills_its_supervisor_fails_and_is_killed() {
    let course = Course::new();
    // The contender kills its supervisor at once. Its child can only be found through the control group,
    // which the supervisor may not have reported yet. Several contenders make that more likely.
    let bad = |name: &&str| {
        format!(
            "{name}=sh -c 'kill -s KILL $PPID
            (setsid env -i ILL_BEHAVED_LOG=\"$ILL_BEHAVED_LOG\" \"$ILL\" 0 &)
            exec \"$ILL\" {{port}}'"
        )
    };
    let names = ["a", "b", "c", "d", "e", "f"];
    let contenders = names.each_ref().map(bad);
    let args = contenders.iter().flat_map(|contender| ["--contender", contender]);
    let args: Vec<&str> = SHORT.into_iter().chain(args).chain(["--json", "-"]).collect();
    let ended = course.race(&args).with_status(1);
    course.assert_nothing_left();
    for name in names {
        let said = [&*format!("the supervisor of {name} "), "were killed"];
        ended.assert_verdict(name, Kind::Failed, &said);
    }
}
