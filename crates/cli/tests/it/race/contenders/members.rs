//! Hubs that close connections of members.

use crate::support::race::course::Course;
use regatta_record::{Figure, Kind};

/// It owes nothing when it closes them, so no reply and no delivery is missing. Until they have joined again, it has
/// fewer deliveries to make than the others.
#[test]
fn a_hub_that_dismisses_most_of_its_members_has_no_rate_and_no_latency() {
    let course = Course::new();
    course.write(
        "race.toml",
        "name = 'test'\nworkload = 'hub'\ncontenders = ['nobody']\ntwin_of = 'nobody'\nrounds = 1\n\
         window = '1s'\nwarm_up = '0s'\n[[load]]\nconnections = 1\nidle = 9\n",
    );
    let contender =
        |name: &str, how: &str| format!("{name}=sh -c 'exec \"$HUB_LIAR\" {{port}} {how}'");
    let (honest, liar) = (contender("honest", "honest"), contender("liar", "dismisses 50"));
    let more = ["--contender", &honest, "--contender", &liar, "--out", "out", "--json", "-"];
    let ended = course.race(&[&["race.toml", "--skip", "nobody"][..], &more].concat());
    course.assert_nothing_left();
    ended.assert_verdict("liar", Kind::MembersAway, &["of the deliveries were owed to nobody"]);
    let [liar, honest] = ["liar", "honest"].map(|name| ended.verdict(name));
    for figure in [Figure::Rate, Figure::Latency] {
        assert!(liar.voids(figure), "{liar:?}");
        assert!(!honest.is(Kind::MembersAway), "{honest:?}");
    }
}
