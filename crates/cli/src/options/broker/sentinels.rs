//! A broker that is the master which Sentinels manage. A thread asks all of them every two seconds, and more often while
//! there is a reason; an address counts if most of the configured ones give it ([`Masters`]).

use super::{
    asker::{ANSWER, Asker, look_up},
    follower::{Follower, Following, lock},
    login::Login,
    url::Server,
};
use crate::output;
use regatta_serve::{HubBrokerTls, HubPlace};
use regatta_service::prometheus::{Exposition, label};
use regatta_shard::sentinel::{Masters, Question, Reported};
use std::{
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// How often the Sentinels are asked without a reason.
const EVERY: Duration = Duration::from_secs(2);
/// The longest answer, in bytes.
const LONGEST: usize = 4096;

/// A broker that Sentinels manage.
pub struct Managed {
    asks: Arc<Asks>,
    follower: Follower,
}

/// What the thread needs.
struct Asks {
    master: String,
    sentinels: Vec<Server>,
    asker: Asker,
    masters: Mutex<Masters>,
    /// The addresses of each Sentinel.
    addresses: Mutex<Vec<Vec<SocketAddr>>>,
    /// How each has answered.
    seen: Mutex<Vec<Seen>>,
    started: Instant,
}

/// How a Sentinel has answered.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Whether it did the last time.
    answers: bool,
    answered_at: Option<Instant>,
    /// How often it did not.
    failures: u64,
}

impl Managed {
    pub fn new(
        sentinels: Vec<Server>,
        master: &str,
        login: Login,
        tls: Option<HubBrokerTls>,
    ) -> Managed {
        let nodes = [(master.to_owned(), master.to_owned())];
        let mut masters = Masters::new(vec![None; sentinels.len()], &nodes);
        masters.call_sentinels(sentinels.iter().map(Server::to_string).collect());
        let asks = Asks {
            master: master.to_owned(),
            addresses: Mutex::new(vec![Vec::new(); sentinels.len()]),
            seen: Mutex::new(vec![Seen::default(); sentinels.len()]),
            started: Instant::now(),
            sentinels,
            asker: Asker { login, tls, longest: LONGEST, options: "--broker-sentinel" },
            masters: Mutex::new(masters),
        };
        Managed { asks: Arc::new(asks), follower: Follower::default() }
    }
}

impl HubPlace for Managed {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let asks = Arc::clone(&self.asks);
        let started = self.follower.start("sentinels", move |following| follow(&asks, &following));
        started.map_err(|error| format!("its Sentinels are not asked: no thread: {error}"))?;
        let master =
            self.asks.known().ok_or("no majority of its Sentinels has given its master")?;
        Ok(vec![master])
    }

    fn has_left(&self, address: SocketAddr) -> Option<String> {
        let master = self.asks.known().filter(|master| *master != address)?;
        Some(format!("its Sentinels give {master} as the master now"))
    }

    fn is_lost(&self, was_up: bool) {
        lock(&self.asks.masters).want(was_up, Instant::now());
        self.follower.wake();
    }

    fn metrics(&self) -> String {
        self.asks.metrics(Instant::now())
    }
}

/// Asks the Sentinels for as long as the broker is used.
fn follow(asks: &Asks, following: &Following) {
    asks.resolve(look_up);
    loop {
        let begun = Instant::now();
        asks.round();
        following.found();
        if lock(&asks.masters).are_in_doubt() {
            // Their names may have other addresses.
            asks.resolve(look_up);
        }
        loop {
            let now = Instant::now();
            if now >= begun + EVERY {
                lock(&asks.masters).want(false, now);
            }
            let at = lock(&asks.masters).asks_at(now).min(begun + EVERY);
            if at <= now {
                break;
            }
            if !following.wait(at) {
                return;
            }
        }
    }
}

impl Asks {
    /// The address of the master, as the Sentinels gave it the last time when most of them gave the same.
    fn known(&self) -> Option<SocketAddr> {
        lock(&self.masters).addresses().find_map(|(_, address)| address)
    }

    /// Looks up the addresses of the Sentinels. Those that are known stay if a name cannot be resolved.
    fn resolve(&self, look_up: impl Fn(&Server) -> Vec<SocketAddr>) {
        let mut all: Vec<Vec<SocketAddr>> = self.sentinels.iter().map(look_up).collect();
        let mut before = lock(&self.addresses);
        for (newest, known) in all.iter_mut().zip(&*before) {
            if newest.is_empty() {
                newest.clone_from(known);
            }
        }
        if *before != all {
            let first = all.iter().map(|all| all.first().copied());
            lock(&self.masters).set_sentinels(first.collect());
            *before = all;
        }
    }

    /// Asks all Sentinels at once, if it is time to. Takes at most [`ANSWER`].
    fn round(&self) {
        let question = lock(&self.masters).ask(Instant::now(), rand::random());
        self.report();
        self.miss(question.as_ref());
        let Some(question) = question else { return };
        let (question, reached) = (&question, &Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for &(sentinel, _) in &question.sentinels {
                let ask = move || self.answered(question, sentinel, self.ask(sentinel, reached));
                let thread = thread::Builder::new().name("sentinel".into());
                if let Err(error) = thread.spawn_scoped(scope, ask) {
                    self.answered(question, sentinel, Err(format!("no thread: {error}")));
                }
            }
        });
    }

    /// Those that a question leaves out have no address, or the address of another one. Without an address of any, there
    /// is no question.
    fn miss(&self, question: Option<&Question>) {
        let has_none = || lock(&self.addresses).iter().all(Vec::is_empty);
        if question.is_none() && !has_none() {
            return;
        }
        let asked = question.map_or(&[][..], |question| &question.sentinels[..]);
        for (number, seen) in lock(&self.seen).iter_mut().enumerate() {
            if asked.iter().all(|(one, _)| *one != number) {
                seen.fails();
            }
        }
    }

    /// What operators should know of each Sentinel and of the master.
    fn metrics(&self, now: Instant) -> String {
        let mut all = Exposition::new("regatta_hub");
        let seconds = |since| now.saturating_duration_since(since).as_secs();
        let names = self.sentinels.iter().map(|one| label("sentinel", &one.to_string()));
        let seen: Vec<_> = names.zip(lock(&self.seen).clone()).collect();
        let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Seen) -> u64| {
            let samples: Vec<_> = seen.iter().map(|(name, seen)| (name, value(seen))).collect();
            all.family(name, kind, help, &samples);
        };
        let help = "Whether a Sentinel answered when it was asked last.";
        each("broker_sentinel_up", "gauge", help, &|seen| u64::from(seen.answers));
        let help = "Time since the last answer of a Sentinel; of one without, since the start.";
        let age = |seen: &Seen| seconds(seen.answered_at.unwrap_or(self.started));
        each("broker_sentinel_age_seconds", "gauge", help, &age);
        let help = "How often a Sentinel did not answer, or could not be asked.";
        each("broker_sentinel_failures_total", "counter", help, &|seen| seen.failures);
        let counts = lock(&self.masters).counts(now, self.started);
        let help =
            "Time since a majority of the Sentinels gave the master; without one, since the start.";
        all.family("broker_master_age_seconds", "gauge", help, &[("", counts.age.as_secs())]);
        let help =
            "How often the Sentinels gave another master than before, which the hub follows.";
        all.family("broker_master_switches_total", "counter", help, &[("", counts.switches)]);
        all.into_text()
    }

    fn answered(&self, question: &Question, sentinel: usize, answer: Result<Reported, String>) {
        match answer {
            Ok(_) => lock(&self.seen)[sentinel].answers(Instant::now()),
            Err(_) => lock(&self.seen)[sentinel].fails(),
        }
        let answer = answer.map(|one| vec![one]);
        let (of, now) = ((question.round, sentinel), Instant::now());
        lock(&self.masters).answered(of, answer, now, rand::random());
        self.report();
    }

    fn report(&self) {
        let news = lock(&self.masters).take_news();
        news.iter()
            .for_each(|line| output::log(&format!("regatta: broker {}: {line}", self.master)));
    }

    /// Asks a Sentinel for the master. `reached`: the addresses that have accepted a connection in this round.
    fn ask(&self, sentinel: usize, reached: &Mutex<Vec<SocketAddr>>) -> Result<Reported, String> {
        let until = Instant::now() + ANSWER;
        let mut why = "its name has no address".to_owned();
        let addresses = lock(&self.addresses)[sentinel].clone();
        for address in addresses {
            match Asker::connect(&address, until) {
                Ok(stream) => {
                    let mut reached = lock(reached);
                    if reached.contains(&address) {
                        return Err("it is the same as another one".to_owned());
                    }
                    reached.push(address);
                    drop(reached);
                    return self.question(&stream, until);
                }
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    fn question(&self, stream: &TcpStream, until: Instant) -> Result<Reported, String> {
        let question = [&b"SENTINEL"[..], b"GET-MASTER-ADDR-BY-NAME", self.master.as_bytes()];
        let replies = self.asker.ask(stream, until, &[&question])?;
        Ok(Reported::read(&replies[0]))
    }
}

impl Seen {
    fn answers(&mut self, now: Instant) {
        (self.answers, self.answered_at) = (true, Some(now));
    }

    fn fails(&mut self) {
        self.answers = false;
        self.failures += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_sentinels_stay_while_their_names_cannot_be_resolved() {
        let all = ["a", "b"].map(|host| Server { host: host.to_owned(), port: 7000 });
        let login = Login { user: None, password: None };
        let managed = Managed::new(all.to_vec(), "one", login, None);
        let [one, two, new] = [1, 2, 3].map(|last| SocketAddr::from(([127, 0, 0, last], 7000)));
        let known = || lock(&managed.asks.addresses).clone();
        managed.asks.resolve(|of| vec![if of.host == "a" { one } else { two }]);
        assert_eq!(known(), [[one], [two]]);
        managed.asks.resolve(|_| Vec::new());
        assert_eq!(known(), [[one], [two]], "nothing is resolved");
        managed.asks.resolve(|of| if of.host == "a" { Vec::new() } else { vec![new] });
        assert_eq!(known(), [[one], [new]], "only one is");
    }

    #[test]
    fn metrics_say_of_each_sentinel_when_it_answered() {
        let all = ["a", "b"].map(|host| Server { host: host.to_owned(), port: 7000 });
        let login = Login { user: None, password: None };
        let Managed { asks, .. } = Managed::new(all.to_vec(), "one", login, None);
        let value = |name: &str, after: u64| {
            let text = asks.metrics(asks.started + Duration::from_secs(after));
            let name = format!("regatta_hub_broker_{name} ");
            text.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok())
        };
        let of = |name: &str, host: &str, after| {
            value(&format!("{name}{{sentinel=\"{host}:7000\"}}"), after)
        };
        assert_eq!(
            (of("sentinel_up", "a", 0), of("sentinel_age_seconds", "a", 9)),
            (Some(0), Some(9))
        );
        // No name has an address: none is asked.
        asks.round();
        assert_eq!(of("sentinel_failures_total", "b", 0), Some(1));
        let at = SocketAddr::from(([127, 0, 0, 1], 7000));
        asks.resolve(|of| (of.host == "a").then_some(at).into_iter().collect());
        let question = lock(&asks.masters).ask(Instant::now() + EVERY, 0.5).expect("a question");
        asks.miss(Some(&question));
        asks.answered(&question, 0, Ok(Reported::At(at)));
        assert_eq!((of("sentinel_up", "a", 0), of("sentinel_up", "b", 0)), (Some(1), Some(0)));
        assert_eq!(of("sentinel_failures_total", "a", 0), Some(1));
        assert_eq!(of("sentinel_failures_total", "b", 0), Some(2));
        assert_eq!(of("sentinel_age_seconds", "b", 20), Some(20));
        assert!(of("sentinel_age_seconds", "a", 20).is_some_and(|age| age <= 20));
        // One of two is no majority.
        assert_eq!(
            (value("master_age_seconds", 20), value("master_switches_total", 0)),
            (Some(20), Some(0))
        );
    }

    #[test]
    fn a_sentinel_whose_name_has_no_address_is_named() {
        let all = ["known", "nowhere"].map(|host| Server { host: host.to_owned(), port: 7000 });
        let login = Login { user: None, password: None };
        let Managed { asks, .. } = Managed::new(all.to_vec(), "one", login, None);
        let at = SocketAddr::from(([127, 0, 0, 1], 7000));
        asks.resolve(|of| (of.host == "known").then_some(at).into_iter().collect());
        let (mut masters, mut now) = (lock(&asks.masters), Instant::now());
        let mut news = Vec::new();
        for _ in 0..9 {
            if let Some(question) = masters.ask(now, 0.5) {
                masters.answered((question.round, 0), Err("it is mute".to_owned()), now, 0.5);
            }
            news.extend(masters.take_news());
            masters.want(false, now);
            now += EVERY;
        }
        let news = news.join("\n");
        let expected = "127.0.0.1:7000: it is mute; nowhere:7000: its name has no address";
        assert!(news.contains(expected), "{news}");
    }
}
