//! Clients that send much and read slowly, and replies that are checked as they arrive.

use crate::support::{DEADLINE, Server, hello::GET, until};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::ioctl_fionread,
};
use socket2::{Domain, Socket, Type};
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// A server that made no progress for this long is waiting for its client.
pub const STUCK: Duration = Duration::from_millis(50);

/// How many bytes the client's kernel holds for a client that does not read.
#[derive(Clone, Copy, Debug)]
pub enum Receives {
    /// The system's default, which the kernel may increase.
    ByDefault,
    /// At most about so many bytes (SO_RCVBUF).
    AtMost(usize),
    /// A few kilobytes, in small segments (TCP_MAXSEG), so that the server's send buffer stays small
    /// too: one or two thousand replies fill both.
    Little,
}

impl Server {
    /// Connects with a receive buffer as set by `receives`.
    pub fn connect_with(&self, receives: Receives) -> TcpStream {
        let socket = Socket::new(Domain::for_address(self.addr), Type::STREAM, None).unwrap();
        match receives {
            Receives::ByDefault => {}
            Receives::AtMost(bytes) => socket.set_recv_buffer_size(bytes).unwrap(),
            Receives::Little => {
                socket.set_recv_buffer_size(8 * 1024).unwrap();
                socket.set_tcp_mss(536).unwrap();
            }
        }
        // Small, so that a thread that sends blocks soon after the server stops reading.
        socket.set_send_buffer_size(64 * 1024).unwrap();
        socket.connect(&self.addr.into()).unwrap();
        socket.set_tcp_nodelay(true).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }
}

/// Many requests that are sent without waiting for replies, and the replies that must come.
pub trait Pipeline: Copy + Send + 'static {
    /// Length of each reply in bytes.
    const REPLY: usize;

    /// Requests number `from` up to, but not including, `to`.
    fn requests(self, from: usize, to: usize) -> Vec<u8>;

    /// Whether `reply` answers request number `index`.
    fn is_reply(self, index: usize, reply: &[u8]) -> bool;
}

/// Lines to `double`, each different, whose replies are longer than they are.
#[derive(Clone, Copy)]
pub struct Lines;

const NOT_A_NUMBER: &[u8; 24] = b"xxxxxxxxxxxxxxxxxxxxxxxx";
const REFUSED: &[u8; 23] = b"error: not an integer: ";

/// The last bytes of a line: its number.
fn digits(index: usize) -> [u8; 8] {
    let mut left = index;
    let mut digits = [0; 8];
    for digit in digits.iter_mut().rev() {
        (*digit, left) = (b'0' + (left % 10) as u8, left / 10);
    }
    digits
}

impl Pipeline for Lines {
    const REPLY: usize = REFUSED.len() + NOT_A_NUMBER.len() + 8 + 1;

    fn requests(self, from: usize, to: usize) -> Vec<u8> {
        let mut lines = Vec::with_capacity((to - from) * (NOT_A_NUMBER.len() + 8 + 1));
        for index in from..to {
            lines.extend_from_slice(NOT_A_NUMBER);
            lines.extend_from_slice(&digits(index));
            lines.push(b'\n');
        }
        lines
    }

    fn is_reply(self, index: usize, reply: &[u8]) -> bool {
        let (refused, rest) = reply.split_at(REFUSED.len());
        let (line, rest) = rest.split_at(NOT_A_NUMBER.len());
        refused == REFUSED && line == NOT_A_NUMBER && rest[..8] == digits(index) && rest[8] == b'\n'
    }
}

/// Requests to `hello`. Their replies have the time in them, which has ten digits until 2286.
#[derive(Clone, Copy)]
pub struct Gets;

/// A reply to a [`GET`], except for the times.
pub const HELLO: &str = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    Content-Type: text/plain\r\nContent-Length: 29\r\n\r\nHello. The time is 1234567890";

impl Pipeline for Gets {
    const REPLY: usize = HELLO.len();

    fn requests(self, from: usize, to: usize) -> Vec<u8> {
        GET.repeat(to - from)
    }

    fn is_reply(self, _: usize, reply: &[u8]) -> bool {
        let (date, after) = (HELLO.find("Sun").unwrap(), HELLO.find(" GMT").unwrap());
        let digits = HELLO.len() - 10;
        reply[..date] == HELLO.as_bytes()[..date]
            && reply[after..digits] == HELLO.as_bytes()[after..digits]
            && reply[digits..].iter().all(u8::is_ascii_digit)
    }
}

/// A thread that sends requests, since a server stops reading a client that does not read. It ends
/// early if the connection does.
pub struct Sender {
    thread: JoinHandle<()>,
    sent: Arc<AtomicUsize>,
}

impl Sender {
    /// Sends the first `count` requests.
    pub fn start<P: Pipeline>(stream: &TcpStream, pipeline: P, count: usize) -> Self {
        const AT_ONCE: usize = 200;
        let mut stream = stream.try_clone().unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&sent);
        let thread = thread::spawn(move || {
            for from in (0..count).step_by(AT_ONCE) {
                let to = count.min(from + AT_ONCE);
                // The reader reports why it failed.
                if stream.write_all(&pipeline.requests(from, to)).is_err() {
                    break;
                }
                counter.store(to, Relaxed);
            }
        });
        Sender { thread, sent }
    }

    /// Waits until the server has stopped reading for a while because its replies are not read, or until
    /// everything is sent.
    pub fn wait_until_stuck(&self) {
        let (mut sent, mut last) = (0, Instant::now());
        until("the server reads no more", || {
            let now = self.sent.load(Relaxed);
            if now != sent {
                (sent, last) = (now, Instant::now());
            }
            sent > 0 && last.elapsed() > STUCK
        });
    }

    /// Waits until all is sent.
    pub fn finish(self) {
        self.thread.join().unwrap();
    }
}

/// Reads replies and checks each of them.
pub struct Replies<'s, P> {
    stream: &'s TcpStream,
    pipeline: P,
    /// What was read of the reply that is not complete yet.
    part: Vec<u8>,
    /// Replies that came.
    pub count: usize,
    began: Instant,
}

impl<'s, P: Pipeline> Replies<'s, P> {
    pub fn new(stream: &'s TcpStream, pipeline: P) -> Self {
        Replies { stream, pipeline, part: Vec::new(), count: 0, began: Instant::now() }
    }

    /// Reads `rate` bytes per second for as long as `length`, in small pieces at computed moments.
    pub fn read_steadily(&mut self, rate: u64, length: Duration) {
        // Small enough to be steady, large enough not to keep this machine busy.
        let piece = (rate / 100).clamp(256, 8 * 1024);
        let start = Instant::now();
        for read in (0..).step_by(piece as usize) {
            let due = start + Duration::from_nanos(read * 1_000_000_000 / rate);
            if due >= start + length {
                break;
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
            self.read_piece(piece as usize);
        }
    }

    /// Reads until there are `count` replies.
    pub fn read_until(&mut self, count: usize) {
        while self.count < count {
            let missing = (count - self.count) * P::REPLY - self.part.len();
            self.read_some(missing.min(64 * 1024));
        }
    }

    /// Checks that the end of input follows, and not a reset.
    pub fn expect_end(&mut self) {
        let mut stream = self.stream;
        match stream.read(&mut [0; 64]) {
            Ok(0) => {}
            Ok(_) => panic!("more than the {} replies that were due", self.count),
            Err(error) => panic!("expected the end after {} replies, but: {error}", self.count),
        }
        assert!(self.part.is_empty(), "the last reply is not complete");
    }

    fn read_piece(&mut self, piece: usize) {
        let mut missing = piece;
        while missing > 0 {
            missing -= self.read_some(missing);
        }
    }

    fn read_some(&mut self, most: usize) -> usize {
        let mut bytes = [0; 64 * 1024];
        let mut stream = self.stream;
        let read = loop {
            match stream.read(&mut bytes[..most]) {
                Ok(0) => panic!("the end of input came after {} replies", self.count),
                Ok(read) => break read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let after = self.began.elapsed();
                    panic!("after {} replies and {after:.1?}: {error}", self.count)
                }
            }
        };
        self.part.extend_from_slice(&bytes[..read]);
        let whole = self.part.len() / P::REPLY * P::REPLY;
        for reply in self.part[..whole].chunks_exact(P::REPLY) {
            let right = self.pipeline.is_reply(self.count, reply);
            assert!(right, "reply {}: {}", self.count, reply.escape_ascii());
            self.count += 1;
        }
        self.part.drain(..whole);
        read
    }
}

/// Bytes that the client's kernel holds, unread.
pub fn unread(stream: &TcpStream) -> u64 {
    ioctl_fionread(stream).unwrap()
}

/// Whether the server has closed the connection, whatever is unread.
pub fn is_closed(stream: &TcpStream) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // A reset is reported without being asked for (poll(2)).
    let mut asked = [PollFd::new(stream, PollFlags::RDHUP)];
    poll(&mut asked, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Bytes of replies that exceed all socket buffers, in addition to what the client reads slowly. The
/// kernel grows the server's send buffer up to 4 MB (tcp_wmem, tcp(7)); the receive buffer of a client
/// that reads slowly stays small.
const MORE_THAN_BUFFERS: usize = 9 << 19;

/// Waits until the caller's connection may be filled: two at a time, so that no server is slow because
/// all others are busy.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURNS: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let turn = &TURNS[NEXT.fetch_add(1, Relaxed) % TURNS.len()];
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the server is blocked by a full socket, reads at a steady rate for `length`, then reads
/// the rest at full speed.
pub fn read_steadily<P: Pipeline>(
    server: &Server,
    receives: Receives,
    pipeline: P,
    rate: u64,
    length: Duration,
) {
    let leisurely = rate as usize * length.as_millis() as usize / 1000;
    let count = (leisurely + MORE_THAN_BUFFERS) / P::REPLY;
    let turn = turn();
    let stream = server.connect_with(receives);
    let sender = Sender::start(&stream, pipeline, count);
    sender.wait_until_stuck();
    drop(turn);
    let mut replies = Replies::new(&stream, pipeline);
    replies.read_steadily(rate, length);
    replies.read_until(count);
    sender.finish();
}

/// Sends as much as the server accepts and reads nothing. Returns the time from the last byte that the
/// client's kernel received to the server's close. Panics if the server closes later than `late` after `limit`.
pub fn closed_after(
    server: &Server,
    receives: Receives,
    limit: Duration,
    late: Duration,
) -> Duration {
    let requests = Lines.requests(0, 1000);
    let mut turn = Some(turn());
    let stream = server.connect_with(receives);
    stream.set_nonblocking(true).unwrap();
    let start = Instant::now();
    let (mut sent, mut sent_last) = (0, start);
    let (mut came, mut came_last) = (0, start);
    let mut filled = start;
    // A close is a reset, since the server has not read all that was sent.
    while !is_closed(&stream) {
        match (&stream).write(&requests[sent % requests.len()..]) {
            Ok(wrote) => (sent, sent_last) = (sent + wrote, Instant::now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(5)); // nothing fits: look again
            }
            Err(_) => {} // the next `is_closed` reports it
        }
        let unread = unread(&stream);
        if unread != came && !is_closed(&stream) {
            (came, came_last) = (unread, Instant::now());
        }
        if sent_last.elapsed() > STUCK {
            turn = None;
        }
        // On a busy machine a server goes on filling its socket when the client's is full. Writes that
        // succeed much later, into space left over, must not extend the timeout.
        if sent_last < came_last + limit / 2 {
            filled = sent_last.max(came_last);
        }
        let open = filled.elapsed();
        assert!(open < limit + late, "still open {open:.1?} after the last byte was taken");
    }
    drop(turn);
    came_last.elapsed()
}

/// Runs `test` with each of these at once, in threads that are named after them and their model.
pub fn at_once(ways: [Receives; 2], test: impl Fn(Receives) + Sync) {
    let test = &test;
    thread::scope(|scope| {
        for receives in ways {
            let model = thread::current().name().unwrap_or_default().to_owned();
            let thread = thread::Builder::new().name(format!("{model}, {receives:?}"));
            thread.spawn_scoped(scope, move || test(receives)).unwrap();
        }
    });
}
