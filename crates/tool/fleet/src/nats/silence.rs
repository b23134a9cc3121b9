//! Whether the agent of a session is silent although something is on its way to it (pure).
//!
//! The leader itself notices a silence of 2 s, except while an agent receives a load and starts its processes: that may
//! take minutes. The standing agent acknowledges what it receives meanwhile, so the relay can tell both apart.

/// How long an agent may be silent, in nanoseconds: as long as for its leader.
const USUAL_NS: u64 = 2_000_000_000;
/// What is under way crosses at this many bytes per second at least.
const SLOWEST_WAY: u64 = 64 << 10;
/// An agent reads a message at this many bytes per second at least, and acknowledges nothing meanwhile.
const SLOWEST_READER: u64 = 8 << 20;
/// After a pause of this process (SIGSTOP, a suspended machine), what came meanwhile is read first: within this time, in
/// nanoseconds.
const CAUGHT_UP_WITHIN_NS: u64 = 200_000_000;

/// The silence of an agent.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Since when it is silent although something is under way.
    since_ns: Option<u64>,
    /// Since when that is known to be too long.
    overdue_ns: Option<u64>,
    /// The longest message that was written to it, in bytes.
    longest: u64,
}

impl Silence {
    /// A message of so many bytes was written to it.
    pub fn wrote(&mut self, bytes: usize) {
        self.longest = self.longest.max(bytes as u64);
    }

    /// Something came from it, or nothing is expected.
    pub fn ends(&mut self) {
        (self.since_ns, self.overdue_ns) = (None, None);
    }

    /// Looks at a time. Returns whether it is silent for too long, while so many bytes are under way.
    pub fn is_too_long(&mut self, under_way: u64, now_ns: u64) -> bool {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        let crosses_ns = time_ns(under_way, SLOWEST_WAY);
        let limit_ns = USUAL_NS + crosses_ns + time_ns(self.longest, SLOWEST_READER);
        if now_ns.saturating_sub(since_ns) <= limit_ns {
            self.overdue_ns = None;
            return false;
        }
        let overdue_ns = *self.overdue_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(overdue_ns) >= CAUGHT_UP_WITHIN_NS
    }
}

/// How long so many bytes take, in nanoseconds.
fn time_ns(bytes: u64, per_s: u64) -> u64 {
    bytes.saturating_mul(1_000_000_000) / per_s
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// When a silence that began at 0 is too long, in milliseconds, if it is looked at every 50 ms.
    fn over_ms(silence: &mut Silence, under_way: u64) -> u64 {
        let looks = (0..2_000).map(|look| look * 50);
        let mut over = looks.skip_while(|at_ms| !silence.is_too_long(under_way, at_ms * MS));
        over.next().expect("it is never over")
    }

    #[test]
    fn a_silence_is_over_2_s_after_a_request() {
        let mut silence = Silence::default();
        silence.wrote(300);
        assert_eq!(over_ms(&mut silence, 344), 2_250);
    }

    #[test]
    fn what_crosses_slowly_or_takes_long_to_read_is_no_silence() {
        assert!(over_ms(&mut Silence::default(), 2 << 20) > 34_000);
        let mut silence = Silence::default();
        silence.wrote(256 << 20);
        assert!(over_ms(&mut silence, 300) > 34_000);
    }

    #[test]
    fn a_silence_begins_again_when_something_came() {
        let mut silence = Silence::default();
        assert!(!silence.is_too_long(300, 0));
        silence.ends();
        assert!(!silence.is_too_long(300, 2_900 * MS));
        assert!(!silence.is_too_long(300, 4_800 * MS));
    }

    #[test]
    fn after_a_pause_what_came_meanwhile_is_read_first() {
        let mut silence = Silence::default();
        assert!(!silence.is_too_long(300, 0));
        assert!(!silence.is_too_long(300, 60_000 * MS));
        silence.ends();
        assert!(!silence.is_too_long(300, 60_500 * MS));
    }
}
