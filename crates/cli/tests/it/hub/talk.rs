//! Members of several hubs that send all the time, and what was promised to them.

use crate::{
    hub::broker::member,
    support::{
        Over, Server,
        hub::{Socket, hear, metric, send},
        hubs::joined_at,
        until,
    },
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// A member that sends all the time, and what it has heard.
pub struct Sender {
    socket: Socket,
    own: usize,
    heard: Vec<Value>,
    /// When gaps came.
    gaps: Vec<Instant>,
    /// What it has sent and knows to be published, and when it has begun to send it.
    published: Vec<(String, Instant)>,
    /// How many messages were published, not published, and unknown.
    pub outcomes: [u64; 3],
}

impl Sender {
    pub fn new(own: usize, socket: Socket) -> Sender {
        let (heard, gaps, published) = Default::default();
        Sender { socket, own, heard, gaps, published, outcomes: [0; 3] }
    }

    /// Sends a message, and hears all until it knows the outcome. Returns whether it is published.
    fn says(&mut self, payload: &Value) -> bool {
        let begun = Instant::now();
        send(&mut self.socket, &json!({"type": "broadcast", "payload": payload}));
        loop {
            let heard = self.hears();
            let error = heard["error"].as_str().unwrap_or_default();
            let outcome = match heard["type"].as_str().unwrap() {
                "broadcast" | "gap" => {
                    self.heard.push(heard);
                    continue;
                }
                "broadcastResult" => 0,
                "error" if error.starts_with("not published: ") => 1,
                "error" if error.starts_with("unknown whether published: ") => 2,
                _ => panic!("{heard}"),
            };
            assert_eq!(heard["payload"], *payload);
            self.outcomes[outcome] += 1;
            if outcome == 0 {
                self.published.push((payload.to_string(), begun));
            }
            return outcome == 0;
        }
    }

    fn hears(&mut self) -> Value {
        let heard = hear(&mut self.socket);
        if heard["type"] == "gap" {
            self.gaps.push(Instant::now());
        }
        heard
    }

    fn hears_until(&mut self, last: &Value) {
        while self.heard.last().is_none_or(|heard| heard["payload"] != *last) {
            let heard = self.hears();
            self.heard.push(heard);
        }
    }

    fn runs(&mut self, stop: &AtomicBool) {
        let mut n = 0;
        while !stop.load(SeqCst) {
            n += 1;
            // It pauses after each message, to leave CPU to other tests.
            let pause_ms = if self.says(&json!([self.own, n])) { 1 } else { 20 };
            thread::sleep(Duration::from_millis(pause_ms));
        }
        while !self.says(&json!([self.own, "end"])) {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The messages, in segments between gaps.
    fn segments(&self) -> Vec<Vec<String>> {
        let is_gap = |heard: &Value| heard["type"] == "gap";
        let segments = self.heard.split(is_gap);
        segments.map(|all| all.iter().map(|heard| heard["payload"].to_string()).collect()).collect()
    }
}

/// Checks that a member heard no message twice, and that between two messages without a gap another member heard
/// nothing else.
fn check(one: &Sender, other: &Sender) {
    let whole: Vec<String> = other.segments().concat();
    let places: HashMap<&String, usize> =
        whole.iter().enumerate().map(|(place, message)| (message, place)).collect();
    assert_eq!(places.len(), whole.len(), "member {} heard some twice", other.own);
    let mut at = 0;
    for segment in one.segments() {
        let mut is_inside = false;
        for message in segment {
            let Some(&place) = places.get(&message) else {
                // The other one has a gap there.
                is_inside = false;
                continue;
            };
            assert!(
                place >= at,
                "{message} is in another order at {} than at {}",
                one.own,
                other.own
            );
            assert!(!is_inside || place == at, "{} misses {} silently", one.own, whole[at]);
            (at, is_inside) = (place + 1, true);
        }
    }
}

/// Checks that a member has heard all that another one knows to be published, or got a gap after that was sent.
fn check_losses(one: &Sender, other: &Sender) {
    let heard: HashSet<String> =
        one.heard.iter().map(|heard| heard["payload"].to_string()).collect();
    for (message, begun) in &other.published {
        let has_gap = one.gaps.iter().any(|gap| gap > begun);
        assert!(heard.contains(message) || has_gap, "{} misses {message} silently", one.own);
    }
}

/// Lets all send until `meanwhile` has ended, and hear the last message of the first one.
pub fn all_talk(senders: &mut [Sender], meanwhile: impl FnOnce()) {
    let (stop, all_have_ended) = (AtomicBool::new(false), Barrier::new(senders.len()));
    let last = json!([0, "last"]);
    thread::scope(|scope| {
        for sender in senders {
            let (stop, all_have_ended, last) = (&stop, &all_have_ended, &last);
            scope.spawn(move || {
                sender.runs(stop);
                all_have_ended.wait();
                if sender.own == 0 {
                    assert!(sender.says(last));
                }
                sender.hears_until(last);
            });
        }
        let _over = Over(&stop);
        meanwhile();
    });
}

/// Checks that all got so many gaps or more, and what was promised to each.
pub fn check_all(senders: &[Sender], gaps: usize) {
    for one in senders {
        assert!(one.gaps.len() >= gaps, "{}: {} gaps", one.own, one.gaps.len());
        for other in senders {
            check(one, other);
            check_losses(one, other);
        }
    }
}

const UP: &str = "regatta_hub_broker_up";
const PUBLISHED: &str = "regatta_hub_broker_messages_total{outcome=\"published\"}";
/// Hubs give members at most one gap a second because of other hubs; a little more than that.
const GAPS_APART: Duration = Duration::from_millis(1200);

/// Members of two hubs at the broker of this URL send all the time, while its master fails. `fails` returns once both
/// hubs are at the new one. Returns the hubs.
pub fn talk_during(url: &str, fails: impl FnOnce()) -> Vec<(Server, SocketAddr)> {
    let hubs: Vec<_> = (0..2).map(|_| joined_at("percore", url, &[])).collect();
    let mut senders: Vec<Sender> =
        (0..4).map(|own| Sender::new(own, member(&hubs[own % 2].0, "/red"))).collect();
    all_talk(&mut senders, || {
        let published = || hubs.iter().map(|(_, page)| metric(*page, PUBLISHED));
        let talk = || {
            let before: Vec<u64> = published().collect();
            until("the members of each talk", || {
                published().zip(&before).all(|(now, before)| now > before + 50)
            });
        };
        talk();
        fails();
        until("they are up", || hubs.iter().all(|(_, page)| metric(*page, UP) == 1));
        // The hub that was there first gives the gap for the arrival of the other one up to a second later.
        let are_up = Instant::now();
        until("all gaps are due", || are_up.elapsed() > GAPS_APART);
        // A hub that has published since then has given them.
        talk();
    });
    check_all(&senders, 1);
    for one in &senders {
        assert!(one.outcomes[0] > 20, "{:?}", one.outcomes);
    }
    hubs
}
