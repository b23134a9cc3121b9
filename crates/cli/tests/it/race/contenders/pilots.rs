//! The rates that a pilot pass finds for contenders that change after their start, as programs that are compiled
//! while they run.

use crate::support::race::{course::Course, started::Ended};
use regatta_record::PilotRate;
use std::num::NonZeroU32;

/// Races a contender whose answers take `first_us` at its start and `last_us` after `ms`, at a rate that the pilot
/// finds, and under these further loads, in so many rounds.
fn race([first_us, last_us, ms]: [u32; 3], rounds: u32, further: &str) -> Ended {
    let course = Course::new();
    course.write(
        "race.toml",
        &format!(
            "name = 'pilots'\nworkload = 'double'\ncontenders = ['nobody']\ntwin_of = 'nobody'\n\
             rounds = {rounds}\nschedule = 'rounds'\nwindow = '200ms'\nwarm_up = '0s'\n\
             [[load]]\nconnections = 4\nrate = '100% of slowest'\n{further}"
        ),
    );
    let contender =
        format!("drifts=sh -c 'exec \"$ILL\" {{port}} drifts {first_us} {last_us} {ms}'");
    let args = ["race.toml", "--skip", "nobody", "--out", "out", "--json", "-"];
    let ended = course.race(&[&args[..], &["--contender", &contender]].concat());
    course.assert_nothing_left();
    ended
}

/// Returns what the pilot found, as stored, the requested rate, and what was printed.
fn pilot(first_us: u32, last_us: u32, ms: u32) -> (PilotRate, u32, String) {
    let ended = race([first_us, last_us, ms], 1, "");
    let asked = ended.summary().asked;
    let rate = asked.loads[0].drive.rate().map_or(0, NonZeroU32::get);
    let [pilot] = &asked.pilot[..] else { panic!("{:?}", asked.pilot) };
    (pilot.clone(), rate, ended.stderr)
}

#[test]
fn one_that_gets_faster_does_not_set_a_rate_that_is_too_low() {
    // From 67/s to 2,000/s, or what the machine can do; half a second after the start it is 240/s.
    let (steady, ..) = pilot(2_000, 2_000, 1);
    let (pilot, requested, _) = pilot(60_000, 2_000, 1_200);
    let least = 0.3 * steady.rate_per_s;
    let is_right = pilot.rate_per_s > least && f64::from(requested) > least;
    // On a machine that is too busy, no rate is steady within the time of a pilot.
    assert!(is_right || pilot.unsteady_after_s.is_some(), "{pilot:?}, {steady:?}");
}

#[test]
fn one_that_gets_slower_does_not_set_a_rate_that_is_too_high() {
    // From 2,000/s to 67/s; half a second after the start it is 550/s.
    let (pilot, requested, _) = pilot(2_000, 60_000, 1_200);
    assert!(pilot.rate_per_s < 150.0 && requested < 150, "{pilot:?}, {requested}");
}

#[test]
fn a_rate_that_is_not_steady_in_time_is_stored_and_named() {
    // With `--settle 0s` a pilot warms up for at most 6 s. After these it is 200/s, which a busy machine can do, too:
    // there a faster one would be steady, at what the machine can do.
    let (pilot, _, said) = pilot(60_000, 1_000, 9_000);
    let after_s = pilot.unsteady_after_s.expect("it is not steady");
    assert!((5.0..9.0).contains(&after_s) && pilot.took_s > after_s, "{pilot:?}");
    let named = "pilot: the rate of drifts at 4 conn is not known to have been steady after ";
    assert!(said.contains(named), "{said}");
}

#[test]
fn a_race_that_has_the_load_of_the_pilot_names_the_rate_that_it_does_not_confirm() {
    // As above and faster, but each round lasts 0.2 s from the start, so the rate is that of the start.
    let ended = race([20_000, 10, 9_000], 3, "[[load]]\nconnections = 4\n");
    let printed = "pilot: the rate of drifts";
    assert!(!ended.stderr.contains(printed), "the race shows it: {}", ended.stderr);
    let doubts = ended.summary().doubts;
    let of_pilot: Vec<&String> = doubts.iter().filter(|doubt| doubt.contains("pilot")).collect();
    let [doubt] = of_pilot[..] else { panic!("{of_pilot:?}") };
    assert!(
        doubt.starts_with("at 4 conn the slowest contender of the pilot was drifts"),
        "{doubt}"
    );
    assert!(doubt.ends_with("have a rate that is too high; give the rate as a number"), "{doubt}");
}
