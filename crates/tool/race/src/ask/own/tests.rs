use super::*;
use crate::ask::prepare::built_in;
use regatta_record::CpuSets;

fn race(words: &[&str]) -> Result<Contest, String> {
    let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
    let own = OwnRace { words: &words, ..OwnRace::default() };
    Contest::of_command_line(own, &built_in()).map_err(|error| error.to_string())
}

#[test]
fn servers_of_the_command_line_race_each_other_and_the_null_server() {
    let contest = race(&["./old {port}", "fast=PORT={port} ./new", "epoll"]).unwrap();
    assert_eq!(contest.contenders, ["old", "fast", "epoll", "null"]);
    assert_eq!(contest.baseline.as_deref(), Some("old"));
    assert_eq!(contest.own[1].env["PORT"], "{port}");
    assert_eq!(contest.name, "old-vs-2-others");
    assert_eq!(race(&["./a {port}", "./b {port}"]).unwrap().name, "a-vs-b");
    let image = race(&["image:x ./run {port}", "PORT={port} image:y"]).unwrap();
    assert_eq!(image.own[0].image.as_deref(), Some("x"));
    assert!(image.own[1].start.is_empty());
}

#[test]
fn a_race_file_or_a_bundled_race_stays_what_it_is() {
    assert!(race(&[]).unwrap().name == "quick");
    let hello = race(&["hello"]).unwrap();
    assert!(hello.name == "hello" && hello.bundled && !hello.all_named);
    assert!(race(&["./no-such-race.toml"]).unwrap_err().contains("cannot read the race"));
}

#[test]
fn what_is_no_race_is_an_error_with_the_ways_to_write_one() {
    for (words, said) in [
        (&["dubble"][..], &["no race `dubble`; did you mean `double`?", "'./old --port"][..]),
        (&["epol"], &["did you mean `epoll`?"]),
        (&["epoll"], &["epoll is a contender", "--only epoll,null"]),
        (&["./old {port}"], &["a single server", "--contender 'mine=./old {port}'"]),
        (&["line://127.0.0.1:1"], &["a single server", "`regatta load line://127.0.0.1:1`"]),
        (&["./old", "./new {port}"], &["\"./old\" is not given its port; write {port}"]),
        (&["epol", "./new {port}"], &["did you mean `epoll`?"]),
        (&["hello", "./new {port}"], &["hello is a race", "race hello --contender"]),
        (&["./a {port}", "line://h:1"], &["must run on this machine", "regatta load line://h:1"]),
        (&["./a {port}", "./b '{port}"], &["missing closing quote"]),
        (&["", "./b {port}"], &["is no command"]),
    ] {
        let error = race(words).unwrap_err();
        for part in said {
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }
}

#[test]
fn one_load_replaces_those_of_a_race_and_the_figures_that_belong_to_them() {
    let load = OwnLoad { connections: Some(9), pipeline: Some(3), rate: None };
    let words = ["double".to_string()];
    let own = OwnRace { words: &words, load: Some(&load), ..OwnRace::default() };
    let contest = Contest::of_command_line(own, &built_in()).unwrap();
    let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
    let loads: Vec<String> = contest.loads(&cpus).0.iter().map(ToString::to_string).collect();
    assert_eq!(loads, ["9 conn × 3"]);
    assert!(contest.then.is_empty() && contest.then_source.is_none());
    let none = OwnLoad { rate: Some(Rate::Number(0)), ..load };
    let own = OwnRace { words: &words, load: Some(&none), ..OwnRace::default() };
    assert!(Contest::of_command_line(own, &built_in()).is_err());
}

#[test]
fn a_workload_of_ones_own_needs_a_contender_that_serves_it() {
    let text = "protocol = 'line'\n[[request]]\nsend = '1'\nexact = '2'";
    let workload = Workload::from_text(text, "mine").unwrap();
    let own = OwnRace { workload: Some(&workload), ..OwnRace::default() };
    let error = Contest::of_command_line(own, &built_in()).unwrap_err().to_string();
    assert!(error.contains("no known contender serves mine"), "{error}");
    let added = OwnRace { adds_contenders: true, ..own };
    let contest = Contest::of_command_line(added, &built_in()).unwrap();
    assert_eq!((contest.contenders, contest.workload), (vec![NULL.to_owned()], "mine".into()));
    let words = ["double".to_string()];
    let both = OwnRace { words: &words, ..own };
    let error = Contest::of_command_line(both, &built_in()).unwrap_err().to_string();
    assert!(error.contains("cannot be combined with mine"), "{error}");
    let built_in_workload = Workload::parse("dialogue").unwrap();
    let own = OwnRace { workload: Some(&built_in_workload), ..OwnRace::default() };
    assert_eq!(Contest::of_command_line(own, &built_in()).unwrap().workload, "dialogue");
}

#[test]
fn a_url_is_a_server_that_is_already_running() {
    let contest =
        race(&["./new {port}", "old=line://127.0.0.1:4000", "line://localhost:1"]).unwrap();
    assert_eq!(contest.contenders, ["new", "old", "port-1", "null"]);
    assert_eq!(contest.own[1].url.as_deref(), Some("line://127.0.0.1:4000"));
    assert!(contest.own[1].start.is_empty() && contest.own[0].url.is_none());
}
