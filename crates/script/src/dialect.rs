//! How a protocol is spoken on a connection, as the load sees it: what opens the connection, what is
//! written, and whether what comes is right. A dialect is what a workload was compiled into. It owns
//! no socket and no clock, and all load threads share it.
//!
//! A load is generic over its dialect: nothing here is dispatched while it runs.

use crate::{cursor::Cursor, script::Script, time::Nanos};
use regatta_record::{Exchange, Operation, Verified};

/// A compiled workload in a protocol.
pub trait Dialect: Sync {
    /// What a load thread keeps for all of its connections.
    type Desk;
    /// What is kept of a connection beside its place in the script.
    type Talk;

    /// Whether a connection has steps before its first request, or says something beside requests: see
    /// [`Dialect::open`] and [`Dialect::asides`].
    const OPENS: bool = false;

    /// The kinds of operations that are counted. The first is [`Operation::REQUESTS`], the requests of
    /// the script, which the load itself counts. All others are what the server sends unasked:
    /// [`Dialect::receive`] reports each to its [`Heard`].
    const OPERATIONS: &'static [Operation] = &[Operation::REQUESTS];

    /// All exchanges of the run.
    fn script(&self) -> &Script;

    /// What a load thread keeps. `wall` tells this machine's time of day, in nanoseconds since 1970.
    fn desk(&self, wall: fn() -> Nanos) -> Self::Desk;

    /// From now on a reply that is whole but wrong does not make its connection useless, where the
    /// protocol permits that: see [`Dialect::resume`].
    fn tolerate(&self, desk: &mut Self::Desk) {
        let _ = desk;
    }

    /// Replies so far by their status, where the protocol has one: as many as stand at its place.
    /// Wrong ones are among them.
    fn statuses<'d>(&self, desk: &'d Self::Desk) -> &'d [u64] {
        let _ = desk;
        &[]
    }

    /// What is kept of a fresh connection. `number` is that of its slot, counted over all threads.
    fn talk(&self, number: u32) -> Self::Talk;

    /// The connection of `talk` has ended; from now on it is that of the next one in the same slot.
    fn renew(&self, talk: &mut Self::Talk, number: u32) {
        *talk = self.talk(number);
    }

    /// The connection has its first reply, and nothing more is read of it: a server owes it nothing that the
    /// load could check.
    fn stall(&self, talk: &mut Self::Talk) {
        let _ = talk;
    }

    /// The member of this connection, which has its first reply, begins to leave: a server owes it nothing
    /// that follows from what is sent from now on.
    fn leave(&self, talk: &mut Self::Talk) {
        let _ = talk;
    }

    /// Whether a member that has begun to leave has all that it is owed: until then it stays connected.
    fn may_go(&self, talk: &Self::Talk) -> bool {
        let _ = talk;
        true
    }

    /// Appends to `out` the message that says goodbye to the server. [`Dialect::ends`] becomes true with the
    /// server's answer. Whatever arrives before that is checked as usual.
    fn say_goodbye(&self, talk: &mut Self::Talk, out: &mut Vec<u8>) {
        let _ = (talk, out);
    }

    /// Goes on with the steps that open a connection, such as an upgrade or a subscription. First
    /// called with no bytes when the connection stands, then with what came, until it returns `true`.
    /// It takes what it has read off the front of `came`; what is left is handed to
    /// [`Dialect::receive`] afterwards. It appends to `out` what is to be sent. Not called where
    /// [`Dialect::OPENS`] is false.
    ///
    /// # Errors
    /// What came is not what opens a connection.
    fn open(
        &self,
        talk: &mut Self::Talk,
        came: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Box<Exchange>> {
        let _ = (talk, came, out);
        Ok(true)
    }

    /// `k` more requests are asked on this connection. Their latency counts from `from`: in closed loop
    /// from now, in open loop from their intended send. A dialect whose requests carry a time keeps it
    /// for the bytes that [`Dialect::unsent`] returns next.
    #[inline]
    fn asked(&self, talk: &mut Self::Talk, k: u32, from: Nanos) {
        let _ = (talk, k, from);
    }

    /// What is to be written, all in one piece: the script's bytes, or as many bytes in their place.
    #[inline]
    fn unsent<'b>(&'b self, cursor: &Cursor, talk: &'b mut Self::Talk, now: Nanos) -> &'b [u8] {
        let _ = (talk, now);
        cursor.unsent(self.script())
    }

    /// Takes bytes that came at `now`, a moment of the clock that the load measures by, and returns
    /// how many requests they answer; then [`Dialect::ends`] tells whether the server goes on.
    ///
    /// What the server owed and sent unasked is reported to `heard`. Unasked bytes that are no such
    /// operation are an error.
    ///
    /// # Errors
    /// The first exchange that is wrong; its index counts replies from this call on. The connection
    /// is of no more use then, unless [`Dialect::resume`] says otherwise.
    fn receive(
        &self,
        at: At<'_, Self>,
        came: &[u8],
        now: Nanos,
        heard: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>>;

    /// After [`Dialect::receive`] found a wrong reply, if errors are tolerated: how many of the bytes
    /// that came end with that reply. It and those before it count as answered, and the connection
    /// goes on behind them. `None` if it is of no more use.
    fn resume(&self, talk: &mut Self::Talk) -> Option<usize> {
        let _ = talk;
        None
    }

    /// The server ended its sending direction. Returns whether that completes a reply.
    ///
    /// # Errors
    /// That reply is wrong.
    fn end(&self, at: At<'_, Self>, now: Nanos) -> Result<bool, Box<Exchange>> {
        let _ = (at, now);
        Ok(false)
    }

    /// The reply of which only a part came, if there is one; its index is 0.
    fn unfinished(&self, cursor: &Cursor, talk: &Self::Talk) -> Option<Exchange> {
        let _ = (cursor, talk);
        None
    }

    /// What the server owes once every request has its reply: the end of the connection, where the
    /// last request asked for that. What stands there is told if it does not come.
    fn owes_end(&self, cursor: &Cursor, talk: &Self::Talk) -> Option<Exchange> {
        let _ = (cursor, talk);
        None
    }

    /// Appends to `out` what is to be sent beside requests, between two of them, after what came.
    #[inline]
    fn asides(&self, talk: &mut Self::Talk, out: &mut Vec<u8>) {
        let _ = (talk, out);
    }

    /// Whether the server still owes something unasked, on any connection, that was caused by requests which
    /// have their reply. The load waits for it before it ends.
    #[inline]
    fn owes(&self) -> bool {
        false
    }

    /// Verifies what [`Dialect::receive`] could only keep, and calls `wrong` for each reply that is not
    /// right. Called once for each desk when the load has ended, outside of all that is timed. Where
    /// there is too much to verify, a random sample is chosen: it goes on until `is_late` says so.
    fn verify(
        &self,
        desk: &mut Self::Desk,
        is_late: &dyn Fn() -> bool,
        wrong: &mut dyn FnMut(Exchange),
    ) {
        let _ = (desk, is_late, wrong);
    }

    /// How much was verified together, over all threads, once [`Dialect::verify`] was called for each desk.
    fn verified(&self) -> Option<Verified> {
        None
    }

    /// Calls `wrong` for everything that the server still owes ([`Dialect::owes`]). Each load thread calls this
    /// once, at its end, and only after the load has waited.
    fn missing(&self, wrong: &mut dyn FnMut(Exchange)) {
        let _ = wrong;
    }

    /// Whether the server said that the connection ends with what came.
    #[inline]
    fn ends(&self, talk: &Self::Talk) -> bool {
        let _ = talk;
        false
    }
}

/// A connection, and what its thread keeps for it.
pub struct At<'c, D: Dialect + ?Sized> {
    /// Its place in the script.
    pub cursor: &'c mut Cursor,
    /// What is kept of it beside that.
    pub talk: &'c mut D::Talk,
    /// What the thread keeps for all of its connections.
    pub desk: &'c mut D::Desk,
}

/// Counts operations that are not replies: what a server sends unasked.
///
/// A cost may be reported per operation of such a kind, so a dialect reports only operations that it has
/// verified: the server owed exactly this one to this connection, and its bytes are right. One that was
/// not owed, e.g. a delivery that comes twice, is an error of [`Dialect::receive`]. Otherwise a server
/// would look cheap by sending more than it should.
pub trait Heard {
    /// A verified operation of the kind `D::OPERATIONS[kind]` came; `kind` is never 0. `sent_at` is when
    /// the send that caused it was to happen, by the clock of [`Dialect::receive`]: in closed loop its
    /// write, in open loop its intended send (see [`Dialect::asked`]).
    fn heard(&mut self, kind: usize, sent_at: Nanos);
}

/// Counts nothing: for dialects that have only requests.
impl Heard for () {
    #[inline]
    fn heard(&mut self, _: usize, _: Nanos) {}
}
