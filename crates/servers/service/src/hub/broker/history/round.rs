//! What is done for all rooms, a few of them with each heartbeat, so that neither the hub nor the broker is busy with all at
//! once.

use regatta_engine::RoomName;
use std::collections::VecDeque;

/// Rooms, one after the other, and then again.
#[derive(Debug, Default)]
pub(super) struct Round {
    rooms: VecDeque<RoomName>,
    share: usize,
    /// So many heartbeats before the next round.
    pause: usize,
}

impl Round {
    /// The rooms of a heartbeat, if a round takes at least and at most so many. `all`: those of a new round.
    pub fn next(
        &mut self,
        (least, most): (usize, usize),
        all: impl FnOnce() -> VecDeque<RoomName>,
    ) -> Vec<RoomName> {
        if self.rooms.is_empty() && self.pause == 0 {
            (self.rooms, self.pause) = (all(), least);
            self.share = self.rooms.len().div_ceil(most);
        }
        self.pause = self.pause.saturating_sub(1);
        self.rooms.drain(..self.share.min(self.rooms.len())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_each_room_once_and_about_the_same_number_with_each_heartbeat() {
        let mut round = Round::default();
        for rooms in [0, 1, 59, 60, 61, 100_000] {
            let all: VecDeque<_> = (0..rooms).map(|n| RoomName::of(&n.to_string())).collect();
            let mut beats = 0;
            let mut seen = round.next((1, 60), || all.clone());
            let first = seen.len();
            while seen.len() < rooms {
                let next = round.next((1, 60), || unreachable!("the round is not over"));
                assert!(next.len() <= first);
                seen.extend(next);
                beats += 1;
            }
            assert!(beats < 60 && first == rooms.div_ceil(60) && all == seen);
        }
    }

    #[test]
    fn a_short_round_does_not_begin_again_at_once() {
        for rooms in [0, 3] {
            let (mut round, mut begun) = (Round::default(), 0);
            for _ in 0..100 {
                round.next((10, 3_600), || {
                    begun += 1;
                    (0..rooms).map(|n| RoomName::of(&n.to_string())).collect()
                });
            }
            assert_eq!(begun, 10);
        }
    }
}
