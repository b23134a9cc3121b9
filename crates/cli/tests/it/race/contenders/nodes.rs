//! Contenders with several nodes: hubs at one broker.

use crate::support::race::course::Course;
use regatta_record::Kind;

/// Writes a race file with one load on this contender; the null server serves no hub.
fn write(course: &Course, contender: &str, more: &str) {
    course.write(
        "race.toml",
        &format!(
            "name = 'test'\nworkload = 'hub'\ncontenders = ['{contender}']\nschedule = 'rounds'\n\
             twin_of = 'nobody'\nrounds = 1\nwindow = '1s'\nwarm_up = '0s'\n\
             [[load]]\nconnections = 20\nin_flight = 4\n{more}"
        ),
    );
}

const RACE: [&str; 5] = ["race.toml", "--out", "out", "--json", "-"];

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_race_of_two_hub_nodes_has_the_cost_of_both_and_of_the_broker() {
    let course = Course::in_rounds();
    write(&course, "hub-nodes", "");
    let ended = course.race(&RACE).raced();
    course.assert_nothing_left();
    let summary = ended.summary();
    let cell = summary.cells.iter().find(|cell| cell.contender == "hub-nodes").unwrap();
    let roles: Vec<&str> = cell.roles.iter().map(|role| role.name.as_str()).collect();
    assert_eq!(roles, ["server", "node", "redis"]);
    for role in &cell.roles {
        // The members are at both nodes, and each broadcast comes from the broker.
        assert!(role.share.is_some_and(|share| share > 0.01), "{role:?}");
    }
    let shares: Vec<f64> = cell.roles.iter().filter_map(|role| role.share).collect();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    let [server, node, _] = shares[..] else { panic!("{shares:?}") };
    assert!(node > server / 4.0 && server > node / 4.0, "half of the members each: {shares:?}");
}

/// Two hubs without a broker: each delivers only to its own members, which would be cheap.
#[test]
fn nodes_that_do_not_know_of_each_other_are_disqualified() {
    let course = Course::in_rounds();
    let start = "['{regatta}', 'serve', 'hub', '--model', 'epoll', '--listen', '{host}:{port}']";
    let contender = format!(
        "[[contender]]\nname = 'strangers'\nabout = 'x'\nworkloads = ['hub']\nstart = {start}\n\
         [[contender.backend]]\nname = 'node'\nnode = true\nstart = {start}\n"
    );
    write(&course, "strangers", &contender);
    let ended = course.race(&RACE);
    course.assert_nothing_left();
    ended.assert_verdict("strangers", Kind::Disqualified, &[]);
}
