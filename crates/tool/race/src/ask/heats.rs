//! Heats: which contenders are alive together.

use std::time::Duration;

/// A contender comes round again within this time, because servers close connections that are silent for
/// longer (node: 5 s).
pub(crate) const ROTATION: Duration = Duration::from_secs(3);

/// What limits a heat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections that the load may have open at once.
    pub connections: usize,
    /// Connections of one contender.
    pub each: usize,
    /// Length of a slice.
    pub slice: Duration,
}

/// Divides the contenders `0..k` into heats. The `anchors` (the baseline, and its twin) are in each of them,
/// so every ratio is between contenders that were alive together. The others are spread evenly, in their
/// order.
pub(crate) fn heats(k: usize, anchors: &[usize], limits: &Limits) -> Vec<Vec<usize>> {
    let by_connections = limits.connections / limits.each.max(1);
    let by_time = (ROTATION.as_nanos() / limits.slice.as_nanos().max(1)) as usize;
    // A heat that compares nothing with nothing is of no use, so it has one more than the anchors at least.
    let most = by_connections.min(by_time).max(anchors.len() + 1);
    let others: Vec<usize> = (0..k).filter(|who| !anchors.contains(who)).collect();
    if others.is_empty() {
        return vec![anchors.to_vec()];
    }
    let count = others.len().div_ceil(most - anchors.len());
    let (least, more) = (others.len() / count, others.len() % count);
    let mut rest = &others[..];
    (0..count)
        .map(|nth| {
            let (these, later) = rest.split_at(least + usize::from(nth < more));
            rest = later;
            [anchors, these].concat()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(connections: usize, each: usize, slice_ms: u64) -> Limits {
        Limits { connections, each, slice: Duration::from_millis(slice_ms) }
    }

    #[test]
    fn all_are_alive_together_if_there_is_room() {
        assert_eq!(heats(5, &[1], &limits(10_000, 64, 50)), [vec![1, 0, 2, 3, 4]]);
        assert_eq!(heats(2, &[0, 1], &limits(10, 64, 50)), [vec![0, 1]], "only anchors");
    }

    #[test]
    fn the_baseline_and_its_twin_are_in_each_heat_and_the_others_in_one() {
        // 1,000 connections each, 4,500 in all: four contenders at a time, two of them anchors.
        let four = heats(7, &[0, 6], &limits(4_500, 1_000, 50));
        assert_eq!(four, [vec![0, 6, 1, 2], vec![0, 6, 3, 4], vec![0, 6, 5]]);
        let slow = heats(9, &[0], &limits(100_000, 64, 1_000));
        assert_eq!(slow.len(), 4, "three slices of a second each: {slow:?}");
        let none_fits = heats(3, &[0], &limits(10, 64, 50));
        assert_eq!(none_fits, [vec![0, 1], vec![0, 2]]);
    }
}
