//! Deadlines: a hierarchical timer wheel, at most one entry per coroutine.
//!
//! It knows ticks (milliseconds since the scheduler started) and keys (coroutine numbers), but no
//! clocks and no coroutines. Setting a later deadline and clearing one are two stores: the entry
//! stays in its slot and is checked only when the slot expires (*lazy re-arming*). So a connection
//! with a read timeout of 30 s is filed again about once in 30 s, not per read.
//!
//! Layout after Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987): level L
//! has 64 slots of 64^L ticks. An entry is filed at the level of the highest base-64 digit in which
//! its tick differs from now. Hence every entry of a lower level expires before any of a higher
//! one, and an occupied slot always lies ahead of now's own digit.

/// A tick that is never reached: no deadline.
pub(crate) const NEVER: u64 = u64::MAX;

const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
/// Enough base-64 digits for every 64-bit tick, so no deadline is too far away.
const LEVELS: usize = 11;
/// The first nodes are the heads of the slots' circular lists; the node of key k follows at
/// `HEADS + k`.
const HEADS: usize = SLOTS * LEVELS;
const UNFILED: u32 = u32::MAX;

struct Node {
    previous: u32,
    /// `UNFILED` when the entry is in no list.
    next: u32,
    /// Where it is filed: never later than `deadline`, unless that had passed already.
    filed: u64,
    deadline: u64,
}

pub(crate) struct Wheel {
    now: u64,
    nodes: Vec<Node>,
    /// One bit per slot: its list is not empty.
    occupied: [u64; LEVELS],
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        let head = |slot| Node { previous: slot, next: slot, filed: NEVER, deadline: NEVER };
        Wheel { now: 0, nodes: (0..HEADS as u32).map(head).collect(), occupied: [0; LEVELS] }
    }

    /// Sets the deadline of `key`, replacing its previous one. A deadline that is not after the
    /// wheel's current tick expires at the next tick.
    #[inline]
    pub(crate) fn set(&mut self, key: u32, deadline: u64) {
        let node = HEADS as u32 + key;
        if node as usize >= self.nodes.len() {
            let unfiled =
                || Node { previous: UNFILED, next: UNFILED, filed: NEVER, deadline: NEVER };
            self.nodes.resize_with(node as usize + 1, unfiled);
        }
        let entry = &mut self.nodes[node as usize];
        entry.deadline = deadline;
        if entry.next == UNFILED {
            self.file(node);
        } else if deadline < entry.filed {
            self.unfile(node);
            self.file(node);
        }
    }

    /// Clears the deadline of `key`. Its entry is dropped when its slot expires.
    #[inline]
    pub(crate) fn clear(&mut self, key: u32) {
        self.nodes[HEADS + key as usize].deadline = NEVER;
    }

    /// Removes `key` at once, because its number will be reused.
    pub(crate) fn remove(&mut self, key: u32) {
        let node = HEADS + key as usize;
        if node < self.nodes.len() && self.nodes[node].next != UNFILED {
            self.unfile(node as u32);
        }
    }

    /// The next tick at which `advance` has something to do.
    #[inline]
    pub(crate) fn next(&self) -> Option<u64> {
        self.nearest().map(|(_, tick)| tick)
    }

    /// The occupied slot that expires first: its head, and its first tick.
    #[inline]
    fn nearest(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        let slot = self.occupied[level].trailing_zeros() as usize;
        let shift = level as u32 * DIGIT_BITS;
        let digits_above = self.now.checked_shr(shift + DIGIT_BITS).unwrap_or(0);
        Some((level * SLOTS + slot, (digits_above << DIGIT_BITS | slot as u64) << shift))
    }

    /// Advances to the tick `now`, and reports every key whose deadline has passed. Keys are in
    /// order of deadlines; those with equal deadlines, in the order in which they were filed.
    pub(crate) fn advance(&mut self, now: u64, mut expired: impl FnMut(u32)) {
        while let Some((head, tick)) = self.nearest().filter(|&(_, tick)| tick <= now) {
            self.now = tick;
            // An entry that is filed again goes to another slot: this slot starts at `tick`, so an
            // entry that is not due belongs to a lower level or to a later slot.
            while self.nodes[head].next != head as u32 {
                let node = self.nodes[head].next;
                self.unfile(node);
                match self.nodes[node as usize].deadline {
                    NEVER => {}
                    deadline if deadline <= tick => expired(node - HEADS as u32),
                    _ => self.file(node),
                }
            }
        }
        self.now = self.now.max(now);
    }

    fn file(&mut self, node: u32) {
        let filed = self.nodes[node as usize].deadline.max(self.now + 1);
        let level = (63 - (self.now ^ filed).leading_zeros()) / DIGIT_BITS;
        let slot = (filed >> (level * DIGIT_BITS)) as usize % SLOTS;
        let head = level as usize * SLOTS + slot;
        let last = self.nodes[head].previous;
        let entry = &mut self.nodes[node as usize];
        (entry.previous, entry.next, entry.filed) = (last, head as u32, filed);
        self.nodes[last as usize].next = node;
        self.nodes[head].previous = node;
        self.occupied[level as usize] |= 1 << slot;
    }

    fn unfile(&mut self, node: u32) {
        let entry = &mut self.nodes[node as usize];
        let (previous, next) = (entry.previous, entry.next);
        (entry.previous, entry.next) = (UNFILED, UNFILED);
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
        if previous == next {
            // Only a head is its own neighbour on both sides: the list has become empty.
            let head = next as usize;
            self.occupied[head / SLOTS] &= !(1 << (head % SLOTS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advance(wheel: &mut Wheel, now: u64) -> Vec<u32> {
        let mut keys = Vec::new();
        wheel.advance(now, |key| keys.push(key));
        keys
    }

    #[test]
    fn deadlines_expire_in_order_and_never_early() {
        let mut wheel = Wheel::new();
        for (key, deadline) in [(0, 70), (1, 5), (2, 5_000), (3, 5), (4, NEVER - 1)] {
            wheel.set(key, deadline);
        }
        assert_eq!(advance(&mut wheel, 4), []);
        assert_eq!(advance(&mut wheel, 5), [1, 3]);
        assert_eq!(advance(&mut wheel, 69), []);
        assert_eq!(advance(&mut wheel, 4_999), [0]);
        assert_eq!(advance(&mut wheel, 1 << 40), [2]);
        assert_eq!(advance(&mut wheel, NEVER - 1), [4]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn a_later_deadline_is_not_filed_again_until_the_old_one_expires() {
        let mut wheel = Wheel::new();
        wheel.set(0, 10);
        wheel.set(0, 20);
        assert_eq!(wheel.next(), Some(10));
        assert_eq!(advance(&mut wheel, 10), []);
        assert_eq!(wheel.next(), Some(20));
        assert_eq!(advance(&mut wheel, 20), [0]);
    }

    #[test]
    fn earlier_deadlines_replace_and_cleared_or_removed_ones_do_not_expire() {
        let mut wheel = Wheel::new();
        wheel.set(0, 1_000);
        wheel.set(0, 3);
        wheel.set(1, 3);
        wheel.clear(1);
        wheel.set(2, 3);
        wheel.remove(2);
        assert_eq!(advance(&mut wheel, 2_000), [0]);
        assert_eq!(wheel.next(), None);
    }

    /// Compares with a simple model: a list of deadlines that is scanned at every step.
    #[test]
    fn agrees_with_a_simple_list_over_random_steps() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut wheel = Wheel::new();
        let mut model = [NEVER; 50];
        let mut now = 0;
        for _ in 0..200_000 {
            let key = random(50) as u32;
            match random(10) {
                0 => {
                    wheel.remove(key);
                    model[key as usize] = NEVER;
                }
                1 if model[key as usize] != NEVER => {
                    wheel.clear(key);
                    model[key as usize] = NEVER;
                }
                2..=6 => {
                    let span = [3, 70, 5_000, 400_000][random(4) as usize];
                    model[key as usize] = now + 1 + random(span);
                    wheel.set(key, model[key as usize]);
                }
                _ => {
                    let span = [2, 50, 3_000, 300_000][random(4) as usize];
                    now += random(span);
                    let mut due: Vec<u64> = model.iter().copied().filter(|&d| d <= now).collect();
                    due.sort_unstable();
                    let mut seen = Vec::new();
                    wheel.advance(now, |key| {
                        seen.push(std::mem::replace(&mut model[key as usize], NEVER));
                    });
                    assert_eq!(seen, due);
                    let nearest = model.iter().copied().min().filter(|&d| d != NEVER);
                    if let Some(nearest) = nearest {
                        assert!(wheel.next().is_some_and(|tick| tick > now && tick <= nearest));
                    }
                }
            }
        }
    }
}
