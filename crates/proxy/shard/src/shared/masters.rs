//! The masters that Sentinels report, shared by all cores: any core asks, and all adopt what a majority gives.

use super::Shared;
use crate::{
    node::nodes::{NOWHERE, Nodes},
    sentinel::{
        masters::{Masters, Question, SentinelCounts, Switches},
        reported::Reported,
    },
    settings::Settings,
};
use std::{
    net::SocketAddr,
    sync::{Arc, MutexGuard, PoisonError},
    time::Instant,
};

impl Shared {
    /// There is a reason to ask the Sentinels. `eagerly`: see [`Masters::want`].
    pub(crate) fn want_masters(&self, eagerly: bool, now: Instant) {
        self.with_masters(|masters| masters.want(eagerly, now));
    }

    /// When the Sentinels are to be asked, or one to be subscribed to. `None`: there are none.
    pub(crate) fn masters_due(&self, now: Instant) -> Option<Instant> {
        self.with_masters(|masters| masters.due(now))
    }

    /// Returns the Sentinels that the caller must ask, if it is time to.
    pub(crate) fn ask_sentinels(&self, now: Instant, jitter: f64) -> Option<Question> {
        let question = self.with_masters(|masters| masters.ask(now, jitter)).flatten();
        self.report_masters();
        question
    }

    /// Returns the Sentinel that the caller must subscribe to, if no core has.
    pub(crate) fn subscribe_to_sentinel(&self, now: Instant) -> Option<(usize, SocketAddr)> {
        self.with_masters(|masters| masters.subscribe(now)).flatten()
    }

    /// The subscription of the caller has ended.
    pub(crate) fn unsubscribed(&self, now: Instant) {
        self.with_masters(|masters| masters.unsubscribed(now));
    }

    /// A Sentinel has announced that the master of this name has another address.
    pub(crate) fn master_has_switched(&self, name: &[u8], now: Instant) {
        self.with_masters(|masters| {
            if masters.has(name) {
                masters.want(true, now);
            }
        });
    }

    /// A Sentinel was asked in a round, and this is its answer, or why there is none. `jitter`: a random number from 0 to 1.
    pub(crate) fn sentinel_answered(
        &self,
        of: (u64, usize),
        answer: Result<Vec<Reported>, String>,
        now: Instant,
        jitter: f64,
    ) {
        self.with_masters(|masters| {
            let switches = masters.answered(of, answer, now, jitter);
            self.switch(&switches);
        });
        self.report_masters();
    }

    /// Uses other addresses of masters. The lock of the masters is held meanwhile.
    fn switch(&self, switches: &Switches) {
        if switches.is_empty() {
            return;
        }
        let mut current = self.lock();
        let nodes = &current.0.nodes;
        let address = |node| {
            let switched = switches.iter().find(|(other, _)| *other == node);
            switched.map_or_else(|| nodes.address(node), |(_, address)| *address)
        };
        let nodes = (0..nodes.count()).map(|node| (nodes.name(node).to_owned(), address(node)));
        let nodes = Arc::new(Nodes::new(nodes.collect::<Vec<_>>()));
        let settings = Settings { nodes, ..Settings::clone(&current.0) };
        self.replace(&mut current, settings);
    }

    /// Replaces the configuration. Nodes whose masters are known keep them.
    pub(super) fn reload_managed(&self, mut settings: Settings) {
        self.with_masters(|masters| {
            if let Some(sentinels) = settings.sentinels.as_deref() {
                masters.configure(sentinels.addresses.clone(), &settings.managed());
            }
            let mut current = self.lock();
            let nodes = masters.addresses();
            let nodes = nodes.map(|(name, at)| (name.to_owned(), at.unwrap_or(NOWHERE)));
            let nodes = Nodes::new(nodes.collect::<Vec<_>>());
            let is_same = !nodes.differing(&current.0.nodes).any(|differs| differs);
            settings.nodes = if is_same { Arc::clone(&current.0.nodes) } else { Arc::new(nodes) };
            self.replace(&mut current, settings);
        });
    }

    /// Prints what people should know, and lets the names of the Sentinels be resolved again if too few answer.
    fn report_masters(&self) {
        let learned = self.with_masters(|masters| (masters.take_news(), masters.are_in_doubt()));
        let Some((news, are_in_doubt)) = learned else { return };
        if are_in_doubt {
            self.doubt_seeds();
        }
        self.report_lines(news);
    }

    /// The Sentinels have these addresses now, in the order in which they are configured. `None`: this one has none.
    /// Without effect if there are no Sentinels.
    pub fn set_sentinels(&self, addresses: Vec<Option<SocketAddr>>) {
        self.with_masters(|masters| masters.set_sentinels(addresses));
    }

    /// Whether the masters of all nodes have been known. Without Sentinels they are.
    pub fn knows_masters(&self) -> bool {
        self.with_masters(|masters| masters.are_known()).unwrap_or(true)
    }

    /// Why the master of a node is not known.
    pub(crate) fn why_no_master(&self, node: usize) -> String {
        self.with_masters(|masters| masters.why(node)).unwrap_or_default()
    }

    /// What the Sentinels say, for operators. `None`: there are none.
    pub(crate) fn sentinel_counts(&self, now: Instant) -> Option<SentinelCounts> {
        self.with_masters(|masters| masters.counts(now, self.started))
    }

    fn with_masters<T>(&self, with: impl FnOnce(&mut Masters) -> T) -> Option<T> {
        let masters = self.masters.as_ref()?;
        let mut masters: MutexGuard<'_, Masters> =
            masters.lock().unwrap_or_else(PoisonError::into_inner);
        Some(with(&mut masters))
    }
}
