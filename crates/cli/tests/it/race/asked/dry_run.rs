//! `race --dry-run` prints the plan and starts nothing.

use crate::support::race::course::Course;
use regatta_record::{LoadShape, RacePlan};

const RACE: &str = "rounds = 3
window = '400ms'
[[load]]
connections = [8, 16]
[[contender]]
name = 'mine'
about = 'would leave a file'
workloads = ['double']
version = ['sh', '-c', 'echo > asked']
start = ['sh', '-c', 'echo > started; exec \"$ILL\" {port}']
";

#[test]
fn prints_the_plan_and_starts_nothing() {
    let course = Course::new();
    course.write("race.toml", &format!("contenders = ['null', 'mine']\n{RACE}"));
    let ended = course.race(&["race.toml", "--dry-run", "--out", "out"]).with_status(0);
    for part in [
        "race · double · 3 lives in slices of 25 ms · seed ",
        "mine (the baseline): sh -c echo > started",
        "mine-twin (for the noise floor)",
        "  16 conn\n",
        "6 cells, 9 starts. Duration: between ",
        "Nothing was started.",
    ] {
        assert!(ended.stdout.contains(part), "no {part:?} in {}", ended.stdout);
    }
    for absent in ["asked", "started", "out"] {
        assert!(!course.path(absent).exists(), "{absent} exists");
    }
    assert!(course.processes().is_empty());
}

#[test]
fn the_json_has_the_contenders_the_loads_and_the_duration() {
    let course = Course::new();
    course.write("race.toml", &format!("contenders = ['null', 'mine']\n{RACE}"));
    let args = ["race.toml", "--dry-run", "--json", "-", "--only", "mine,null", "--rounds", "2"];
    let ended = course.race(&args).with_status(0);
    let plan: RacePlan = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(plan.asked.contenders, ["null", "mine", "mine-twin"]);
    assert_eq!(plan.asked.loads, [LoadShape::closed(8, 1), LoadShape::closed(16, 1)]);
    assert_eq!((plan.rounds, plan.starts), ([2, 2], [6, 6]));
    assert!(plan.duration_s[0] > 3.0 && plan.duration_s[0] < plan.duration_s[1]);
    assert!(!course.path("asked").exists());
}

#[test]
fn reports_a_mistake_in_the_race_file() {
    let course = Course::new();
    course.write("race.toml", &format!("contenders = ['null', 'mne']\n{RACE}"));
    let ended = course.race(&["race.toml", "--dry-run"]).with_status(2);
    ended.assert_printed(&["names the contender mne", "did you mean `mine`?"]);
}
