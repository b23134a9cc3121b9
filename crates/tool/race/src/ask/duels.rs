//! The shape of duels, which follows from the race alone: which loads share a life, who is in which heat, and how
//! long a slice is.

use super::heats::{Limits, heats};
use crate::ask::entrant::{Entrant, StartPlace};
use regatta_record::{Asked, Drive, LoadShape};
use std::{net::Ipv4Addr, path::Path, time::Duration};

/// Length of a slice in a closed loop, unless the race has another. Another program or a neighbour disturbs a
/// shared machine for 10 to 40 ms at a time; the shorter a slice, the more of them share a disturbance. With nine
/// contenders and the same time, the variance of blocks was 0.1 to 0.9 of that with slices of 50 ms (four
/// comparisons). Shorter ones pay more for caches that are cold after each switch.
const SLICE: Duration = Duration::from_millis(25);
/// Length of a slice with a limited number of requests in flight, and the longest one at a rate.
const SLICE_OF_LATENCIES: Duration = Duration::from_millis(250);
/// Requests of a slice at a rate, so that some are beyond the 99th percentile.
const REQUESTS_OF_A_SLICE: f64 = 1_500.0;

/// Whether a load is raced in duels: it may be, and three contenders can be connected at once.
pub(crate) fn is_raced_in_duels(asked: &Asked, load: &LoadShape) -> bool {
    asked.is_duel(load)
        && 3 * load.max_open_connections() as usize <= regatta_load::most_connections()
}

/// Groups of loads for which all contenders are started in the same way, so that one life carries all of them. A load
/// with few connections does not share the many heats of one with many, in which most slices are those of the anchors.
pub(crate) fn groups<'a>(
    asked: &Asked,
    entrants: &[Entrant],
    loads: impl Iterator<Item = &'a LoadShape>,
    binary: &Path,
) -> Vec<Vec<LoadShape>> {
    let place = StartPlace {
        host: Ipv4Addr::LOCALHOST.into(),
        port: 1,
        backends: &[],
        run: Path::new("/"),
    };
    let mut groups: Vec<(String, Vec<LoadShape>)> = Vec::new();
    for load in loads {
        let launch = |one: &Entrant| format!("{:?}", one.launches(asked, *load, binary, place));
        let launches: String = entrants.iter().map(launch).collect();
        let heats = heats_of(asked, entrants, &[*load]).len();
        let key =
            format!("{:?} {:?} {} {heats} {launches}", load.cores, load.n, load.drive.churns());
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, loads)) => loads.push(*load),
            None => groups.push((key, vec![*load])),
        }
    }
    groups.into_iter().map(|(_, loads)| loads).collect()
}

/// The heats of a group of loads, as indices of contenders.
pub(crate) fn heats_of(
    asked: &Asked,
    entrants: &[Entrant],
    group: &[LoadShape],
) -> Vec<Vec<usize>> {
    let twin = asked.twin();
    let is_anchor = |name: &str| name == asked.baseline || Some(name) == twin.as_deref();
    let anchors: Vec<usize> =
        (0..entrants.len()).filter(|who| is_anchor(&entrants[*who].name)).collect();
    let limits = Limits {
        connections: regatta_load::most_connections(),
        each: group.iter().map(|load| load.max_open_connections() as usize).max().unwrap_or(1),
        slice: group.iter().map(|load| slice(asked, load)).max().unwrap_or(SLICE),
    };
    heats(entrants.len(), &anchors, &limits)
}

/// Length of the slices at a load.
pub(crate) fn slice(asked: &Asked, load: &LoadShape) -> Duration {
    match (asked.slice_s, load.drive) {
        (Some(s), _) => Duration::from_secs_f64(s),
        (None, Drive::Bounded { .. }) => SLICE_OF_LATENCIES,
        (None, drive) => drive.rate().map_or(SLICE, |rate| {
            let length = Duration::from_secs_f64(REQUESTS_OF_A_SLICE / f64::from(rate.get()));
            length.clamp(SLICE, SLICE_OF_LATENCIES)
        }),
    }
}
