//! Programs played in every style against a client that follows a script. There is no socket and no
//! clock: time advances only while a program waits.

use futures_lite::future::{block_on, yield_now};
use regatta_engine::{Conn, Core, Next, Sessions, Socket, Task};
use regatta_service::{
    Flow, Job, Limits, Locals, Now, Program, Session, Shared, Start, by_hand, double,
    style::{asynchronous, sequential},
};
use std::{
    any::Any,
    cell::RefCell,
    collections::VecDeque,
    io,
    time::{Duration, Instant},
};

/// Unix time at which every play begins.
pub const BEGIN_UNIX_S: u64 = 784_111_777;

/// The limits of most plays. Both are whole multiples of all intervals that derive from them.
pub const LIMITS: Limits = Limits { idle: secs(64), request: secs(10) };

/// No reply is written in larger portions.
const LARGEST_WRITE: usize = 1 << 20;

pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What a client does, one act after the other.
#[derive(Clone, Debug)]
enum Act {
    /// These bytes arrive, to be returned by one read if it has room for them.
    Send(Vec<u8>),
    Pause(Duration),
    /// From now on it acknowledges what it is sent in this way.
    Take(Taking),
    HalfClose,
    Reset,
}

/// How a client acknowledges what it is sent.
#[derive(Clone, Copy, Debug)]
pub enum Taking {
    /// All of it, at once.
    Everything,
    Nothing,
    /// So many bytes at the end of every interval.
    Steadily(usize, Duration),
}

/// The script of a client, and what is particular about its connection.
#[derive(Clone, Debug)]
pub struct Client {
    acts: VecDeque<Act>,
    send_buffer: usize,
    job: Duration,
    interrupts: bool,
}

impl Client {
    /// A client that does nothing, and takes all that it is sent.
    pub fn new() -> Self {
        let (acts, send_buffer) = (VecDeque::new(), usize::MAX);
        Client { acts, send_buffer, job: Duration::ZERO, interrupts: false }
    }

    /// A client that sends these pieces, and then closes its side.
    pub fn of(pieces: &[Vec<u8>]) -> Self {
        pieces.iter().fold(Client::new(), |client, piece| client.send(piece)).half_close()
    }

    fn act(mut self, act: Act) -> Self {
        self.acts.push_back(act);
        self
    }

    pub fn send(self, bytes: impl AsRef<[u8]>) -> Self {
        self.act(Act::Send(bytes.as_ref().to_vec()))
    }

    pub fn pause(self, length: Duration) -> Self {
        self.act(Act::Pause(length))
    }

    pub fn take(self, taking: Taking) -> Self {
        self.act(Act::Take(taking))
    }

    pub fn half_close(self) -> Self {
        self.act(Act::HalfClose)
    }

    pub fn reset(self) -> Self {
        self.act(Act::Reset)
    }

    /// The kernel holds so many bytes at most that the client has not acknowledged.
    pub fn send_buffer(mut self, bytes: usize) -> Self {
        self.send_buffer = bytes;
        self
    }

    /// Every job that is not short takes this long.
    pub fn jobs_take(mut self, length: Duration) -> Self {
        self.job = length;
        self
    }

    /// A signal interrupts every other read and write of a blocking stream.
    pub fn interrupted(mut self) -> Self {
        self.interrupts = true;
        self
    }
}

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It wrote these bytes; the last ones, if so.
    Wrote(Vec<u8>, bool),
    /// It closed its side.
    Finished,
    /// It did a job that is not short.
    Worked,
}

/// A play that is over.
#[derive(Debug)]
pub struct Played {
    /// What the program did, and when.
    pub deeds: Vec<(Duration, Deed)>,
    /// When it closed the connection.
    pub closed: Duration,
    /// Bytes that it read.
    pub read: usize,
    /// Why it closed the connection, if that was an error. The callback style reports none.
    pub error: Option<io::ErrorKind>,
}

impl Played {
    pub fn writes(&self) -> Vec<&[u8]> {
        let writes = self.deeds.iter().filter_map(|(_, deed)| match deed {
            Deed::Wrote(bytes, _) => Some(&bytes[..]),
            _ => None,
        });
        writes.collect()
    }

    pub fn output(&self) -> Vec<u8> {
        self.writes().concat()
    }

    /// When it closed its side, if it did.
    pub fn finished(&self) -> Option<Duration> {
        self.deeds.iter().find(|(_, deed)| *deed == Deed::Finished).map(|(at, _)| *at)
    }
}

/// The styles, and the kinds of streams that make a difference to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Reads are the only way to wait, jobs are done at once: `fork`, `prefork`, `threads`.
    Sequential,
    /// Waits without a buffer, has long jobs done elsewhere: `green`.
    Green,
    Asynchronous,
    Callback,
}

pub const STYLES: [Style; 4] =
    [Style::Sequential, Style::Green, Style::Asynchronous, Style::Callback];

/// Plays a program.
pub fn play(style: Style, program: &impl Program, client: &Client, limits: Limits) -> Played {
    let mut peer = Peer::new(client);
    let result = match style {
        Style::Sequential | Style::Green => {
            let mut stream = Blocking::new(&mut peer, (), limits, style == Style::Green);
            program.sequential(&mut stream, limits)
        }
        Style::Asynchronous => block_on(program.asynchronous(Waiting(&mut peer, ()), limits)),
        Style::Callback => {
            callback(program, &mut peer, limits, &mut AtOnce::default());
            Ok(())
        }
    };
    peer.over(result)
}

/// Plays a client in every style, with `double` in the shared form and by hand.
pub fn play_double(client: &Client, check: impl Fn(&Played, &str)) {
    for style in STYLES {
        let played = play(style, &Shared(double::Double), client, LIMITS);
        check(&played, &format!("{style:?}, shared"));
        let played = play(style, &by_hand::Double, client, LIMITS);
        check(&played, &format!("{style:?}, by hand"));
    }
}

/// Plays the callback style, with workers that do jobs in any order. `choices` says which job is
/// done next, and when.
pub fn play_with_workers<F: Start + Clone>(
    start: &F,
    client: &Client,
    limits: Limits,
    shorts_too: bool,
    choices: &[usize],
) -> Played {
    let mut peer = Peer::new(client);
    let choices = choices.iter().copied().cycle();
    callback(start, &mut peer, limits, &mut Elsewhere { jobs: Vec::new(), shorts_too, choices });
    peer.over(Ok(()))
}

/// Every style must answer the pieces with `expected`.
pub fn all_styles(program: impl Program, pieces: &[Vec<u8>], expected: &[u8]) {
    for style in STYLES {
        let played = play(style, &program, &Client::of(pieces), LIMITS);
        assert_eq!(played.error, None, "{style:?}");
        same(&played.output(), expected, style);
    }
}

/// Compares bytes in a form that can be read.
pub fn same(got: &[u8], expected: &[u8], what: impl std::fmt::Debug) {
    if got != expected {
        assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{what:?}");
    }
}

/// `input` in pieces of these sizes, over and over.
pub fn cut(input: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let (mut pieces, mut rest) = (Vec::new(), input);
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, later) = rest.split_at(rest.len().min(*cut));
        pieces.push(piece.to_vec());
        rest = later;
    }
    pieces
}

/// A client at work, and the kernel's end of its connection.
pub struct Peer {
    begin: Instant,
    now: Duration,
    /// What it does next, at `act_at`.
    acts: VecDeque<Act>,
    act_at: Duration,
    taking: Taking,
    take_at: Duration,
    /// What has arrived and is not read.
    inbox: VecDeque<Vec<u8>>,
    ended: bool,
    reset: bool,
    send_buffer: usize,
    unacknowledged: usize,
    job: Duration,
    /// The next read or write is interrupted by a signal, if any is.
    interrupt: Option<bool>,
    /// What the connections of a thread share; `None` while it is taken.
    local: RefCell<Option<Box<dyn Any + Send>>>,
    taken: RefCell<bool>,
    deeds: Vec<(Duration, Deed)>,
    finished: bool,
    read: usize,
}

impl Peer {
    pub fn new(client: &Client) -> Self {
        let mut peer = Peer {
            begin: Instant::now(),
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
            deeds: Vec::new(),
            finished: false,
            read: 0,
        };
        peer.advance(Duration::ZERO);
        peer
    }

    pub fn over(self, result: io::Result<()>) -> Played {
        let Peer { deeds, now: closed, read, .. } = self;
        Played { deeds, closed, read, error: result.err().map(|error| error.kind()) }
    }

    pub fn now(&self) -> Now {
        let unix_s = BEGIN_UNIX_S + self.now.as_secs();
        Now { instant: self.begin + self.now, unix_s }
    }

    /// Time since the beginning of the play.
    pub fn elapsed(&self) -> Duration {
        self.now
    }

    pub fn at(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.begin)
    }

    pub fn is_readable(&self) -> bool {
        self.ended || self.reset || !self.inbox.is_empty()
    }

    fn room(&self) -> usize {
        self.send_buffer - self.unacknowledged
    }

    fn is_writable(&self) -> bool {
        self.reset || self.room() > 0
    }

    /// When the client next does something.
    fn next_act(&self) -> Option<Duration> {
        let act = (!self.acts.is_empty()).then_some(self.act_at);
        let takes = matches!(self.taking, Taking::Steadily(..)) && self.unacknowledged > 0;
        act.into_iter().chain(takes.then_some(self.take_at)).min()
    }

    /// Time passes until `to`.
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

    /// Waits until something is so. Returns false once `due` has come instead.
    pub fn wait(&mut self, due: Duration, so: impl Fn(&Self) -> bool) -> bool {
        assert!(!*self.taken.borrow(), "what connections share is not kept over a wait");
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

    /// The connection was reset, or both of its directions have ended.
    pub fn is_gone(&self) -> bool {
        self.reset || self.ended && self.finished
    }

    /// Reads one piece if there is one, or the end, or a reset. It may be interrupted.
    pub fn read_if_readable(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_interrupted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.is_readable() {
            true => self.read_now(into),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Reads one piece. There is one, or the end, or a reset.
    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        assert!(!into.is_empty(), "a read into nothing looks like the end of input");
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

    /// Writes what there is room for.
    fn write_now(&mut self, bytes: &[u8], last: bool) -> io::Result<usize> {
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
        self.deeds.push((self.now, Deed::Wrote(bytes[..written].to_vec(), last)));
        Ok(written)
    }

    fn finish_writing(&mut self) -> io::Result<()> {
        assert!(!std::mem::replace(&mut self.finished, true), "it ends once");
        self.deeds.push((self.now, Deed::Finished));
        if self.reset { Err(io::ErrorKind::NotConnected.into()) } else { Ok(()) }
    }

    fn work<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> Flow {
        assert!(!*self.taken.borrow(), "what connections share is not kept over a job");
        if !job.is_short() {
            self.advance(self.now + self.job);
            self.deeds.push((self.now, Deed::Worked));
        }
        job.finish(self.now(), Ok(b""), reply)
    }

    fn take_local<L: Default + Send + 'static>(&self) -> Box<L> {
        assert!(!self.taken.replace(true), "it is taken once");
        let local = self.local.borrow_mut().take().unwrap_or_else(|| Box::new(L::default()));
        local.downcast().expect("a play has one kind of connection")
    }

    fn give_local_back<L: Send + 'static>(&self, local: Box<L>) {
        assert!(self.taken.replace(false), "it was taken");
        *self.local.borrow_mut() = Some(local);
    }

    fn is_interrupted(&mut self) -> bool {
        self.interrupt.as_mut().is_some_and(|next| std::mem::replace(next, !*next))
    }
}

/// A blocking stream, and what else belongs to its connection.
pub struct Blocking<'a, O = ()> {
    pub peer: &'a mut Peer,
    pub others: O,
    read_timeout: Duration,
    write_timeout: Duration,
    green: bool,
}

impl<'a, O> Blocking<'a, O> {
    pub fn new(peer: &'a mut Peer, others: O, limits: Limits, green: bool) -> Self {
        Blocking { peer, others, read_timeout: limits.idle, write_timeout: limits.look(), green }
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
            // As a socket does it.
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
        // The last bytes wait for no room.
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

    fn finish_writing(&mut self) -> io::Result<()> {
        self.peer.finish_writing()
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

/// A stream for tasks, and what else belongs to its connection. Every wait gives way once, and then
/// all is ready.
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
        // The last bytes wait for no room.
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

    fn finish_writing(&mut self) -> io::Result<()> {
        self.0.finish_writing()
    }

    async fn run<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow> {
        yield_now().await;
        Ok(self.0.work(job, reply))
    }
}

impl Socket for Peer {
    fn unacknowledged(&self, _: Conn) -> usize {
        self.unacknowledged
    }

    fn is_readable(&self, _: Conn) -> bool {
        self.is_readable()
    }

    fn is_gone(&self, _: Conn) -> bool {
        self.is_gone()
    }
}

type JobOf<F> = <<F as Start>::Session as Session>::Job;

/// Who does the jobs of a callback server.
trait Workers<F: Start> {
    /// Takes a job on, or does it.
    fn take_on(&mut self, task: Task<JobOf<F>>, core: &mut Core<Sessions<F>>, peer: &mut Peer);

    /// Whether a job is done before more is read.
    fn are_first(&mut self) -> bool;

    /// Does a job. Returns false if there is none.
    fn work(&mut self, core: &mut Core<Sessions<F>>, peer: &mut Peer) -> bool;
}

/// The loop does short jobs at once, and long ones when it has written what there was to write.
struct AtOnce<J>(VecDeque<Task<J>>);

impl<J> Default for AtOnce<J> {
    fn default() -> Self {
        AtOnce(VecDeque::new())
    }
}

fn finish<F: Start>(task: Task<JobOf<F>>, core: &mut Core<Sessions<F>>, peer: &mut Peer) {
    let Task { conn, id, job, .. } = task;
    let mut reply = Vec::new();
    let flow = peer.work(job, &mut reply);
    core.turn(peer.now());
    core.done(conn, id, |out| {
        out.extend_from_slice(&reply);
        flow
    });
}

impl<F: Start> Workers<F> for AtOnce<JobOf<F>> {
    fn take_on(&mut self, task: Task<JobOf<F>>, core: &mut Core<Sessions<F>>, peer: &mut Peer) {
        match task.job.is_short() {
            true => finish(task, core, peer),
            false => self.0.push_back(task),
        }
    }

    fn are_first(&mut self) -> bool {
        !self.0.is_empty()
    }

    fn work(&mut self, core: &mut Core<Sessions<F>>, peer: &mut Peer) -> bool {
        while let Some(task) = self.0.pop_front() {
            if task.wanted.strong_count() > 0 {
                finish(task, core, peer);
                return true;
            }
        }
        false
    }
}

/// Jobs are done elsewhere, in any order.
struct Elsewhere<J, C> {
    jobs: Vec<Task<J>>,
    shorts_too: bool,
    choices: C,
}

impl<F: Start, C: Iterator<Item = usize>> Workers<F> for Elsewhere<JobOf<F>, C> {
    fn take_on(&mut self, task: Task<JobOf<F>>, core: &mut Core<Sessions<F>>, peer: &mut Peer) {
        match task.job.is_short() && !self.shorts_too {
            true => finish(task, core, peer),
            false => self.jobs.push(task),
        }
        assert!(self.jobs.len() <= 64, "jobs are bounded");
    }

    fn are_first(&mut self) -> bool {
        self.choices.next().is_some_and(|choice| choice % 2 == 0)
    }

    fn work(&mut self, core: &mut Core<Sessions<F>>, peer: &mut Peer) -> bool {
        if self.jobs.is_empty() {
            return false;
        }
        let choice = self.choices.next().unwrap_or_default();
        let task = self.jobs.swap_remove(choice % self.jobs.len());
        finish(task, core, peer);
        true
    }
}

/// Runs a core with one connection, as the reactor does it, until that is closed.
fn callback<F: Start + Clone>(
    start: &F,
    peer: &mut Peer,
    limits: Limits,
    workers: &mut impl Workers<F>,
) {
    let mut core = Core::new(Sessions::new(start.clone()), limits, peer.now());
    let conn = core.accept();
    let mut buffer = vec![0; 64 * 1024];
    let mut writable = true;
    while advance(&mut core, conn, peer, &mut writable, workers) {
        core.settle(conn);
        while core.next_changed().is_some() {}
        if workers.are_first() && workers.work(&mut core, peer) {
            continue;
        }
        let reads = core.wants_read(conn);
        if reads && peer.is_readable() {
            match peer.read_now(&mut buffer) {
                Ok(0) => core.ended(conn),
                Ok(read) => core.received(conn, &mut buffer[..read]),
                Err(_) => core.failed(conn),
            }
        } else if !workers.work(&mut core, peer) {
            let writes = !writable && !core.output(conn).is_empty();
            let due = core.due().expect("an open connection has a deadline");
            let due = peer.at(due);
            peer.wait(due, |peer| reads && peer.is_readable() || writes && peer.is_writable());
            writable |= writes && peer.is_writable();
            core.turn(peer.now());
            core.tick(peer);
        }
    }
    core.closed(conn);
    assert!(!core.has(conn));
}

/// Writes what can be written. Returns false when the connection is to be closed.
fn advance<F: Start>(
    core: &mut Core<Sessions<F>>,
    conn: Conn,
    peer: &mut Peer,
    writable: &mut bool,
    workers: &mut impl Workers<F>,
) -> bool {
    loop {
        while let Some(task) = core.next_job() {
            workers.take_on(task, core, peer);
        }
        match core.next(conn, peer) {
            Next::Wait => return true,
            Next::Close => return false,
            Next::Write { .. } if !*writable => return true,
            Next::Write { .. } if !peer.is_writable() => {
                *writable = false;
                core.wrote(conn, 0);
            }
            Next::Write { last } => match peer.write_now(core.output(conn), last) {
                Ok(written) => {
                    *writable = written == core.output(conn).len();
                    core.wrote(conn, written);
                }
                Err(_) => core.failed(conn),
            },
            Next::FinishWriting => {
                let done = peer.finish_writing().is_ok();
                core.finished(conn, done);
            }
        }
    }
}
