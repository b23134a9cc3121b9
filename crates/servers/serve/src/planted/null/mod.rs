//! The null server: an empty epoll loop. It is the performance floor of every race, and it tests
//! the load generator. It interprets no byte of a request.
//!
//! It echoes its input. In an HTTP race, where the reply differs from the request, it gets the
//! length of a request and one reply. It sends that reply once for each full length received; over HTTP/2, once for
//! each stream that the client ends (`streams`).
//!
//! It is edge-triggered, because a level-triggered epoll polls each ready socket again in the next
//! call.

mod answer;
mod streams;

pub use answer::Canned;

use crate::host::{Host, PAUSE, ServeError};
use answer::{Answer, Connection, Left, READ};
use regatta_sys::net;
use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, EventData, EventFlags},
    },
    io::Errno,
};
use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    time::{Duration, Instant},
};

/// Maximum number of accepts before the open connections are served.
const ACCEPTS: usize = 64;
/// Maximum number of events per call.
const BATCH: usize = 1024;

const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// Echoes all input until the host stops.
pub(crate) fn run(host: &Host) -> Result<(), ServeError> {
    Null::new(Answer::Echo, host)?.run()
}

/// Runs the null server with a canned reply until the host stops.
///
/// # Errors
/// Fails if the server cannot listen on the address, if an essential system call fails, or if the reply should consist
/// of frames of HTTP/2 and does not.
pub fn serve_canned(canned: &Canned, host: &Host) -> Result<(), ServeError> {
    let no_frames = || ServeError::Unsupported {
        model: "epoll",
        service: "null",
        because: "the reply does not consist of whole frames of HTTP/2",
    };
    Null::new(Answer::canned(canned).ok_or_else(no_frames)?, host)?.run()
}

struct Null {
    epoll: OwnedFd,
    listener: OwnedFd,
    answer: Answer,
    connections: Vec<Option<Connection>>, // by descriptor
    /// Connections with unread input that no event reports again.
    unread: VecDeque<usize>,
    accepting: Accepting,
    bytes: Box<[u8]>,
    out: Vec<u8>,
}

/// What is known about the listener's queue.
#[derive(Clone, Copy)]
enum Accepting {
    /// It is empty. An event reports the next connection.
    Empty,
    /// It may hold connections that no event reports.
    More,
    /// Out of descriptors or memory. A connection must close first. A descriptor may also become
    /// free elsewhere, so the queue is tried again at this time.
    Full { until: Instant },
}

impl Null {
    fn new(answer: Answer, host: &Host) -> Result<Self, ServeError> {
        let listener = host.listen()?;
        let epoll = create()?;
        add(&epoll, &host.stop, STOP)?;
        add(&epoll, &listener, LISTENER)?;
        host.ready(&listener)?;
        Ok(Null {
            epoll,
            listener,
            answer,
            connections: Vec::new(),
            unread: VecDeque::new(),
            accepting: Accepting::Empty,
            bytes: vec![0; READ].into_boxed_slice(),
            out: Vec::new(),
        })
    }

    fn run(mut self) -> Result<(), ServeError> {
        let mut events = Vec::with_capacity(BATCH);
        loop {
            wait(&self.epoll, &mut events, self.timeout())?;
            for _ in 0..self.unread.len() {
                if let Some(token) = self.unread.pop_front() {
                    self.serve(token, false);
                }
            }
            for event in &events {
                match event.data.u64() {
                    STOP => return Ok(()),
                    LISTENER => self.resume_if(|before| matches!(before, Accepting::Empty)),
                    token => self.serve(token as usize, client_closed(event.flags)),
                }
            }
            self.accept();
        }
    }

    fn timeout(&self) -> Option<Duration> {
        match self.accepting {
            _ if !self.unread.is_empty() => Some(Duration::ZERO),
            Accepting::Empty => None,
            Accepting::More => Some(Duration::ZERO),
            Accepting::Full { until } => Some(until.saturating_duration_since(Instant::now())),
        }
    }

    fn resume_if(&mut self, condition: impl Fn(Accepting) -> bool) {
        if condition(self.accepting) {
            self.accepting = Accepting::More;
        }
    }

    /// Reads once and answers. `client_closed`: no further event reports the end of input.
    fn serve(&mut self, token: usize, client_closed: bool) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        match self.answer.serve(connection, &mut self.bytes, &mut self.out) {
            Left::Idle => {}
            Left::Drained if !client_closed => {}
            Left::Drained | Left::Unread => self.unread.push_back(token),
            Left::Closed => {
                self.connections[token] = None;
                self.resume_if(|before| matches!(before, Accepting::Full { .. }));
            }
        }
    }

    /// Accepts the queued connections. It never sleeps when out of descriptors, so the open
    /// connections are still served.
    fn accept(&mut self) {
        match self.accepting {
            Accepting::Empty => return,
            Accepting::Full { until } if Instant::now() < until => return,
            Accepting::More | Accepting::Full { .. } => self.accepting = Accepting::More,
        }
        for _ in 0..ACCEPTS {
            let opened = match net::accept(&self.listener) {
                Ok(socket) => self.open(socket),
                Err(error) if net::is_transient(&error) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.accepting = Accepting::Empty;
                    return;
                }
                Err(error) => Err(error),
            };
            if opened.is_err() {
                self.accepting = Accepting::Full { until: Instant::now() + PAUSE };
                return;
            }
        }
    }

    /// Adds a connection. Its first request has often arrived already, so it is read before it is
    /// watched, as in the other callback servers. A connection that closes at once is never
    /// watched. Fails if out of memory to watch it.
    fn open(&mut self, socket: OwnedFd) -> io::Result<()> {
        let token = socket.as_raw_fd() as usize;
        let mut connection = Connection::new(socket);
        if let Left::Closed = self.answer.serve(&mut connection, &mut self.bytes, &mut self.out) {
            return Ok(());
        }
        // This reports unread input at once.
        add(&self.epoll, &connection.socket, token as u64)?;
        if self.connections.len() <= token {
            self.connections.resize_with(token + 1, || None);
        }
        self.connections[token] = Some(connection);
        Ok(())
    }
}

fn create() -> io::Result<OwnedFd> {
    Ok(epoll::create(epoll::CreateFlags::CLOEXEC)?)
}

/// Watches `fd` for input, edge-triggered. Existing input, e.g. a stop or a connection, is reported
/// at once.
fn add(epoll: &OwnedFd, fd: impl AsFd, token: u64) -> io::Result<()> {
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    Ok(epoll::add(epoll, fd, EventData::new_u64(token), flags)?)
}

/// Whether this event includes the end of input. There may be no separate event for it, so a short
/// read does not prove that nothing more follows (epoll(7), Q9).
fn client_closed(flags: EventFlags) -> bool {
    flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
}

fn wait(
    epoll: &OwnedFd,
    events: &mut Vec<epoll::Event>,
    timeout: Option<Duration>,
) -> io::Result<()> {
    events.clear();
    let timeout =
        timeout.map(|t| Timespec { tv_sec: t.as_secs() as _, tv_nsec: t.subsec_nanos() as _ });
    match epoll::wait(epoll, spare_capacity(events), timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
