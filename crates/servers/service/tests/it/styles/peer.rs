//! A scripted client, and the kernel's side of its connection, as each style sees it.

use crate::styles::{
    client::{Act, Client, Taking},
    played::{Action, Played},
};
use futures_lite::future::yield_now;
use regatta_engine::{Conn, SocketProbe};
use regatta_service::{
    Flow, Job, Limits, Locals, Now,
    style::{asynchronous, sequential},
};
use std::{
    any::Any,
    cell::RefCell,
    collections::VecDeque,
    io,
    time::{Duration, Instant},
};

/// Unix time at which each play starts.
pub const START_UNIX_S: u64 = 784_111_777;

/// Upper bound on the size of a write.
pub const LARGEST_WRITE: usize = 1 << 20;

/// A scripted client, and the kernel's side of its connection.
pub struct Peer {
    start: Instant,
    now: Duration,
    /// The next steps of the client. The first happens at `act_at`.
    acts: VecDeque<Act>,
    act_at: Duration,
    taking: Taking,
    take_at: Duration,
    /// Pieces that have arrived and are unread.
    inbox: VecDeque<Vec<u8>>,
    ended: bool,
    reset: bool,
    send_buffer: usize,
    unacknowledged: usize,
    job: Duration,
    /// Whether a signal interrupts the next read or write. `None`: signals never do.
    interrupt: Option<bool>,
    /// The data that the connections of a thread share; `None` while it is taken.
    local: RefCell<Option<Box<dyn Any + Send>>>,
    taken: RefCell<bool>,
    actions: Vec<(Duration, Action)>,
    finished: bool,
    read: usize,
}

impl Peer {
    pub fn new(client: &Client) -> Self {
        let mut peer = Peer {
            start: Instant::now(),
            now: Duration::ZERO,
            acts: client.acts.clone(),
            act_at: Duration::ZERO,
            taking: Taking::Everything,
            take_at: Duration::ZERO,
            inbox: VecDeque::new(),
            ended: false,
            reset: false,
            send_buffer: client.send_buffer,
            unacknowledged: 0,
            job: client.job,
            interrupt: client.interrupts.then_some(true),
            local: RefCell::new(None),
            taken: RefCell::new(false),
            actions: Vec::new(),
            finished: false,
            read: 0,
        };
        peer.advance(Duration::ZERO);
        peer
    }

    pub fn over(self, result: io::Result<()>) -> Played {
        let Peer { actions, now: closed, read, .. } = self;
        Played { actions, closed, read, error: result.err().map(|error| error.kind()) }
    }

    pub fn now(&self) -> Now {
        let unix_s = START_UNIX_S + self.now.as_secs();
        Now { instant: self.start + self.now, unix_s }
    }

    /// Time since the start of the play.
    pub fn elapsed(&self) -> Duration {
        self.now
    }

    pub fn at(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.start)
    }

    pub fn is_readable(&self) -> bool {
        self.ended || self.reset || !self.inbox.is_empty()
    }

    fn room(&self) -> usize {
        self.send_buffer - self.unacknowledged
    }

    pub fn is_writable(&self) -> bool {
        self.reset || self.room() > 0
    }

    /// When the client acts next.
    fn next_act(&self) -> Option<Duration> {
        let act = (!self.acts.is_empty()).then_some(self.act_at);
        let takes = matches!(self.taking, Taking::Steadily(..)) && self.unacknowledged > 0;
        act.into_iter().chain(takes.then_some(self.take_at)).min()
    }

    /// Advances the time to `to`.
    fn advance(&mut self, to: Duration) {
        while let Some(at) = self.next_act().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            if self.take_at <= self.now {
                self.acknowledge();
            }
            if self.act_at <= self.now
                && let Some(act) = self.acts.pop_front()
            {
                self.perform(act);
            }
        }
        self.now = self.now.max(to);
    }

    fn acknowledge(&mut self) {
        if let Taking::Steadily(bytes, every) = self.taking {
            self.unacknowledged = self.unacknowledged.saturating_sub(bytes);
            while self.take_at <= self.now {
                self.take_at += every;
            }
        }
    }

    fn perform(&mut self, act: Act) {
        match act {
            Act::Send(bytes) => self.inbox.push_back(bytes),
            Act::Pause(length) => self.act_at += length,
            Act::Take(taking) => {
                self.taking = taking;
                match taking {
                    Taking::Everything => self.unacknowledged = 0,
                    Taking::Nothing => {}
                    Taking::Steadily(_, every) => self.take_at = self.now + every,
                }
            }
            Act::HalfClose => self.ended = true,
            Act::Reset => {
                self.reset = true;
                self.unacknowledged = 0;
            }
        }
    }

    /// Waits until `so` holds. Returns `false` if `due` is reached first.
    pub fn wait(&mut self, due: Duration, so: impl Fn(&Self) -> bool) -> bool {
        assert!(!*self.taken.borrow(), "shared data must be given back before a wait");
        while !so(self) {
            match self.next_act().filter(|at| *at <= due) {
                Some(at) => self.advance(at),
                None => {
                    self.advance(due);
                    return false;
                }
            }
        }
        true
    }

    /// Returns whether the connection was reset, or both directions are closed.
    pub fn is_gone(&self) -> bool {
        self.reset || self.ended && self.finished
    }

    /// Reads one piece, the end, or a reset, if there is one. May be interrupted.
    pub fn read_if_readable(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_interrupted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.is_readable() {
            true => self.read_now(into),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Reads one piece, the end, or a reset. One of them must be there.
    pub fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        assert!(!into.is_empty(), "a read into an empty buffer looks like the end of input");
        if self.reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let Some(mut piece) = self.inbox.pop_front() else { return Ok(0) };
        let fits = piece.len().min(into.len());
        into[..fits].copy_from_slice(&piece[..fits]);
        if fits < piece.len() {
            self.inbox.push_front(piece.split_off(fits));
        }
        self.read += fits;
        Ok(fits)
    }

    /// Writes as much as there is room for.
    pub fn write_now(&mut self, bytes: &[u8], last: bool) -> io::Result<usize> {
        assert!(!bytes.is_empty() && bytes.len() < LARGEST_WRITE, "replies are bounded");
        assert!(!self.finished, "nothing is written after the end");
        if self.reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let written = bytes.len().min(self.room());
        if !matches!(self.taking, Taking::Everything) {
            if self.unacknowledged == 0
                && let Taking::Steadily(_, every) = self.taking
            {
                self.take_at = self.now + every;
            }
            self.unacknowledged += written;
        }
        self.actions.push((self.now, Action::Wrote(bytes[..written].to_vec(), last)));
        Ok(written)
    }

    pub fn shutdown_write(&mut self) -> io::Result<()> {
        assert!(!std::mem::replace(&mut self.finished, true), "its side was closed twice");
        self.actions.push((self.now, Action::Finished));
        if self.reset { Err(io::ErrorKind::NotConnected.into()) } else { Ok(()) }
    }

    pub fn work<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> Flow {
        assert!(!*self.taken.borrow(), "shared data must be given back before a job");
        if !job.is_short() {
            self.advance(self.now + self.job);
            self.actions.push((self.now, Action::Worked));
        }
        job.finish(self.now(), Ok(b""), reply)
    }

    pub fn take_local<L: Default + Send + 'static>(&self) -> Box<L> {
        assert!(!self.taken.replace(true), "the shared data was taken twice");
        let local = self.local.borrow_mut().take().unwrap_or_else(|| Box::new(L::default()));
        local.downcast().expect("a play has one kind of connection")
    }

    pub fn give_local_back<L: Send + 'static>(&self, local: Box<L>) {
        assert!(self.taken.replace(false), "the shared data was not taken");
        *self.local.borrow_mut() = Some(local);
    }

    fn is_interrupted(&mut self) -> bool {
        self.interrupt.as_mut().is_some_and(|next| std::mem::replace(next, !*next))
    }
}

/// A blocking stream, with further parts of its connection.
pub struct Blocking<'a, O = ()> {
    pub peer: &'a mut Peer,
    pub others: O,
    read_timeout: Duration,
    write_timeout: Duration,
    green: bool,
}

impl<'a, O> Blocking<'a, O> {
    pub fn new(peer: &'a mut Peer, others: O, limits: Limits, green: bool) -> Self {
        Blocking {
            peer,
            others,
            read_timeout: limits.idle,
            write_timeout: limits.progress_interval(),
            green,
        }
    }
}

impl<O> Locals for Blocking<'_, O> {
    fn take<L: Default + Send + 'static>(&self) -> Box<L> {
        self.peer.take_local()
    }

    fn give_back<L: Default + Send + 'static>(&self, local: Box<L>) {
        self.peer.give_local_back(local);
    }
}

impl<O> sequential::Stream for Blocking<'_, O> {
    fn now(&self) -> Now {
        self.peer.now()
    }

    fn wait_readable(&mut self) -> io::Result<()> {
        let due = self.peer.now + self.read_timeout;
        if self.green && !self.peer.wait(due, Peer::is_readable) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.peer.is_interrupted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let due = self.peer.now + self.read_timeout;
        match self.peer.wait(due, Peer::is_readable) {
            true => self.peer.read_now(into),
            // Like a socket.
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn set_read_timeout(&mut self, limit: Duration) -> io::Result<()> {
        assert!(!limit.is_zero(), "a socket takes no timeout of zero");
        self.read_timeout = limit;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], last: bool) -> io::Result<usize> {
        if self.peer.is_interrupted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // The last bytes never wait for room.
        let wait = if last { Duration::ZERO } else { self.write_timeout };
        let due = self.peer.now + wait;
        match self.peer.wait(due, Peer::is_writable) {
            true => self.peer.write_now(bytes, last),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn unacknowledged(&self) -> usize {
        self.peer.unacknowledged
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        self.peer.shutdown_write()
    }

    fn defers<J: Job>(&self, job: &J) -> bool {
        self.green && !job.is_short()
    }

    fn run<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow> {
        let flow = self.peer.work(job, reply);
        if self.green && self.peer.reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(flow)
    }
}

/// A stream for tasks, with further parts of its connection. Each wait yields once, and then
/// completes.
pub struct Waiting<'a, O = ()>(pub &'a mut Peer, pub O);

impl<O> Locals for Waiting<'_, O> {
    fn take<L: Default + Send + 'static>(&self) -> Box<L> {
        self.0.take_local()
    }

    fn give_back<L: Default + Send + 'static>(&self, local: Box<L>) {
        self.0.give_local_back(local);
    }
}

impl<O: Send> asynchronous::Stream for Waiting<'_, O> {
    fn now(&self) -> Now {
        self.0.now()
    }

    async fn read(&mut self, into: &mut [u8], due: Instant) -> io::Result<usize> {
        yield_now().await;
        let due = self.0.at(due);
        match self.0.wait(due, Peer::is_readable) {
            true => self.0.read_now(into),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn write(&mut self, bytes: &[u8], last: bool, due: Instant) -> io::Result<usize> {
        yield_now().await;
        // The last bytes never wait for room.
        let due = if last { self.0.now } else { self.0.at(due) };
        match self.0.wait(due, Peer::is_writable) {
            true => self.0.write_now(bytes, last),
            false if last => Err(io::ErrorKind::WouldBlock.into()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn unacknowledged(&self) -> usize {
        self.0.unacknowledged
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        self.0.shutdown_write()
    }

    async fn run<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow> {
        yield_now().await;
        Ok(self.0.work(job, reply))
    }
}

impl SocketProbe for Peer {
    fn unacknowledged(&self, _: Conn) -> usize {
        self.unacknowledged
    }

    fn is_readable(&self, _: Conn) -> bool {
        self.is_readable()
    }

    fn is_gone(&self, _: Conn) -> bool {
        self.is_gone()
    }

    fn has_ended(&self, _: Conn) -> bool {
        self.is_gone()
    }
}
