//! Rates of a pilot pass, simulated: what the race has to confirm, and what it silences.

use crate::{
    duels::{NAMES, field},
    simulated::{
        LOAD,
        five::cell,
        lives::{DUEL, Duel, duels, in_duels},
    },
};
use regatta_judge::judge;
use regatta_record::{Asked, Extreme, LoadShape, PilotRate, PilotShare, Round};

/// A rate about which nothing is doubtful.
pub fn steady(contender: &str, load: LoadShape, rate_per_s: f64) -> PilotRate {
    let contender = contender.into();
    PilotRate {
        contender,
        load,
        rate_per_s,
        failed: None,
        window_rate_per_s: None,
        unsteady_after_s: None,
        took_s: 1.0,
    }
}

/// One that changed in all of its pilot.
fn unsteady(contender: &str, rate_per_s: f64) -> PilotRate {
    let (window_rate_per_s, unsteady_after_s) = (Some(0.4 * rate_per_s), Some(0.5));
    PilotRate { window_rate_per_s, unsteady_after_s, ..steady(contender, LOAD, rate_per_s) }
}

/// A race of three ranked contenders, of which node is the slowest and the others are equally fast.
struct Race {
    asked: Asked,
    rounds: Vec<Round>,
    /// The rates of epoll, percore and node.
    rates: [f64; 3],
}

impl Race {
    fn new() -> Race {
        let rounds = duels(&field(), Duel { lives: 5, ..DUEL }, 2);
        let asked = in_duels(&NAMES, 5, &[LOAD]);
        let summary = judge(&asked, &rounds);
        let rate = |name| cell(&summary, name).rate_per_s.as_ref().unwrap().mean;
        let rates = ["epoll", "percore", "node"].map(rate);
        assert!((rates[0] / rates[1] - 1.0).abs() < 0.05 && rates[2] < 0.6 * rates[0], "{rates:?}");
        Race { asked, rounds, rates }
    }

    /// What is doubted after these pilots of epoll, percore and node: their rates as multiples of those of the race.
    fn doubts(&self, of: Extreme, times: [f64; 3]) -> Vec<String> {
        let [epoll, percore, node] = [0, 1, 2].map(|n| times[n] * self.rates[n]);
        let mut pilot = vec![unsteady("epoll", epoll), unsteady("percore", percore)];
        pilot.extend([unsteady("node", node), unsteady("null", 1.0)]);
        self.doubts_of(of, pilot, LOAD)
    }

    fn doubts_of(&self, of: Extreme, pilot: Vec<PilotRate>, load: LoadShape) -> Vec<String> {
        let pilot_shares = vec![PilotShare { load, of }];
        let asked = Asked { pilot, pilot_shares, ..self.asked.clone() };
        let doubts = judge(&asked, &self.rounds).doubts;
        doubts.into_iter().filter(|doubt| doubt.contains("pilot")).collect()
    }
}

#[test]
fn a_race_that_confirms_the_rate_of_a_pilot_silences_its_doubts() {
    let race = Race::new();
    for times in [0.85, 1.0, 1.2] {
        assert_eq!(race.doubts(Extreme::Slowest, [1.0, 1.0, times]), [""; 0]);
        assert_eq!(race.doubts(Extreme::Fastest, [times, times, 1.0]), [""; 0]);
    }
    // Another one than that of the pilot is the slowest, or the fastest, but has the same rate.
    assert_eq!(race.doubts(Extreme::Slowest, [0.6, 1.0, 1.1]), [""; 0]);
    assert_eq!(race.doubts(Extreme::Fastest, [0.3, 1.0, 1.0]), [""; 0]);
}

#[test]
fn whichever_contender_passes_the_rate_of_a_pilot_in_the_race_is_named() {
    let race = Race::new();
    let only = |of, times| match &race.doubts(of, times)[..] {
        [one] => one.clone(),
        all => panic!("{all:?}"),
    };
    // One that bursts in its pilot, and that is not the slowest there.
    let high = only(Extreme::Slowest, [0.8, 1.0, 2.0]);
    assert!(
        high.starts_with("at 64 conn the slowest contender of the pilot was epoll with "),
        "{high}"
    );
    assert!(high.contains("but in the race node had ") && !high.contains("percore"), "{high}");
    assert!(high.ends_with("a rate that is too high; give the rate as a number"), "{high}");
    // Those that are compiled later than any pilot lasts, and that are not the fastest there.
    let low = only(Extreme::Fastest, [0.3, 0.3, 1.0]);
    assert!(low.contains(" fastest contender of the pilot was node with "), "{low}");
    assert!(low.contains("epoll had ") && low.contains("percore had "), "{low}");
    assert!(low.ends_with("a rate that is too low; give the rate as a number"), "{low}");
    // The one that decides.
    let high = only(Extreme::Slowest, [1.0, 1.0, 1.4]);
    assert!(
        high.contains("was node with ") && high.contains("but in the race node had "),
        "{high}"
    );
}

#[test]
fn a_rate_of_a_pilot_that_no_contender_reaches_in_the_race_is_doubted() {
    let race = Race::new();
    let doubt = race.doubts(Extreme::Slowest, [1.0, 1.0, 0.3]).concat();
    assert!(doubt.contains("but in the race node had "), "{doubt}");
    assert!(doubt.ends_with("a rate that is too low; give the rate as a number"), "{doubt}");
    let doubt = race.doubts(Extreme::Fastest, [3.0, 1.0, 1.0]).concat();
    assert!(doubt.contains("but in the race epoll had "), "{doubt}");
    assert!(doubt.ends_with("a rate that is too high; give the rate as a number"), "{doubt}");
}

#[test]
fn the_pilot_of_a_contender_without_a_rate_in_the_race_counts_and_may_be_doubted() {
    let mut race = Race::new();
    race.rounds.retain(|round| round.contender != "node");
    // In its window epoll would have been the slowest, but the race has its rate.
    let doubts = race.doubts(Extreme::Slowest, [1.0; 3]);
    let named: Vec<bool> = doubts
        .iter()
        .map(|one| one.starts_with("the rate of node at 64 conn is not known"))
        .collect();
    assert_eq!(named, [true], "{doubts:?}");
}

#[test]
fn a_contender_that_failed_in_its_pilot_is_compared_with_what_it_did_in_the_race() {
    let mut race = Race::new();
    let other = LoadShape::closed(8, 1);
    let [epoll, ..] = race.rates;
    let pilot = |load| {
        let failed = Some("node exited with status 3".to_owned());
        let node = PilotRate { failed, ..steady("node", load, 0.0) };
        vec![steady("epoll", load, epoll), steady("percore", load, epoll), node]
    };
    let raced = race.doubts_of(Extreme::Slowest, pilot(LOAD), LOAD);
    assert!(raced.len() == 1 && raced[0].contains("but in the race node had "), "{raced:?}");
    assert_eq!(race.doubts_of(Extreme::Fastest, pilot(LOAD), LOAD), [""; 0]);
    // Nothing shows what it can do under a load that the race does not have.
    let not_raced = race.doubts_of(Extreme::Fastest, pilot(other), other);
    assert!(not_raced.len() == 1, "{not_raced:?}");
    assert!(not_raced[0].starts_with("node at 8 conn has no rate from its pilot"), "{not_raced:?}");
    race.rounds.retain(|round| round.contender != "node");
    assert_eq!(race.doubts_of(Extreme::Slowest, pilot(other), other), [""; 0], "it never raced");
}
