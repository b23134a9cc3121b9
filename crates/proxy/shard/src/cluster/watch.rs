//! What people learn about the slots of a cluster: when they become known or unknown, and why. Each once, not at every
//! question. Without clocks.

use super::view::View;
use std::{
    collections::BTreeSet,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How long no view is adopted until that is reported: a failover takes less, as a rule.
const PATIENCE: Duration = Duration::from_secs(3);

/// What people should learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The slots are known, for the first time or again.
    Known { epoch: u64, masters: usize },
    /// No node reports slots that can be used, for this reason.
    Unknown(String),
    /// The node at this address is of another cluster.
    Foreign(SocketAddr),
}

impl News {
    /// The line for people.
    pub(crate) fn line(&self) -> String {
        match self {
            News::Known { epoch, masters } => {
                format!("the slots are known: epoch {epoch}, masters with slots: {masters}")
            }
            News::Unknown(why) => format!("no node reports slots that can be used: {why}"),
            News::Foreign(node) => {
                format!("node {node} is of another cluster; what it reports is not used")
            }
        }
    }
}

/// What was reported.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    adopted_at: Option<Instant>,
    /// Since when no view was adopted.
    failing_since: Option<Instant>,
    /// What was reported last. `None`: nothing.
    is_known: Option<bool>,
    foreign: BTreeSet<SocketAddr>,
    news: Vec<News>,
}

impl Watch {
    /// A view of this node was adopted.
    pub(crate) fn adopted(&mut self, now: Instant, from: Option<SocketAddr>, view: &View) {
        (self.adopted_at, self.failing_since) = (Some(now), None);
        // One that left its cluster may come back.
        if let Some(from) = from {
            self.foreign.remove(&from);
        }
        if self.is_known.replace(true) != Some(true) {
            let masters: BTreeSet<&[u8]> = view.ranges.iter().map(|range| &range.id[..]).collect();
            self.news.push(News::Known { epoch: view.epoch, masters: masters.len() });
        }
    }

    /// A node has reported no view that can be used. `is_last`: nor has any other one.
    pub(crate) fn failed(&mut self, now: Instant, is_last: bool, why: &str) {
        let since = *self.failing_since.get_or_insert(now);
        let is_over = self.is_known.is_none() && is_last || now >= since + PATIENCE;
        if is_over && self.is_known != Some(false) {
            self.is_known = Some(false);
            self.news.push(News::Unknown(why.to_owned()));
        }
    }

    /// The view of this node was refused, because it is of another cluster.
    pub(crate) fn is_foreign(&mut self, node: Option<SocketAddr>) {
        if let Some(node) = node
            && self.foreign.insert(node)
        {
            self.news.push(News::Foreign(node));
        }
    }

    /// When a view was adopted last.
    pub(crate) fn adopted_at(&self) -> Option<Instant> {
        self.adopted_at
    }

    /// Returns what was not returned yet.
    pub(crate) fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_reported_once() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        watch.failed(at(0), false, "a");
        assert_eq!(watch.take_news(), [], "others were not asked");
        watch.failed(at(10), true, "b");
        watch.failed(at(5000), true, "c");
        assert_eq!(watch.take_news(), [News::Unknown("b".into())]);
        let view = View { epoch: 7, ..View::default() };
        watch.adopted(at(6000), None, &view);
        watch.adopted(at(7000), None, &view);
        assert_eq!(watch.take_news(), [News::Known { epoch: 7, masters: 0 }]);
        // A failover.
        watch.failed(at(8000), true, "d");
        watch.failed(at(10_900), true, "d");
        watch.adopted(at(11_000), None, &view);
        assert_eq!(watch.take_news(), []);
        watch.failed(at(12_000), false, "e");
        watch.failed(at(15_000), false, "f");
        watch.failed(at(16_000), true, "g");
        assert_eq!(watch.take_news(), [News::Unknown("f".into())]);
        assert_eq!(watch.adopted_at(), Some(at(11_000)));
    }

    #[test]
    fn a_node_of_another_cluster_is_reported_once() {
        let (mut watch, at) = (Watch::default(), SocketAddr::from(([10, 0, 0, 1], 1)));
        (0..3).for_each(|_| watch.is_foreign(Some(at)));
        assert_eq!(watch.take_news(), [News::Foreign(at)]);
        // The node belongs to this cluster again.
        watch.adopted(Instant::now(), Some(at), &View::default());
        watch.take_news();
        watch.is_foreign(Some(at));
        assert_eq!(watch.take_news(), [News::Foreign(at)]);
    }
}
