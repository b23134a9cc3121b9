//! Loads with more connections than one load process may open.

use crate::support::race::course::Course;
use regatta_record::{Outcome, Round};
use std::process::Command;

#[test]
fn a_load_takes_several_processes_if_one_may_not_open_enough_connections() {
    let course = Course::new();
    course.write_quiet_race("'null'", "1s", "connections = [900, 8]");
    let regatta = env!("CARGO_BIN_EXE_regatta");
    // Each of the server's three processes gets about a third of the connections.
    let many = format!(
        "many={regatta} serve double --model cluster --cores 3 --listen 127.0.0.1:{{port}}"
    );
    let args = ["race.toml", "--skip", "null", "--out", "out", "--contender", &many];
    let race = course.command(&args);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n $0; exec \"$@\"", "520"])
        .arg(race.get_program())
        .args(race.get_args())
        .current_dir(race.get_current_dir().unwrap())
        .envs(race.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = course.started(limited).ended();
    course.assert_nothing_left();
    ended.assert_printed(&["note: 900 connections need 2 load processes: the file limit"]);
    let rounds = String::from_utf8(course.rounds()).unwrap();
    let rounds: Vec<Round> =
        rounds.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rounds.len(), 2, "{ended:?}");
    for round in rounds {
        assert_eq!(round.outcome, Outcome::Finished, "{round:?}");
        assert!(round.requests > 0 && round.errors.total() == 0, "{:?}", round.errors);
        assert!(round.server.is_some_and(|server| server.cpu_ns > 0));
        let processes = round.machine.and_then(|machine| machine.load_processes);
        assert_eq!(processes, (round.load.connections == 900).then_some(2));
    }
}
