//! A relay of lines: an engine that is no session.
//!
//! All clients of a core share one connection to another server, the upstream. Each line of a client
//! is forwarded there. The upstream answers each line with one line, in order, and the relay hands
//! each reply to the client that waits for it. It is small, but it has every part that a proxy needs:
//! multiplexing, backpressure in both directions, reconnecting, draining.
//!
//! While the upstream is being connected to, requests wait in its output. While it is down, they are
//! answered with [`DOWN`] at once.

use regatta_engine::{Conn, Effects, Engine, Flow, Never, Status};
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The reply to a request that was not sent to the upstream.
pub const DOWN: &str = "-DOWN the upstream cannot be reached, try later";
/// The reply to a request that the upstream did not answer before its connection closed.
pub const LOST: &str = "-LOST the upstream closed before it answered";
/// The last reply to a client whose request has no end.
pub const LONG: &str = "-LONG a request has at most 16384 bytes";

/// Longest request and longest reply, in bytes.
pub const REQUEST: usize = 16 * 1024;
pub const REPLY: usize = 1 << 20;
/// Requests of one client, and of all, that may wait for their replies. Beyond it clients are not read.
pub const CLIENT_WAITING: usize = 1024;
pub const ALL_WAITING: usize = 64 * 1024;
/// Bytes pending to the upstream beyond which clients are not read.
pub const UPSTREAM_FULL: usize = 256 * 1024;
/// Bytes pending to a client beyond which it is not read, and beyond which it is aborted.
pub const CLIENT_FULL: usize = 32 * 1024;
pub const CLIENT_MOST: usize = 1 << 20;
/// Pauses before the upstream is connected to again: the first, doubled each time, and the longest.
pub const BACKOFF: Duration = Duration::from_millis(10);
pub const BACKOFF_MOST: Duration = Duration::from_secs(1);

/// What a test may look at while a relay runs.
#[derive(Debug, Default)]
pub struct Seen {
    /// Most bytes that were pending to the upstream, and to a client.
    pub to_upstream: AtomicUsize,
    pub to_client: AtomicUsize,
    /// Clients that were aborted, because they do not read.
    pub aborted: AtomicUsize,
    /// Attempts to connect to the upstream.
    pub connects: AtomicUsize,
}

/// The relay of one core.
pub struct Relay {
    to: SocketAddr,
    seen: Arc<Seen>,
    /// Doubled for each attempt since the last reply.
    backoff: Duration,
    upstream: Upstream,
    /// The beginning of a reply.
    reply: Vec<u8>,
    /// For whom the next replies are. One that has gone keeps its position.
    waiting: VecDeque<Conn>,
    /// Clients are not read, because the upstream does not keep up.
    full: bool,
    clients: BTreeMap<Conn, Client>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upstream {
    /// No client has come yet.
    Unused,
    Connecting(Conn),
    Open(Conn),
    Down {
        retry_at: Instant,
    },
}

#[derive(Debug, Default)]
struct Client {
    /// The beginning of a request.
    request: Vec<u8>,
    /// How many replies it is owed.
    waiting: usize,
    /// It sends nothing more, or is not listened to any more.
    ended: bool,
    /// Because of a request without an end.
    too_long: bool,
}

impl Relay {
    /// A relay to `to`.
    pub fn new(to: SocketAddr) -> Self {
        Relay::seen_by(to, Arc::default())
    }

    /// One that is looked at.
    pub fn seen_by(to: SocketAddr, seen: Arc<Seen>) -> Self {
        Relay {
            to,
            seen,
            backoff: BACKOFF,
            upstream: Upstream::Unused,
            reply: Vec::new(),
            waiting: VecDeque::new(),
            full: false,
            clients: BTreeMap::new(),
        }
    }

    /// One that waits so long before it connects again.
    pub fn patient(self, backoff: Duration) -> Self {
        Relay { backoff, ..self }
    }

    fn upstream(&self) -> Option<Conn> {
        match self.upstream {
            Upstream::Connecting(conn) | Upstream::Open(conn) => Some(conn),
            Upstream::Unused | Upstream::Down { .. } => None,
        }
    }

    fn connect(&mut self, effects: &mut Effects<Self>) {
        self.seen.connects.fetch_add(1, Relaxed);
        self.upstream = Upstream::Connecting(effects.connect(self.to));
    }

    // ---- requests ----

    fn requests(&mut self, conn: Conn, bytes: &[u8], effects: &mut Effects<Self>) {
        // A connection that broke in this turn takes nothing any more, before it is reported as
        // closed. What was forwarded fails first.
        if self.upstream().is_some_and(|upstream| effects.out(upstream).is_none()) {
            self.lose(effects);
        }
        let Some(client) = self.clients.get_mut(&conn).filter(|c| !c.ended) else { return };
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let (lines, rest) = bytes.split_at(whole);
        let count = lines.iter().filter(|&&byte| byte == b'\n').count();
        if count > 0 {
            let begun = std::mem::take(&mut client.request);
            let upstream = match self.upstream {
                Upstream::Connecting(conn) | Upstream::Open(conn) => effects.out(conn),
                Upstream::Unused | Upstream::Down { .. } => None,
            };
            if let Some(out) = upstream {
                out.extend_from_slice(&begun);
                out.extend_from_slice(lines);
                client.waiting += count;
                self.waiting.extend(std::iter::repeat_n(conn, count));
            } else if let Some(out) = effects.out(conn) {
                (0..count).for_each(|_| line(out, DOWN));
            }
        }
        client.request.extend_from_slice(rest);
        if client.request.len() > REQUEST {
            client.request = Vec::new();
            (client.ended, client.too_long) = (true, true);
        }
        self.update(conn, effects);
        self.update_upstream(effects);
    }

    /// Says whether a client is read, and closes one that has got all.
    fn update(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        let Some(client) = self.clients.get(&conn) else { return };
        let pending = effects.pending(conn);
        self.seen.to_client.fetch_max(pending, Relaxed);
        if pending > CLIENT_MOST {
            self.seen.aborted.fetch_add(1, Relaxed);
            self.clients.remove(&conn);
            effects.abort(conn);
        } else if client.ended && client.waiting == 0 {
            if client.too_long
                && let Some(out) = effects.out(conn)
            {
                line(out, LONG);
            }
            self.clients.remove(&conn);
            effects.close(conn, Flow::Close);
        } else {
            let status = Status {
                reads: !self.full
                    && !client.ended
                    && client.waiting < CLIENT_WAITING
                    && pending <= CLIENT_FULL,
                waits: client.waiting > 0,
                wants_room: pending > CLIENT_FULL,
                ..Status::default()
            };
            effects.set(conn, status);
        }
    }

    fn update_all(&mut self, effects: &mut Effects<Self>) {
        let all: Vec<Conn> = self.clients.keys().copied().collect();
        for conn in all {
            self.update(conn, effects);
        }
    }

    // ---- replies ----

    fn replies(&mut self, upstream: Conn, bytes: &[u8], effects: &mut Effects<Self>) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if part.last() != Some(&b'\n') {
                self.reply.extend_from_slice(part);
                if self.reply.len() > REPLY {
                    self.lose(effects);
                }
                return;
            }
            let begun = std::mem::take(&mut self.reply);
            let Some(conn) = self.waiting.pop_front() else {
                return self.lose(effects); // nobody has asked for it
            };
            self.backoff = self.backoff.min(BACKOFF);
            self.deliver(conn, &[&begun, part], effects);
        }
        debug_assert_eq!(self.upstream(), Some(upstream));
        self.update_upstream(effects);
    }

    fn deliver(&mut self, conn: Conn, parts: &[&[u8]], effects: &mut Effects<Self>) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.waiting -= 1;
        if let Some(out) = effects.out(conn) {
            parts.iter().for_each(|part| out.extend_from_slice(part));
        }
        self.update(conn, effects);
    }

    /// Says what is wanted of the upstream, and whether clients are read.
    fn update_upstream(&mut self, effects: &mut Effects<Self>) {
        let Some(upstream) = self.upstream() else { return };
        let pending = effects.pending(upstream);
        self.seen.to_upstream.fetch_max(pending, Relaxed);
        let was_full = self.full;
        self.full = match was_full {
            false => pending > UPSTREAM_FULL || self.waiting.len() > ALL_WAITING,
            // Clients are read again once all is written.
            true => pending > 0 || self.waiting.len() > ALL_WAITING / 2,
        };
        let status = Status {
            // It owes nothing: its silence is no timeout.
            waits: self.waiting.is_empty(),
            wants_room: self.full,
            ..Status::default()
        };
        effects.set(upstream, status);
        if self.full != was_full {
            self.update_all(effects);
        }
    }

    /// The connection to the upstream is of no use any more. Who waits gets an error.
    fn lose(&mut self, effects: &mut Effects<Self>) {
        let error = match self.upstream {
            Upstream::Connecting(_) => DOWN,
            _ => LOST,
        };
        if let Some(upstream) = self.upstream() {
            effects.abort(upstream);
        }
        self.upstream = Upstream::Down { retry_at: effects.now().instant + self.backoff };
        self.backoff = (self.backoff * 2).min(BACKOFF_MOST.max(self.backoff));
        self.reply.clear();
        self.full = false;
        for conn in std::mem::take(&mut self.waiting) {
            self.deliver(conn, &[error.as_bytes(), b"\n"], effects);
        }
        self.update_all(effects);
    }
}

fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

impl Engine for Relay {
    type Job = Never;
    type Letter = Never;
    const CONNECTS: bool = true;

    fn opened(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if self.upstream == Upstream::Connecting(conn) {
            self.upstream = Upstream::Open(conn);
            return self.update_upstream(effects);
        }
        if self.upstream == Upstream::Unused {
            self.connect(effects);
        }
        self.clients.insert(conn, Client::default());
        self.update(conn, effects);
    }

    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>) {
        if self.upstream() == Some(conn) {
            self.replies(conn, bytes, effects);
        } else {
            self.requests(conn, bytes, effects);
        }
    }

    fn room(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if self.upstream() == Some(conn) {
            self.update_upstream(effects);
        } else {
            self.update(conn, effects);
        }
    }

    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if self.upstream() == Some(conn) {
            self.lose(effects);
        } else if let Some(client) = self.clients.get_mut(&conn) {
            client.ended = true;
            self.update(conn, effects);
        }
    }

    fn closed(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if self.upstream() == Some(conn) {
            self.lose(effects);
        } else {
            self.clients.remove(&conn);
        }
    }

    fn due(&self) -> Option<Instant> {
        match self.upstream {
            Upstream::Down { retry_at } => Some(retry_at),
            _ => None,
        }
    }

    fn tick(&mut self, effects: &mut Effects<Self>) {
        self.connect(effects);
    }
}
