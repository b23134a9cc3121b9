//! `double` with delays that are known by construction, for tests of the measurement. It uses one
//! thread, epoll with nanosecond timeouts, and a short spin before a reply is due. It is not a
//! model for races.
//!
//! A request counts as arrived when it is read. The replies of a connection keep their order, so a
//! reply that is due may wait for a slower one before it.

use crate::{
    host::{Host, PAUSE, ServeError},
    planted::delay::Delay,
};
use regatta_service::{Codec, Decoded, Flow, double::Lines};
use regatta_sys::{Event, Interest, Readiness, epoll::Epoll, net, poll::Poll, timer};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

/// Bytes of one read.
const READ: usize = 64 * 1024;
/// Maximum bytes of pending replies per connection. A connection that exceeds it is closed.
const OWED: usize = 1 << 20;
/// The last interval before a reply is due, in which the server polls instead of sleeping. It is
/// longer than a sleeping thread usually takes to wake.
const SPIN: Duration = Duration::from_micros(60);

const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// Serves `double`, each reply after its delay, until the host stops. Replies still pending then
/// are dropped.
///
/// # Errors
/// Fails if the server cannot listen on the address, or if an essential system call fails.
pub fn serve_delayed(delay: Delay, host: &Host) -> Result<(), ServeError> {
    timer::minimize_slack()?;
    let listener = host.listen()?;
    let mut epoll = Epoll::new()?;
    epoll.add(host.stop.as_fd(), STOP, Interest::READ)?;
    epoll.add(listener.as_fd(), LISTENER, Interest::READ)?;
    host.ready(&listener)?;
    let server = Server {
        delay,
        epoll,
        listener,
        connections: HashMap::new(),
        accepted: 0,
        requests: 0,
        due: BinaryHeap::new(),
        input: vec![0; READ],
    };
    Ok(server.run(host)?)
}

struct Server {
    delay: Delay,
    epoll: Epoll,
    listener: OwnedFd,
    /// By token, which counts the accepts.
    connections: HashMap<u64, Connection>,
    accepted: u64,
    requests: u64,
    /// The next to be sent is on top.
    due: BinaryHeap<Reverse<Due>>,
    input: Vec<u8>,
}

struct Connection {
    socket: OwnedFd,
    codec: Lines,
    /// The start of a request that is incomplete.
    partial: Vec<u8>,
    /// Replies that are not due yet, concatenated.
    owed: Vec<u8>,
    /// When the last of them is due.
    last: Instant,
}

/// A reply, or the end of a connection. Ordered by time, then by request.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    request: u64,
    token: u64,
    bytes: usize,
    ends: bool,
}

impl Server {
    fn run(mut self, host: &Host) -> io::Result<()> {
        let mut stop = Poll::new();
        stop.add(host.stop.as_fd(), STOP, Interest::READ)?;
        let began = Instant::now();
        let mut events: Vec<Event> = Vec::new();
        loop {
            if let Some(rest) = self.delay.rest(began.elapsed()) {
                stop.wait(&mut events, Some(rest))?;
                if !events.is_empty() {
                    return Ok(());
                }
                continue;
            }
            self.epoll.wait(&mut events, self.timeout())?;
            let now = Instant::now();
            for event in &events {
                match event.token {
                    STOP => return Ok(()),
                    LISTENER => self.accept(now)?,
                    token => self.read(token, now)?,
                }
            }
            self.send_what_is_due();
        }
    }

    /// Returns how long to sleep: until shortly before the next reply is due.
    fn timeout(&self) -> Option<Duration> {
        let Reverse(next) = self.due.peek()?;
        Some(next.at.saturating_duration_since(Instant::now()).saturating_sub(SPIN))
    }

    fn accept(&mut self, now: Instant) -> io::Result<()> {
        loop {
            match net::accept(&self.listener) {
                Ok(socket) => {
                    let token = self.accepted;
                    self.accepted += 1;
                    self.epoll.add(socket.as_fd(), token, Interest::READ)?;
                    let connection = Connection {
                        socket,
                        codec: Lines,
                        partial: Vec::new(),
                        owed: Vec::new(),
                        last: now,
                    };
                    self.connections.insert(token, connection);
                }
                Err(error) if net::is_transient(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => {
                    std::thread::sleep(PAUSE); // out of descriptors
                    return Ok(());
                }
            }
        }
    }

    fn read(&mut self, token: u64, now: Instant) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
        let flow = match net::read(&connection.socket, &mut self.input) {
            Ok(0) => Flow::Close,
            Ok(read) => {
                connection.partial.extend_from_slice(&self.input[..read]);
                connection.answer(token, now, &self.delay, &mut self.requests, &mut self.due)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(_) => {
                self.connections.remove(&token);
                return Ok(());
            }
        };
        if connection.owed.len() > OWED {
            self.connections.remove(&token);
        } else if flow == Flow::Close {
            // It is closed once it has received all replies.
            self.epoll.remove(connection.socket.as_fd())?;
            let (at, request) = (connection.last, self.requests);
            self.due.push(Reverse(Due { at, request, token, bytes: 0, ends: true }));
        }
        Ok(())
    }

    fn send_what_is_due(&mut self) {
        while self.due.peek().is_some_and(|Reverse(next)| next.at <= Instant::now()) {
            let Some(Reverse(due)) = self.due.pop() else { return };
            let Some(connection) = self.connections.get_mut(&due.token) else { continue };
            let reply = &connection.owed[..due.bytes];
            // A client that does not read is closed: the delays are only defined for clients that
            // do.
            let sent = reply.is_empty()
                || net::write(&connection.socket, reply).is_ok_and(|sent| sent == due.bytes);
            connection.owed.drain(..due.bytes);
            if !sent || due.ends {
                self.connections.remove(&due.token);
            }
        }
    }
}

impl Connection {
    /// Answers all complete requests. Each reply is sent when it is due.
    #[expect(
        clippy::too_many_arguments,
        reason = "the state of a connection, its input and its reply"
    )]
    fn answer(
        &mut self,
        token: u64,
        now: Instant,
        delay: &Delay,
        requests: &mut u64,
        due: &mut BinaryHeap<Reverse<Due>>,
    ) -> Flow {
        let mut consumed = 0;
        let mut flow = Flow::Continue;
        while let (Flow::Continue, Decoded::Request(request, bytes)) =
            (flow, self.codec.decode(&self.partial[consumed..]))
        {
            consumed += bytes;
            let before = self.owed.len();
            flow = request.answer(&mut self.owed);
            self.last = self.last.max(now + delay.of_request(*requests));
            let bytes = self.owed.len() - before;
            due.push(Reverse(Due { at: self.last, request: *requests, token, bytes, ends: false }));
            *requests += 1;
        }
        self.partial.drain(..consumed);
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_reply_that_is_due_waits_for_a_slower_one_before_it() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let now = Instant::now();
        let mut connection = Connection {
            socket: ours.into(),
            codec: Lines,
            partial: b"1\n".repeat(100),
            owed: Vec::new(),
            last: now,
        };
        let usual = Duration::from_millis(1);
        let delay = Delay::Bimodal { usual, rare: 50 * usual, share: 0.1 };
        let (mut requests, mut due) = (0, BinaryHeap::new());
        connection.answer(7, now, &delay, &mut requests, &mut due);
        let sent = std::iter::from_fn(|| due.pop()).map(|Reverse(due)| due.request);
        assert!(sent.eq(0..100));
        assert_eq!(connection.last, now + 50 * usual);
    }
}
