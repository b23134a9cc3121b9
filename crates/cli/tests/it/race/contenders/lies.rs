//! Planted lies that are found whatever else the machine does. `tests/full` has the others (`truth::lies`).

use crate::support::race::course::Course;
use regatta_record::Kind;

/// Races a contender alone, and asserts that it is disqualified with this text.
fn assert_disqualified(workload: &str, window: &str, load: &str, contender: &str, said: &str) {
    let course = Course::new();
    course.write(
        "race.toml",
        &format!(
            "name = 'lies'\nworkload = '{workload}'\ncontenders = ['nobody']\ntwin_of = 'nobody'\n\
             rounds = 1\nwindow = '{window}'\nwarm_up = '0s'\n[[load]]\n{load}\n"
        ),
    );
    let args = ["race.toml", "--skip", "nobody", "--out", "out", "--json", "-"];
    let ended = course.race(&[&args[..], &["--contender", contender]].concat()).with_status(1);
    course.assert_nothing_left();
    ended.assert_verdict("liar", Kind::Disqualified, &[said]);
}

#[test]
fn a_surplus_answer_under_churn_disqualifies() {
    let liar = "liar=sh -c 'exec \"$LIAR\" {port} adds'";
    assert_disqualified("double", "30s", "connections = 2\nchurn = true", liar, "received 0\\n");
}

#[test]
fn a_hash_from_a_cache_disqualifies() {
    let liar = "liar=sh -c 'exec \"$SLOW_HASH\" {port} caches'";
    // The answers are verified when the window is over.
    assert_disqualified("hash", "500ms", "connections = 2\nn = 1", liar, "n=1&salt=");
}

#[test]
fn an_answer_before_the_request_has_arrived_disqualifies() {
    let liar = "liar=sh -c 'exec \"$LIAR\" {port} hasty'";
    let early = "the last byte of the request had not been sent";
    assert_disqualified("double", "30s", "connections = 2", liar, early);
}
