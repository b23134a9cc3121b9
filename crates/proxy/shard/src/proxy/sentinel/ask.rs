//! Asking the Sentinels for the masters. Any core begins a round when it is time to, and one of them has the subscription
//! to announcements. What counts is decided in [`Masters`](crate::sentinel::masters::Masters).

use crate::{
    node::{
        loss_reason::Loss,
        upstream::{Upstream, Use, Waiter, What},
    },
    peers::Peer,
    proxy::{
        cluster::ASKED_FOR,
        state::{Fx, Proxy},
    },
    sentinel::{
        masters::Question,
        reported::{Reported, SWITCH, is_message, switched},
        state::Asked,
    },
};
use rand::Rng;
use regatta_engine::{Conn, ConnInterest};
use regatta_proto::resp::write_command;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The connection for announcements is tried after this time, to notice that the Sentinel is away.
const SILENCE: Duration = Duration::from_secs(5);

impl Proxy {
    /// There is a reason to ask for the masters: a connection to one was lost, or one is a replica (`eagerly`).
    #[cold]
    pub(crate) fn want_masters(&mut self, eagerly: bool, effects: &Fx) {
        if self.sentinel.is_some() {
            let now = effects.now().instant;
            self.shared.want_masters(eagerly, now);
            self.look_for_masters(now);
        }
    }

    /// Calls [`Proxy::ask_for_masters`] when it is time to.
    fn look_for_masters(&mut self, now: Instant) {
        let due = self.shared.masters_due(now).unwrap_or(now);
        self.tick_at = Some(self.tick_at.map_or(due, |at| at.min(due)));
    }

    /// Asks the Sentinels, and subscribes to one, if it is time to. Returns when to call this again.
    pub(crate) fn ask_for_masters(&mut self, effects: &mut Fx) -> Option<Instant> {
        self.sentinel.as_ref()?;
        let now = effects.now().instant;
        let jitter = self.random.random();
        if let Some(question) = self.shared.ask_sentinels(now, jitter) {
            self.send_questions(&question, effects);
        }
        if let Some((number, address)) = self.shared.subscribe_to_sentinel(now) {
            self.subscribe_to_announcements(number, address, effects);
        }
        let silence = self.try_announcements(effects);
        // Another core may be asking: what it finds is adopted with the next event.
        let is_asking = self.sentinel.as_ref().is_some_and(|own| !own.asked.is_empty());
        let late = is_asking.then_some(now + ASKED_FOR);
        self.shared.masters_due(now).into_iter().chain(silence).chain(late).min()
    }

    fn send_questions(&mut self, question: &Question, effects: &mut Fx) {
        for (number, address) in &question.sentinels {
            let mut upstream = self.sentinel_at(*number, *address, Use::Sentinel, effects);
            let (conn, now) = (upstream.conn, effects.now().instant);
            if let Some(out) = effects.out(conn) {
                for name in question.names.iter() {
                    let words = [&b"SENTINEL"[..], b"GET-MASTER-ADDR-BY-NAME", name.as_bytes()];
                    write_command(words, out);
                    upstream.wait_for_itself(What::Master, now);
                }
            }
            self.peers.put(conn, Peer::Upstream(upstream));
            if let Some(own) = &mut self.sentinel {
                own.asked.push(Asked {
                    conn,
                    round: question.round,
                    sentinel: *number,
                    masters: question.names.len(),
                    replies: Vec::new(),
                });
            }
        }
        self.check_soon(effects.now().instant);
    }

    /// Opens a connection to a Sentinel.
    fn sentinel_at(
        &self,
        number: usize,
        address: SocketAddr,
        use_: Use,
        effects: &mut Fx,
    ) -> Box<Upstream> {
        let now = effects.now().instant;
        let conn = effects.connect(address);
        let node = self.health.len() + number;
        let mut upstream = Box::new(Upstream::new(conn, node, 0, use_, now));
        let auth = self.settings.sentinels.as_ref().and_then(|sentinels| sentinels.auth.as_ref());
        if let (Some(own), Some(out)) = (auth, effects.out(conn)) {
            write_command([&b"AUTH"[..], &own.user, &own.password], out);
            upstream.wait_for_itself(What::Authenticated, now);
        }
        effects.set(conn, ConnInterest { waits: true, ..ConnInterest::default() });
        upstream
    }

    /// Handles the reply of a Sentinel to a question.
    pub(crate) fn master_reported(&mut self, upstream: &Upstream, reply: &[u8], effects: &mut Fx) {
        let Some(own) = &mut self.sentinel else { return };
        let Some(place) = own.asked.iter().position(|asked| asked.conn == upstream.conn) else {
            return;
        };
        let asked = &mut own.asked[place];
        asked.replies.push(Reported::read(reply));
        if asked.replies.len() == asked.masters {
            let asked = own.asked.swap_remove(place);
            effects.abort(upstream.conn);
            self.sentinel_answered(&asked, Ok(asked.replies.clone()), effects);
        }
    }

    fn sentinel_answered(
        &mut self,
        asked: &Asked,
        answer: Result<Vec<Reported>, String>,
        effects: &mut Fx,
    ) {
        let (now, jitter) = (effects.now().instant, self.random.random());
        self.shared.sentinel_answered((asked.round, asked.sentinel), answer, now, jitter);
        self.follow_settings(effects);
        self.look_for_masters(now);
    }

    fn subscribe_to_announcements(&mut self, number: usize, at: SocketAddr, effects: &mut Fx) {
        let mut upstream = self.sentinel_at(number, at, Use::Announcements, effects);
        let (conn, now) = (upstream.conn, effects.now().instant);
        if let Some(out) = effects.out(conn) {
            write_command([&b"SUBSCRIBE"[..], SWITCH], out);
            upstream.wait_for_itself(What::Announced, now);
        }
        self.peers.put(conn, Peer::Upstream(upstream));
        if let Some(own) = &mut self.sentinel {
            own.announcements = Some(conn);
        }
        self.check_soon(now);
    }

    /// Sends PING over a silent connection for announcements. Returns when to call this again.
    fn try_announcements(&mut self, effects: &mut Fx) -> Option<Instant> {
        let now = effects.now().instant;
        let conn = self.sentinel.as_ref()?.announcements?;
        let upstream = self.peers.upstream(conn)?;
        if !upstream.waiting.is_empty() {
            return None;
        }
        let due = upstream.since + SILENCE;
        if now < due {
            return Some(due);
        }
        write_command([&b"PING"[..]], effects.out(conn)?);
        upstream.wait_for_itself(What::Announced, now);
        self.check_soon(now);
        None
    }

    /// Handles a reply over the connection for announcements. `waiter`: what waits for the next reply.
    pub(crate) fn announced(
        &mut self,
        upstream: &mut Upstream,
        waiter: Waiter,
        reply: &[u8],
        effects: &mut Fx,
    ) {
        if is_message(reply) {
            self.announces(reply, effects);
            upstream.waiting.push_front(waiter);
        } else if reply.starts_with(b"-") {
            // It does not permit SUBSCRIBE: another one may.
            effects.abort(upstream.conn);
            self.end_announcements(upstream.conn, effects.now().instant);
        }
    }

    /// Handles an announcement. Returns `false` if it is none.
    pub(crate) fn announces(&mut self, reply: &[u8], effects: &mut Fx) -> bool {
        if let Some(name) = switched(reply) {
            let now = effects.now().instant;
            self.shared.master_has_switched(name, now);
            self.look_for_masters(now);
        }
        is_message(reply)
    }

    /// A connection to a Sentinel is lost.
    pub(crate) fn sentinel_is_lost(&mut self, lost: &Upstream, loss: &Loss, effects: &mut Fx) {
        let now = effects.now().instant;
        self.end_announcements(lost.conn, now);
        let Some(own) = &mut self.sentinel else { return };
        let Some(place) = own.asked.iter().position(|asked| asked.conn == lost.conn) else {
            return;
        };
        let asked = own.asked.swap_remove(place);
        let (_, why) = loss.words(lost.is_open, self.settings.node_timeout.min(ASKED_FOR));
        self.sentinel_answered(&asked, Err(why), effects);
    }

    fn end_announcements(&mut self, conn: Conn, now: Instant) {
        let Some(own) = &mut self.sentinel else { return };
        if own.announcements.take_if(|own| *own == conn).is_some() {
            self.shared.unsubscribed(now);
            self.look_for_masters(now);
        }
    }
}
