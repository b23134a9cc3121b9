//! Which server is the master of each node, by what its Sentinels report. Without sockets and clocks.
//!
//! All Sentinels are asked in a *round*. An address counts if a majority of the configured Sentinels give it in the same
//! round: one that is cut off gives the old master for hours (redis#12271), and answers of several rounds are of several
//! moments. A Sentinel that is listed twice, or whose name has no address, has no vote, but counts among the configured.
//!
//! One round is in flight at a time for the whole process. Without a reason there is one every ten seconds. While there is
//! a reason, the pauses between them double up to a second; after the announcement of a failover they stay short, because
//! the other Sentinels learn of it within two seconds.

use super::reported::Reported;
use std::{
    mem,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// The shortest pause between two rounds, and the longest while there is a reason.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause without a reason. It is shortened by up to a fifth at random.
const INTERVAL: Duration = Duration::from_secs(10);

/// How long the pauses stay short after an announcement.
const EAGER_FOR: Duration = Duration::from_secs(5);

/// After this time a round is over, even if answers are missing. Each Sentinel has a second.
const LONGEST_ROUND: Duration = Duration::from_secs(3);

/// Pause before another Sentinel is subscribed to.
const SUBSCRIBE_PAUSE: Duration = Duration::from_secs(1);

/// How long a master has no majority until that is reported. Sentinels disagree for a moment during a failover.
const PATIENCE: Duration = Duration::from_secs(3);

/// The masters, and when to ask the Sentinels for them.
#[derive(Debug)]
pub struct Masters {
    /// The Sentinels that are configured. `None`: the name of this one has no address.
    sentinels: Vec<Option<SocketAddr>>,
    /// What those are called that have no address. Those behind the last one have a number only.
    called: Vec<String>,
    /// Their names of the masters.
    names: Arc<[String]>,
    masters: Vec<Master>,
    round: Option<Round>,
    /// The number of the last round.
    rounds: u64,
    is_wanted: bool,
    eager_until: Option<Instant>,
    not_before: Option<Instant>,
    pause: Duration,
    again_at: Option<Instant>,
    /// How many Sentinels gave an answer in the last round that is over.
    answering: usize,
    /// Too few did for a majority: their names may have other addresses.
    are_in_doubt: bool,
    switches: u64,
    subscription: Subscription,
    news: Vec<String>,
}

/// What the Sentinels say, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentinelCounts {
    /// Sentinels that answered in the last round.
    pub answering: usize,
    /// Sentinels that are configured.
    pub configured: usize,
    /// How often the master of a node has changed.
    pub switches: u64,
    /// The longest time since a majority confirmed the master of a node; of one without, since the start.
    pub age: Duration,
}

/// A node, and the server that is its master.
#[derive(Clone, Debug)]
struct Master {
    /// The name of the node for messages.
    node: String,
    address: Option<SocketAddr>,
    /// A majority gave an address that can be used: in this round, and when it was over.
    decided: u64,
    confirmed_at: Option<Instant>,
    /// Since when none has, and why.
    failing_since: Option<Instant>,
    why: String,
    /// The address that a majority gives in this round and that is the master of another node, and the name of that.
    clash: Option<(SocketAddr, String)>,
    /// Whether the last line about it says that it is known. `None`: there was none.
    is_reported: Option<bool>,
}

/// A round in flight.
#[derive(Debug)]
struct Round {
    since: Instant,
    /// It is not one of those that come every ten seconds.
    has_reason: bool,
    /// For each Sentinel, its answer: one for each master, or why there is none. `None`: it is awaited.
    answers: Vec<Option<Result<Vec<Reported>, String>>>,
}

/// The Sentinel that announces failovers.
#[derive(Debug, Default)]
struct Subscription {
    is_open: bool,
    /// The number of the Sentinel to try next, and not before this.
    next: usize,
    not_before: Option<Instant>,
}

/// Whom a core must ask for the masters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The number of the round, for [`Masters::answered`].
    pub round: u64,
    /// The Sentinels, by their numbers.
    pub sentinels: Vec<(usize, SocketAddr)>,
    /// The names of the masters to ask for.
    pub names: Arc<[String]>,
}

/// Addresses of nodes that replace those before, by the numbers of the nodes.
pub type Switches = Vec<(usize, SocketAddr)>;

impl Masters {
    /// `sentinels`: all that are configured, those without address as `None`. `nodes`: the name of each node, and that of
    /// its master.
    pub fn new(sentinels: Vec<Option<SocketAddr>>, nodes: &[(String, String)]) -> Self {
        let mut masters = Masters {
            sentinels: Vec::new(),
            called: Vec::new(),
            names: [].into(),
            masters: Vec::new(),
            round: None,
            rounds: 0,
            is_wanted: true,
            eager_until: None,
            not_before: None,
            pause: PAUSE,
            again_at: None,
            answering: 0,
            are_in_doubt: false,
            switches: 0,
            subscription: Subscription::default(),
            news: Vec::new(),
        };
        masters.configure(sentinels, nodes);
        masters
    }

    /// Other Sentinels or nodes are configured. A master that is known stays so; the answers of a round in flight do not
    /// count.
    pub(crate) fn configure(
        &mut self,
        sentinels: Vec<Option<SocketAddr>>,
        nodes: &[(String, String)],
    ) {
        let before = mem::take(&mut self.masters);
        let names =
            mem::replace(&mut self.names, nodes.iter().map(|(_, name)| name.clone()).collect());
        let master = |(node, name): &(String, String)| {
            let known = names.iter().position(|known| known == name);
            let known = known.map(|known| before[known].clone());
            Master { node: node.clone(), ..known.unwrap_or_else(|| Master::unknown(node)) }
        };
        self.masters = nodes.iter().map(master).collect();
        self.set_sentinels(sentinels);
    }

    /// What the Sentinels are called in messages as long as they have no address.
    pub fn call_sentinels(&mut self, called: Vec<String>) {
        self.called = called;
    }

    /// The Sentinels have these addresses now.
    pub fn set_sentinels(&mut self, sentinels: Vec<Option<SocketAddr>>) {
        self.sentinels = sentinels;
        self.round = None;
        self.is_wanted = true;
    }

    /// How many of the configured Sentinels must give an address.
    fn majority(&self) -> usize {
        self.sentinels.len() / 2 + 1
    }

    /// There is a reason to ask. `eagerly`: a failover was announced, or a node is no master.
    pub fn want(&mut self, eagerly: bool, now: Instant) {
        self.is_wanted = true;
        if eagerly {
            self.eager_until = Some(now + EAGER_FOR);
            self.pause = PAUSE;
            let soon = now + PAUSE;
            self.not_before = self.not_before.map(|at| at.min(soon));
        }
    }

    /// When [`Masters::ask`] or [`Masters::subscribe`] returns something.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let asks = self.asks_at(now);
        let subscribes = self.subscription.not_before.unwrap_or(now);
        if self.subscription.is_open { asks } else { asks.min(subscribes) }
    }

    /// When [`Masters::ask`] begins a round.
    pub fn asks_at(&self, now: Instant) -> Instant {
        match &self.round {
            Some(round) => round.since + LONGEST_ROUND,
            None if self.is_wanted => self.not_before.unwrap_or(now),
            None => self.again_at.unwrap_or(now),
        }
    }

    /// Begins a round if it is time to. The caller must report the answer of each Sentinel, or why there is none.
    pub fn ask(&mut self, now: Instant, jitter: f64) -> Option<Question> {
        if let Some(round) = &mut self.round {
            if now < round.since + LONGEST_ROUND {
                return None;
            }
            let late = round.answers.iter_mut().filter(|answer| answer.is_none());
            late.for_each(|answer| *answer = Some(Err("it did not answer in time".into())));
            self.end_round(now, jitter);
        }
        let due = if self.is_wanted { self.not_before } else { self.again_at };
        if due.is_some_and(|due| now < due) {
            return None;
        }
        self.rounds += 1;
        let has_reason = mem::take(&mut self.is_wanted);
        let (mut sentinels, mut answers) = (Vec::new(), Vec::new());
        for (number, address) in self.sentinels.iter().enumerate() {
            answers.push(match address {
                None => Some(Err("its name has no address".into())),
                Some(at) if sentinels.iter().any(|(_, other)| other == at) => {
                    Some(Err("it is the same as another one".into()))
                }
                Some(at) => {
                    sentinels.push((number, *at));
                    None
                }
            });
        }
        self.round = Some(Round { since: now, has_reason, answers });
        if sentinels.is_empty() {
            self.end_round(now, jitter);
            return None;
        }
        Some(Question { round: self.rounds, sentinels, names: Arc::clone(&self.names) })
    }

    /// A Sentinel was asked in this round, and gives these addresses, or this is why not. Returns what changes. `jitter`:
    /// a random number from 0 to 1.
    pub fn answered(
        &mut self,
        (number, sentinel): (u64, usize),
        answer: Result<Vec<Reported>, String>,
        now: Instant,
        jitter: f64,
    ) -> Switches {
        let count = self.masters.len();
        let Some(round) = self.round.as_mut().filter(|_| number == self.rounds) else {
            return Vec::new();
        };
        let Some(place @ None) = round.answers.get_mut(sentinel) else { return Vec::new() };
        *place = Some(match answer {
            Ok(all) if all.len() != count => Err("its answer is incomplete".into()),
            other => other,
        });
        let is_over = round.answers.iter().all(Option::is_some);
        let switches = (0..count).filter_map(|master| self.decide(master, now)).collect();
        if is_over {
            self.end_round(now, jitter);
        }
        switches
    }

    /// Uses the address of a master that a majority gives in this round, if there is one. Returns it if it is another one.
    fn decide(&mut self, number: usize, now: Instant) -> Option<(usize, SocketAddr)> {
        let round = self.round.as_ref()?;
        let votes = || {
            let answers = round.answers.iter().flatten().flatten();
            answers.filter_map(|all| match all.get(number) {
                Some(Reported::At(address)) => Some(*address),
                _ => None,
            })
        };
        let majority = self.majority();
        let chosen = votes().find(|at| votes().filter(|other| other == at).count() >= majority)?;
        let mut others = self.masters.iter().enumerate().filter(|(other, _)| *other != number);
        if let Some((_, other)) = others.find(|(_, other)| other.address == Some(chosen)) {
            // Keys of both nodes would be mixed in one server.
            self.masters[number].clash = Some((chosen, other.node.clone()));
            return None;
        }
        let rounds = self.rounds;
        let master = &mut self.masters[number];
        master.clash = None;
        if mem::replace(&mut master.decided, rounds) == rounds {
            return None;
        }
        (master.confirmed_at, master.failing_since) = (Some(now), None);
        let before = master.address.replace(chosen);
        let node = &master.node;
        match before {
            Some(before) if before != chosen => {
                self.news.push(format!("the master of {node} is {chosen} now; before: {before}"));
                self.switches += 1;
            }
            _ if master.is_reported != Some(true) => {
                self.news.push(format!("the master of {node} is {chosen}"));
            }
            _ => {}
        }
        master.is_reported = Some(true);
        (before != Some(chosen)).then_some((number, chosen))
    }

    /// All Sentinels have answered, or it has taken too long.
    fn end_round(&mut self, now: Instant, jitter: f64) {
        let Some(round) = self.round.take() else { return };
        let (majority, total) = (self.majority(), self.sentinels.len());
        self.answering = round.answers.iter().flatten().filter(|answer| answer.is_ok()).count();
        self.are_in_doubt |= self.answering < majority;
        let mut has_all = true;
        for number in 0..self.masters.len() {
            let master = &self.masters[number];
            if master.decided == self.rounds {
                continue;
            }
            has_all = false;
            let said = round.answers.iter().zip(&self.sentinels).enumerate();
            let said: Vec<String> = said
                .map(|(sentinel, (answer, at))| {
                    let own = at.map(|at| at.to_string());
                    let name = own.or_else(|| self.called.get(sentinel).cloned());
                    let name = name.unwrap_or_else(|| format!("number {}", sentinel + 1));
                    format!("{name}: {}", what(answer.as_ref(), number))
                })
                .collect();
            let clash = self.masters[number].clash.take();
            let clash = clash.map_or_else(String::new, |(chosen, other)| {
                format!("they give {chosen}, which is the master of {other}; ")
            });
            let why =
                format!("{clash}{majority} of {total} Sentinels must agree; {}", said.join("; "));
            self.fail(number, why, now);
        }
        let is_eager = self.eager_until.is_some_and(|until| now < until);
        let grows = round.has_reason && !is_eager;
        let pause = if grows { self.pause } else { PAUSE };
        self.not_before = Some(now + pause);
        self.pause = if grows { (2 * pause).min(LONGEST_PAUSE) } else { PAUSE };
        self.again_at = Some(now + INTERVAL.mul_f64(1.0 - 0.2 * jitter));
        self.is_wanted |= !has_all || is_eager;
    }

    /// No majority gives an address of this master that can be used.
    fn fail(&mut self, number: usize, why: String, now: Instant) {
        let master = &mut self.masters[number];
        let since = *master.failing_since.get_or_insert(now);
        let is_over = master.is_reported.is_none() || now >= since + PATIENCE;
        if is_over && master.is_reported != Some(false) {
            master.is_reported = Some(false);
            self.news.push(format!("the master of {} is not known: {why}", master.node));
        }
        master.why = why;
    }

    /// Returns the Sentinel to which a core must subscribe, if none has. The caller reports when the subscription ends.
    pub(crate) fn subscribe(&mut self, now: Instant) -> Option<(usize, SocketAddr)> {
        let own = &mut self.subscription;
        if own.is_open || own.not_before.is_some_and(|at| now < at) {
            return None;
        }
        let count = self.sentinels.len();
        let mut all = (own.next..own.next + count).map(|number| number % count.max(1));
        let Some(number) = all.find(|number| self.sentinels[*number].is_some()) else {
            own.not_before = Some(now + SUBSCRIBE_PAUSE);
            return None;
        };
        (own.is_open, own.next) = (true, number + 1);
        Some((number, self.sentinels[number]?))
    }

    /// The subscription has ended, or could not be opened.
    pub(crate) fn unsubscribed(&mut self, now: Instant) {
        (self.subscription.is_open, self.subscription.not_before) =
            (false, Some(now + SUBSCRIBE_PAUSE));
    }

    /// Whether there is a master of this name.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.names.iter().any(|own| own.as_bytes() == name)
    }

    /// The address of the master of each node. `None`: it was never known.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, Option<SocketAddr>)> {
        self.masters.iter().map(|master| (&master.node[..], master.address))
    }

    /// Whether the masters of all nodes have been known.
    pub(crate) fn are_known(&self) -> bool {
        self.masters.iter().all(|master| master.address.is_some())
    }

    /// Why the master of a node is not known.
    pub(crate) fn why(&self, node: usize) -> String {
        self.masters.get(node).map_or_else(String::new, |master| master.why.clone())
    }

    /// What operators should know. `started`: when the service was.
    pub fn counts(&self, now: Instant, started: Instant) -> SentinelCounts {
        let confirmed = self.masters.iter().map(|master| master.confirmed_at.unwrap_or(started));
        SentinelCounts {
            answering: self.answering,
            configured: self.sentinels.len(),
            switches: self.switches,
            age: confirmed.min().map_or(Duration::ZERO, |at| now.saturating_duration_since(at)),
        }
    }

    /// Returns whether fewer Sentinels than a majority have answered since the last call.
    pub fn are_in_doubt(&mut self) -> bool {
        mem::take(&mut self.are_in_doubt)
    }

    /// Returns lines that people should read, since the last call.
    pub fn take_news(&mut self) -> Vec<String> {
        mem::take(&mut self.news)
    }
}

impl Master {
    fn unknown(node: &str) -> Self {
        Master {
            node: node.to_owned(),
            address: None,
            decided: 0,
            confirmed_at: None,
            failing_since: None,
            why: "the Sentinels were not asked yet".into(),
            clash: None,
            is_reported: None,
        }
    }
}

/// What a Sentinel says of a master, for people.
fn what(answer: Option<&Result<Vec<Reported>, String>>, master: usize) -> String {
    match answer {
        Some(Ok(all)) => match all.get(master) {
            Some(Reported::At(address)) => address.to_string(),
            Some(Reported::Nothing(why)) => why.clone(),
            None => "nothing".to_owned(),
        },
        Some(Err(why)) => why.clone(),
        None => "no answer yet".to_owned(),
    }
}

#[cfg(test)]
mod tests;
