//! How the load speaks a protocol on a connection: how the connection is opened, which bytes are
//! written, and whether received bytes are correct. A dialect is the compiled form of a workload.
//! It owns no socket and no clock, and all load threads share it.
//!
//! The load is generic over its dialect, so there is no dynamic dispatch while it runs.

use crate::{cursor::Cursor, script::Script, time::Nanos};
use regatta_record::{
    AcrossSeen, AnnouncedLosses, BroadcastCounts, Exchange, Operation, Verified, WrongDeliveries,
};

/// A workload compiled for a protocol.
pub trait Dialect: Sync {
    /// State that a load thread keeps for all of its connections.
    type ThreadState;
    /// State of a connection, besides its position in the script.
    type ConnectionState;

    /// Whether a connection has steps before its first request, or sends anything besides requests:
    /// see [`Dialect::open`] and [`Dialect::asides`].
    const OPENS: bool = false;

    /// Whether replies may come in another order than their requests. Then [`Dialect::receive`]
    /// counts correct replies in the order in which they were completed, and the load asks for each
    /// which request it answers ([`Dialect::next_answered`]). The dialect also writes bytes that are
    /// not in the script: see [`Dialect::has_to_write`].
    const MULTIPLEXED: bool = false;

    /// The kinds of operations that may be counted. The first is [`Operation::REQUESTS`], the requests
    /// of the script, which the load itself counts. All others are either messages that the server sends
    /// unsolicited ([`Dialect::PUSHES`]): [`Dialect::receive`] reports each to its [`Heard`]. Or they are
    /// [`Streamed::OPERATIONS`]: a reply consists of several messages ([`Dialect::streamed`]).
    const OPERATIONS: &'static [Operation] = &[Operation::REQUESTS];

    /// Whether the operations beside requests are messages that servers send unsolicited.
    const PUSHES: bool = Self::OPERATIONS.len() > 1;

    /// Whether a reply may be a refusal: right, but its request has not done what it was to do. Refusals are counted
    /// apart, and have no latency: see [`Dialect::next_refused`].
    const REFUSES: bool = false;

    /// The kinds that this workload causes: [`Dialect::OPERATIONS`], or only requests.
    fn operations(&self) -> &'static [Operation] {
        Self::OPERATIONS
    }

    /// All exchanges of the run.
    fn script(&self) -> &Script;

    /// Whether it keeps what all connections of a run have in common, besides the script. Then it
    /// serves only one run.
    fn serves_one_run(&self) -> bool {
        false
    }

    /// Creates the state of a load thread. `wall` returns this machine's time of day, in
    /// nanoseconds since 1970.
    fn desk(&self, wall: fn() -> Nanos) -> Self::ThreadState;

    /// From now on, keeps a connection usable after a complete but wrong reply, where the protocol
    /// permits it: see [`Dialect::resume`].
    fn tolerate(&self, desk: &mut Self::ThreadState) {
        let _ = desk;
    }

    /// Number of replies so far by status, wrong ones included; the index is the status. Empty if
    /// the protocol has no statuses.
    fn statuses<'d>(&self, desk: &'d Self::ThreadState) -> &'d [u64] {
        let _ = desk;
        &[]
    }

    /// Creates the state of a new connection. `number` is its slot, counted over all threads.
    fn talk(&self, number: u32) -> Self::ConnectionState;

    /// Resets `talk` after its connection closed, for the next connection in the same slot.
    fn renew(&self, talk: &mut Self::ConnectionState, number: u32) {
        *talk = self.talk(number);
    }

    /// Stops checking a connection. It has its first reply and is no longer read, so the load
    /// cannot check anything that the server sends on it.
    fn stall(&self, talk: &mut Self::ConnectionState) {
        let _ = talk;
    }

    /// Starts the leaving of this connection's member, which has its first reply. The server owes it
    /// nothing that results from messages sent after this call.
    fn leave(&self, talk: &mut Self::ConnectionState) {
        let _ = talk;
    }

    /// Whether a member that has started to leave has received everything it is owed. It stays
    /// connected until then.
    fn may_go(&self, talk: &Self::ConnectionState) -> bool {
        let _ = talk;
        true
    }

    /// Appends the protocol's closing message to `out`. [`Dialect::ends`] becomes true when the
    /// server answers it. Bytes that arrive before the answer are checked as usual.
    fn say_goodbye(&self, talk: &mut Self::ConnectionState, out: &mut Vec<u8>) {
        let _ = (talk, out);
    }

    /// Continues the steps that open a connection, such as an upgrade or a subscription. Called
    /// first with no bytes, before the connection is established; then with received bytes, until it
    /// returns `true`. Consumes the bytes it has read from the front of `data`; the remaining bytes
    /// are passed to [`Dialect::receive`] afterwards. Appends the bytes to send to `out`. Not
    /// called if [`Dialect::OPENS`] is false.
    ///
    /// # Errors
    /// The received bytes are not a valid opening.
    fn open(
        &self,
        talk: &mut Self::ConnectionState,
        data: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Box<Exchange>> {
        let _ = (talk, data, out);
        Ok(true)
    }

    /// Records that `k` more requests are issued on this connection. Their latency is measured from
    /// `from`: now in a closed loop, the intended send time in an open loop. A dialect whose
    /// requests carry a time keeps it for the bytes that [`Dialect::unsent`] returns next.
    #[inline]
    fn asked(&self, talk: &mut Self::ConnectionState, k: u32, from: Nanos) {
        let _ = (talk, k, from);
    }

    /// Bytes to be written next, as one contiguous slice: the script's bytes, or the same number of
    /// bytes in their place.
    #[inline]
    fn unsent<'b>(
        &'b self,
        cursor: &Cursor,
        talk: &'b mut Self::ConnectionState,
        now: Nanos,
    ) -> &'b [u8] {
        let _ = (talk, now);
        cursor.unsent(self.script())
    }

    /// Records that `n` bytes of [`Dialect::unsent`] were written. Called after each of its calls.
    #[inline]
    fn wrote(&self, cursor: &mut Cursor, talk: &mut Self::ConnectionState, n: usize) {
        let _ = talk;
        cursor.wrote(n);
    }

    /// The last byte of [`Dialect::unsent`] is held back for a while. Returns false if it is not the last
    /// one of a request, and must be written. Only if [`Dialect::MULTIPLEXED`].
    fn hold(&self, talk: &mut Self::ConnectionState) -> bool {
        let _ = talk;
        false
    }

    /// The request whose last byte is held back, if it was answered nevertheless; the index is 0. Only
    /// if [`Dialect::MULTIPLEXED`].
    fn early(&self, talk: &Self::ConnectionState) -> Option<Exchange> {
        let _ = talk;
        None
    }

    /// Maximum number of requests that the server permits in flight on this connection at the moment;
    /// 0 if no request may follow. Only if [`Dialect::MULTIPLEXED`].
    #[inline]
    fn in_flight_limit(&self, talk: &Self::ConnectionState) -> u32 {
        let _ = talk;
        u32::MAX
    }

    /// The lowest such limit of any connection so far, if it was below the number of requests in
    /// flight that the load asks for.
    fn lowest_limit(&self, desk: &Self::ThreadState) -> Option<u32> {
        let _ = desk;
        None
    }

    /// Whether the limit has risen since the last call, so that requests may follow which did not fit
    /// before. Only if [`Dialect::MULTIPLEXED`].
    fn has_more_room(&self, talk: &mut Self::ConnectionState) -> bool {
        let _ = talk;
        false
    }

    /// Whether there are bytes to write although no request was added, e.g. an acknowledgment. Only if
    /// [`Dialect::MULTIPLEXED`].
    #[inline]
    fn has_to_write(&self, cursor: &Cursor, talk: &Self::ConnectionState) -> bool {
        let _ = (cursor, talk);
        false
    }

    /// The next request whose reply was received and not taken yet by this function, right or wrong, in
    /// the order in which the replies were completed. Only if [`Dialect::MULTIPLEXED`].
    fn next_answered(&self, talk: &mut Self::ConnectionState) -> Option<Turn> {
        let _ = talk;
        None
    }

    /// What the server streamed in the reply that [`Dialect::next_answered`] returned last; `None` if that
    /// reply is not a stream. The load counts it if the reply is right. Only if [`Dialect::MULTIPLEXED`].
    fn streamed(&self, talk: &Self::ConnectionState) -> Option<Streamed> {
        let _ = talk;
        None
    }

    /// The next request that ended without a reply while its connection continues. From then on it is
    /// no longer owed. Only if [`Dialect::MULTIPLEXED`].
    fn next_unanswered(
        &self,
        cursor: &mut Cursor,
        talk: &mut Self::ConnectionState,
    ) -> Option<(Turn, Unanswered)> {
        let _ = (cursor, talk);
        None
    }

    /// Gives up a single request, by its position as in [`Turn`]: its reply has timed out. It becomes one
    /// of [`Dialect::next_unanswered`]. Only if [`Dialect::MULTIPLEXED`].
    fn cancel(&self, talk: &mut Self::ConnectionState, position: u32) {
        let _ = (talk, position);
    }

    /// Takes bytes received at `now`, by the clock that the load measures with, and returns how
    /// many requests they complete. Afterwards [`Dialect::ends`] reports whether the server closes
    /// the connection.
    ///
    /// Unsolicited messages that the server owed are reported to `heard`. Any other unsolicited
    /// bytes are an error.
    ///
    /// # Errors
    /// The first wrong exchange; its index counts replies from this call on. The connection is no
    /// longer usable, unless [`Dialect::resume`] returns `Some`.
    fn receive(
        &self,
        at: At<'_, Self>,
        data: &[u8],
        now: Nanos,
        heard: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>>;

    /// The next refusal among the replies that the last call of [`Dialect::receive`] completed: its index among them,
    /// ascending. Each is returned once. Only if [`Dialect::REFUSES`].
    #[inline]
    fn next_refused(&self, talk: &mut Self::ConnectionState) -> Option<u32> {
        let _ = talk;
        None
    }

    /// Resumes after [`Dialect::receive`] found a wrong reply, if errors are tolerated. Returns the
    /// number of received bytes up to the end of that reply. It and the replies before it count as
    /// answered, and the connection continues after them. Returns `None` if the connection is no
    /// longer usable.
    fn resume(&self, talk: &mut Self::ConnectionState) -> Option<usize> {
        let _ = talk;
        None
    }

    /// Handles the end of the server's sending direction. Returns whether it completes a reply.
    ///
    /// # Errors
    /// The reply that it completes is wrong.
    fn end(&self, at: At<'_, Self>, now: Nanos) -> Result<bool, Box<Exchange>> {
        let _ = (at, now);
        Ok(false)
    }

    /// The partially received reply, if any; its index is 0.
    fn unfinished(&self, cursor: &Cursor, talk: &Self::ConnectionState) -> Option<Exchange> {
        let _ = (cursor, talk);
        None
    }

    /// The close that the server owes after the last reply, if the last request asked for it. The
    /// returned exchange is reported if the server does not close.
    fn owes_end(&self, cursor: &Cursor, talk: &Self::ConnectionState) -> Option<Exchange> {
        let _ = (cursor, talk);
        None
    }

    /// Appends to `out` bytes to be sent besides requests, after received bytes were handled and
    /// between two requests.
    #[inline]
    fn asides(&self, talk: &mut Self::ConnectionState, out: &mut Vec<u8>) {
        let _ = (talk, out);
    }

    /// Whether connections that send nothing must send a sign of life: see [`Dialect::keep_alive`].
    #[inline]
    fn keeps_alive(&self) -> bool {
        false
    }

    /// Adds a sign of life to the bytes that [`Dialect::asides`] returns next, if the connection has sent
    /// nothing for too long at `now`. Called every other second for each open connection that is read, also
    /// while nothing arrives.
    fn keep_alive(&self, talk: &mut Self::ConnectionState, now: Nanos) {
        let _ = (talk, now);
    }

    /// The load lost this connection through the server: it was closed or reset, timed out, or cannot be
    /// parsed further. Returns the number of unsolicited messages that the server owed on it until now. They
    /// are missing, and no longer owed; `heard` gets them, too. [`Dialect::renew`] follows. Not called if the
    /// connection was never established.
    fn undelivered(&self, talk: &mut Self::ConnectionState, heard: &mut impl Heard) -> u64 {
        let _ = (talk, heard);
        0
    }

    /// Whether the server still owes an unsolicited message on any connection, caused by requests
    /// that already have their reply. The load waits for it before it ends.
    #[inline]
    fn owes(&self) -> bool {
        false
    }

    /// What the connections of this process sent to those on other machines and received from them so
    /// far; `None` if there are none ([`crate::CompileOptions::machines`]). The leader of the load
    /// compares it with what those on the other machines sent and received.
    fn across(&self) -> Option<AcrossSeen> {
        None
    }

    /// What the server announced as lost so far to the connections of this process; `None` if that is an error
    /// ([`crate::Pushes::may_be_lost`]).
    fn announced(&self) -> Option<AnnouncedLosses> {
        None
    }

    /// The wrong deliveries so far to the connections of this process, by kind. Those that are missing are counted by
    /// [`Dialect::undelivered`] and [`Dialect::missing`]. `None`: the server pushes nothing to be counted here.
    fn wrong_deliveries(&self) -> Option<WrongDeliveries> {
        None
    }

    /// What else is counted so far of the broadcasts of the connections of this process. `None`: there are none.
    fn broadcasts(&self) -> Option<BroadcastCounts> {
        None
    }

    /// Verifies what [`Dialect::receive`] could only store, and calls `wrong` for each wrong reply.
    /// Called once per desk after the load has ended, outside of all timed sections; not called if
    /// the load ended early. A dialect that verifies replies one by one does so in random order, and
    /// may stop once `is_late` returns true.
    fn verify(
        &self,
        desk: &mut Self::ThreadState,
        is_late: &dyn Fn() -> bool,
        wrong: &mut dyn FnMut(Exchange),
    ) {
        let _ = (desk, is_late, wrong);
    }

    /// How much was verified across all threads. Available after [`Dialect::verify`] was called for
    /// each desk; `None` before that, and if the dialect does not count it.
    fn verified(&self) -> Option<Verified> {
        None
    }

    /// Calls `wrong` for what the server still owes ([`Dialect::owes`]), with the number of unsolicited
    /// messages and one of the exchanges that lack some; `heard` gets them, too. Each load thread calls
    /// this once when it ends, after the load has waited. Not called if the load ended early or was cut
    /// short.
    fn missing(&self, heard: &mut impl Heard, wrong: &mut dyn FnMut(u64, Exchange)) {
        let _ = (heard, wrong);
    }

    /// Whether the server announced that the connection closes after the bytes received so far.
    #[inline]
    fn ends(&self, talk: &Self::ConnectionState) -> bool {
        let _ = talk;
        false
    }
}

/// A connection and the state that its thread keeps.
pub struct At<'c, D: Dialect + ?Sized> {
    /// Its position in the script.
    pub cursor: &'c mut Cursor,
    /// The remaining state of the connection.
    pub talk: &'c mut D::ConnectionState,
    /// The thread's state for all of its connections.
    pub desk: &'c mut D::ThreadState,
}

/// Counts operations that are not replies: messages that a server sends unsolicited.
///
/// A cost may be reported per operation of such a kind, so a dialect reports only operations that
/// it has verified: the server owed exactly this one to this connection, and its bytes are correct.
/// An operation that was not owed, e.g. a duplicate delivery, is an error of [`Dialect::receive`].
/// Otherwise a server would look cheap by sending more than it should.
pub trait Heard {
    /// Reports that a verified operation of the kind `D::OPERATIONS[kind]` arrived; `kind` is never
    /// 0. `sent_at` is the time of the send that caused it, by the clock of [`Dialect::receive`]:
    /// the write in a closed loop, the intended send in an open loop (see [`Dialect::asked`]).
    fn heard(&mut self, kind: usize, sent_at: Nanos);

    /// Like [`Heard::heard`], for an operation that was caused on another machine
    /// ([`Dialect::across`]). What the server owed is only known after the load. `sent_at` is by the clock
    /// of this machine, converted by the offsets that were known before the load. Ignored by default.
    fn heard_from(&mut self, kind: usize, machine: u32, sent_at: i64) {
        let _ = (kind, machine, sent_at);
    }

    /// Reports `count` operations that were owed and do not come, caused by a send at `sent_at`. They have no latency,
    /// and count as longer than all others. They are errors, too, which is reported apart. Ignored by default.
    fn missing(&mut self, kind: usize, sent_at: Nanos, count: u64) {
        let _ = (kind, sent_at, count);
    }

    /// Reports `count` wrong operations, after which the connection is still usable: unsolicited messages that were
    /// not owed, or are missing. By default they end the connection, as any other error of [`Dialect::receive`].
    ///
    /// # Errors
    /// The exchange, which [`Dialect::receive`] must return. Otherwise the errors are tolerated and counted, and the
    /// dialect continues.
    #[cold]
    fn wrong(&mut self, exchange: Box<Exchange>, count: u64) -> Result<(), Box<Exchange>> {
        let _ = count;
        Err(exchange)
    }
}

/// Ignores all reports: for dialects that have only requests.
impl Heard for () {
    #[inline]
    fn heard(&mut self, _: usize, _: Nanos) {}
}

/// Which request of a connection was answered. The requests in flight are in a ring with as many positions
/// as may be in flight ([`crate::CompileOptions::pipeline`]), first in the order in which they were issued.
/// The request that is answered changes places with the first one in the ring, and is removed from
/// there, so the others remain in the ring without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The position of the request.
    pub position: u32,
    /// The position of the first request in the ring.
    pub first: u32,
}

/// The messages of one reply that is a stream. They are known when the reply is complete and right, so
/// messages of other replies never count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streamed {
    /// Number of messages.
    pub messages: u64,
    /// When the first message was complete, by the clock of [`Dialect::receive`]; `None` without messages.
    pub first_at: Option<Nanos>,
    /// The longest time from the end of a message to the end of the next one, in nanoseconds, as they were
    /// received: 0 if they came in one piece. `None` with fewer than two messages.
    pub longest_gap: Option<Nanos>,
}

impl Streamed {
    /// The kinds of operations of a dialect with streams: requests, all messages (without latencies), the
    /// first message of each stream, with its latency as that of a request, and the longest gap of each
    /// stream, whose length is kept as its latency.
    pub const OPERATIONS: &'static [Operation] = &[
        Operation::REQUESTS,
        Operation::MESSAGES,
        Operation::FIRST_MESSAGES,
        Operation::LONGEST_GAPS,
    ];
}

/// Why a request has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The server ended it; holds the reason, in words.
    Ended(String),
    /// It was given up: see [`Dialect::cancel`].
    TimedOut,
    /// The server has not processed it, and announced the close of the connection: it is sent again on
    /// another connection.
    NotProcessed,
}
