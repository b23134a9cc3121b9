//! The null server in a race over HTTP: it gets the length of a request and one reply.

use crate::support::race::course::Course;
use regatta_record::Kind;

#[test]
fn null_races_hello_kept_alive_pipelined_and_with_a_connection_per_request() {
    let course = Course::new();
    course.write(
        "race.toml",
        "name = 'test'\nworkload = 'hello'\ncontenders = ['epoll', 'null']\ntwin_of = 'nobody'\n\
         rounds = 1\nwindow = '1s'\nwarm_up = '0s'\n\
         [[load]]\nconnections = 8\n\
         [[load]]\nconnections = 8\npipeline = 16\n\
         [[load]]\nconnections = 8\nchurn = true\n\
         [[load]]\nconnections = 8\nchurn = true\nrequests = 100\n\
         [[load]]\nconnections = 8\nidle = 20\nrate = 1000\n",
    );
    let args = ["race.toml", "--out", "out", "--json", "-"];
    let summary = course.race(&args).raced().summary();
    course.assert_nothing_left();
    assert_eq!(summary.asked.contenders, ["epoll", "null"]);
    let of_null: Vec<_> = summary.cells.iter().filter(|cell| cell.contender == "null").collect();
    assert_eq!(of_null.len(), 5);
    for cell in of_null {
        let failed = matches!(cell.verdict.kind(), Kind::Failed | Kind::Disqualified);
        assert!(cell.requests > 0 && !failed, "{cell:?}");
    }
}

#[test]
fn the_canned_adapter_is_refused_for_workloads_other_than_hello() {
    let course = Course::new();
    let own = "connections = 8\n[[contender]]\nname = 'own'\nabout = 'x'\nadapter = 'canned'\n\
               workloads = ['double']\nstart = ['sh', '{port}']";
    course.write_race("'epoll', 'own'", "1s", own);
    let ended = course.race(&["race.toml", "--out", "out"]).with_status(2);
    ended.assert_printed(&["the contender own", "serves only hello", "this race runs double"]);
}
