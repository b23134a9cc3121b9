//! A relay of lines: an engine without sessions.
//!
//! All clients of a core share one connection to another server, the upstream. Each line of a
//! client is forwarded to it. The upstream answers each line with one line, in order, and the relay
//! passes each reply to the client that waits for it. It is small, but it has all parts of a proxy:
//! multiplexing, backpressure in both directions, reconnecting, draining.
//!
//! While the connection to the upstream is being opened, requests wait in its output. While the
//! upstream is down, they are answered with [`DOWN`] at once.

use regatta_engine::{Conn, ConnInterest, Effects, Engine, Flow, Never};
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
/// The last reply to a client whose request is too long.
pub const LONG: &str = "-LONG a request has at most 16384 bytes";

/// Maximum size of an incomplete request and of an incomplete reply, in bytes.
pub const REQUEST: usize = 16 * 1024;
pub const REPLY: usize = 1 << 20;
/// Number of requests that wait for replies: of one client, from which it is not read, and in
/// total, above which no client is read.
pub const CLIENT_WAITING: usize = 1024;
pub const ALL_WAITING: usize = 64 * 1024;
/// Bytes pending to the upstream, above which clients are not read.
pub const UPSTREAM_FULL: usize = 256 * 1024;
/// Bytes pending to a client, above which it is not read, and above which it is aborted.
pub const CLIENT_FULL: usize = 32 * 1024;
pub const CLIENT_MOST: usize = 1 << 20;
/// Delay before reconnecting to the upstream: the first, which doubles each time, and the maximum.
pub const BACKOFF: Duration = Duration::from_millis(10);
pub const BACKOFF_MOST: Duration = Duration::from_secs(1);

/// Counters that a test may read while a relay runs.
#[derive(Debug, Default)]
pub struct Seen {
    /// Maximum number of bytes that were pending to the upstream, and to a client.
    pub to_upstream: AtomicUsize,
    pub to_client: AtomicUsize,
    /// Clients that were aborted because they did not read.
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
    /// The first part of a reply.
    reply: Vec<u8>,
    /// The clients that wait for the next replies, in order. One that is gone keeps its position.
    waiting: VecDeque<Conn>,
    /// Clients are not read, because the upstream does not keep up.
    full: bool,
    clients: BTreeMap<Conn, Client>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upstream {
    /// No client has connected yet.
    Unused,
    Connecting(Conn),
    Open(Conn),
    Down {
        retry_at: Instant,
    },
}

#[derive(Debug, Default)]
struct Client {
    /// The first part of a request.
    request: Vec<u8>,
    /// Number of pending replies.
    waiting: usize,
    /// The client has closed its side, or its input is ignored.
    ended: bool,
    /// Its input is ignored because a request is too long.
    too_long: bool,
}

impl Relay {
    /// Creates a relay to `to`.
    pub fn new(to: SocketAddr) -> Self {
        Relay::seen_by(to, Arc::default())
    }

    /// Creates a relay with counters that a test reads.
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

    /// Sets the first delay before it reconnects.
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
        // A connection that broke in this turn accepts no output, but is not reported as closed
        // yet. Requests that were forwarded to it fail first.
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

    /// Sets whether a client is read, and closes it once it has received everything.
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
            let status = ConnInterest {
                reads: !self.full
                    && !client.ended
                    && client.waiting < CLIENT_WAITING
                    && pending <= CLIENT_FULL,
                waits: client.waiting > 0,
                wants_drained: pending > CLIENT_FULL,
                ..ConnInterest::default()
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
                return self.lose(effects); // the reply is unsolicited
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

    /// Sets the status of the upstream, and whether clients are read.
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
        let status = ConnInterest {
            // No reply is pending, so its silence does not count as idle.
            waits: self.waiting.is_empty(),
            wants_drained: self.full,
            ..ConnInterest::default()
        };
        effects.set(upstream, status);
        if self.full != was_full {
            self.update_all(effects);
        }
    }

    /// Gives up the connection to the upstream. Waiting clients get an error.
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
