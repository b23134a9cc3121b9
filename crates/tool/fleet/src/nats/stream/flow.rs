//! How much of a stream is under way, and how soon it is sent again (pure).
//!
//! On a slow way, what is sent too early or again too soon waits in a queue before what is new. So little is sent at
//! first, and twice as much whenever an acknowledgement comes quickly (as in RFC 6817, section 2). The time until
//! something is sent again follows from how long acknowledgements take; that of a segment which was sent twice says
//! nothing, because it may be the acknowledgement of either (RFC 6298, section 3).

/// Most segments that are sent and not acknowledged.
const MOST_SEGMENTS: u64 = 4;
/// Bytes under way at first, and after a loss.
const FIRST: u64 = 8 << 10;
/// Within this time, in nanoseconds, an acknowledgement is quick. After twice this time it is slow.
const QUICK_NS: u64 = 250_000_000;
/// Shortest time until something is sent again, in nanoseconds.
const SOONEST_NS: u64 = 250_000_000;
/// Longest such time, unless acknowledgements take long.
const LATEST_NS: u64 = 1_000_000_000;
/// Longest such time in any case.
const LATEST_ON_A_SLOW_WAY_NS: u64 = 4_000_000_000;

/// The flow of one direction.
#[derive(Debug)]
pub(super) struct Flow {
    least: u64,
    most: u64,
    /// Most bytes that may be under way now.
    window: u64,
    /// Whether more was to be sent than the window permitted, since it last changed.
    is_full: bool,
    /// The end of a segment that was sent once, and when.
    timed: Option<(u64, u64)>,
    /// Number of bytes that were sent at least once.
    highest: u64,
    /// Whether the last acknowledgement whose time is known was quick.
    is_quick: bool,
    /// After a loss: what must be received of what is sent again before more is under way.
    next_growth: u64,
    /// How long after a segment was sent it is sent again.
    again_after_ns: u64,
    /// The same, without the doubling after losses.
    usual_ns: u64,
}

impl Flow {
    /// A flow of segments of at most this many bytes.
    pub fn new(longest: u64) -> Flow {
        let least = longest.min(FIRST);
        Flow {
            least,
            most: MOST_SEGMENTS * longest,
            window: least,
            is_full: false,
            timed: None,
            highest: 0,
            is_quick: false,
            next_growth: 0,
            again_after_ns: SOONEST_NS,
            usual_ns: SOONEST_NS,
        }
    }

    /// How many bytes may be sent while this many are under way, if `waiting` bytes wait for that.
    pub fn room(&mut self, under_way: u64, waiting: u64) -> u64 {
        let room = self.window.saturating_sub(under_way);
        self.is_full |= waiting > room;
        room
    }

    /// The bytes from and to these offsets were sent.
    pub fn sent(&mut self, from: u64, to: u64, now_ns: u64) {
        if from >= self.highest && self.timed.is_none() {
            self.timed = Some((to, now_ns));
        }
        self.highest = self.highest.max(to);
    }

    /// The bytes before this offset were received.
    pub fn acknowledged(&mut self, ack: u64, now_ns: u64) {
        let Some((_, sent_ns)) = self.timed.filter(|(end, _)| ack >= *end) else {
            return self.received_again(ack);
        };
        let took_ns = now_ns.saturating_sub(sent_ns);
        self.timed = None;
        self.usual_ns = took_ns.saturating_mul(3).clamp(SOONEST_NS, LATEST_ON_A_SLOW_WAY_NS);
        self.again_after_ns = self.usual_ns;
        self.is_quick = took_ns <= QUICK_NS;
        if took_ns > 2 * QUICK_NS {
            self.window = (self.window / 2).max(self.least);
        } else if self.is_quick && self.is_full {
            self.window = (self.window * 2).min(self.most);
        }
        self.is_full = false;
    }

    /// The bytes before this offset were received, some of which may have been sent twice.
    fn received_again(&mut self, ack: u64) {
        if self.timed.is_none() && self.is_quick && ack >= self.next_growth && ack <= self.highest {
            self.window = (self.window * 2).min(self.most);
            self.next_growth = ack + self.window;
        }
    }

    /// No acknowledgement came in time. The bytes before this offset were received.
    pub fn lost(&mut self, acked: u64) {
        (self.window, self.timed) = (self.least, None);
        self.next_growth = acked + self.window;
        self.again_after_ns = (self.again_after_ns * 2).min(self.usual_ns.max(LATEST_NS));
    }

    /// The carrier was interrupted, and what was under way is lost.
    pub fn interrupted(&mut self) {
        (self.timed, self.again_after_ns) = (None, SOONEST_NS);
    }

    /// How long after a segment was sent it is sent again, in nanoseconds.
    pub fn again_after_ns(&self) -> u64 {
        self.again_after_ns
    }
}
