//! What the proxy of a core counts for the metrics. Only that core changes its tally, so counting needs no locked
//! instruction; the page reads those of all cores.

use crate::observe::{
    class::Class,
    durations::{BUCKETS, Durations, add},
};
use regatta_keyspace::{
    command::flag,
    route::{Decision, Route},
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What a request was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To one node, and only reads.
    Read,
    /// To one node, and may write.
    Write,
    /// To one node, and has no keys or is a transaction, subscription …
    Other,
    /// To several nodes.
    Several,
    /// Answered by the proxy.
    Local,
    /// Answered by the proxy with an error.
    #[default]
    Refused,
}

impl Kind {
    /// All kinds, with their names in the metrics.
    pub(crate) const ALL: [(Kind, &'static str); 6] = [
        (Kind::Read, "read"),
        (Kind::Write, "write"),
        (Kind::Other, "other"),
        (Kind::Several, "several_nodes"),
        (Kind::Local, "local"),
        (Kind::Refused, "refused"),
    ];

    /// The kind of a request with this decision.
    #[inline]
    pub(crate) fn of(decision: &Decision) -> Kind {
        let has = |flag| decision.command.is_some_and(|command| command.has(flag));
        match decision.route {
            Route::Refused(_) => Kind::Refused,
            Route::Local(_) => Kind::Local,
            Route::Split(_) | Route::AllNodes(_) | Route::Scan(_) => Kind::Several,
            Route::OneNode(_) | Route::AnyNode | Route::Lease(..) if has(flag::WRITE) => {
                Kind::Write
            }
            Route::OneNode(_) | Route::AnyNode | Route::Lease(..) if has(flag::READONLY) => {
                Kind::Read
            }
            Route::OneNode(_) | Route::AnyNode | Route::Lease(..) => Kind::Other,
        }
    }

    /// The class of a request of this kind, if it goes to a node. What may block is known only when it is sent.
    #[inline]
    pub(crate) fn class(self, decision: &Decision) -> Class {
        let is_script = || decision.command.is_some_and(|command| command.group == "scripting");
        match self {
            Kind::Read => Class::Read,
            Kind::Write => Class::Write,
            Kind::Several => Class::SeveralNodes,
            Kind::Other if is_script() => Class::Script,
            Kind::Other | Kind::Local | Kind::Refused => Class::Other,
        }
    }
}

/// The tally of a core.
#[derive(Debug)]
pub(crate) struct Tally {
    requests: [AtomicU64; Kind::ALL.len()],
    errors: AtomicU64,
    repeats: AtomicU64,
    nodes: Vec<NodeTally>,
}

#[derive(Debug, Default)]
struct NodeTally {
    /// The replies of each class, by the time that they took.
    replies: [Durations; Class::COUNT],
    errors: AtomicU64,
    is_down: AtomicBool,
}

impl Tally {
    /// A tally for this many nodes.
    pub(crate) fn new(nodes: usize) -> Self {
        Tally {
            requests: Default::default(),
            errors: AtomicU64::new(0),
            repeats: AtomicU64::new(0),
            nodes: (0..nodes).map(|_| NodeTally::default()).collect(),
        }
    }

    /// A client has sent a request.
    #[inline]
    pub(crate) fn request(&self, kind: Kind) {
        add(&self.requests[kind as usize], 1);
    }

    /// Clients get so many errors as replies.
    #[inline]
    pub(crate) fn errors(&self, many: u64) {
        add(&self.errors, many);
    }

    /// A request that a node of a cluster has refused is sent again.
    pub(crate) fn repeat(&self) {
        add(&self.repeats, 1);
    }

    /// How often requests were sent again.
    pub(crate) fn repeats(&self) -> u64 {
        self.repeats.load(Relaxed)
    }

    /// A node has replied to a request of a client, or to its part of one, after this time.
    #[inline]
    pub(crate) fn reply(&self, node: usize, class: Class, duration_us: u64, is_error: bool) {
        let node = &self.nodes[node];
        node.replies[class as usize].add(duration_us);
        if is_error {
            add(&node.errors, 1);
        }
    }

    /// A node counts as down, or as up again.
    pub(crate) fn set_down(&self, node: usize, is_down: bool) {
        self.nodes[node].is_down.store(is_down, Relaxed);
    }

    /// The requests of a kind.
    pub(crate) fn requests_of(&self, kind: Kind) -> u64 {
        self.requests[kind as usize].load(Relaxed)
    }

    /// The errors that clients got.
    pub(crate) fn error_replies(&self) -> u64 {
        self.errors.load(Relaxed)
    }

    /// How many replies of a node were errors, and whether it is down.
    pub(crate) fn node(&self, node: usize) -> (u64, bool) {
        let NodeTally { errors, is_down, .. } = &self.nodes[node];
        (errors.load(Relaxed), is_down.load(Relaxed))
    }

    /// How long the replies of a node to requests of a class took: the number in each bucket, which together are all
    /// replies, and the sum in microseconds.
    pub(crate) fn durations(&self, node: usize, class: Class) -> ([u64; BUCKETS], u64) {
        let durations = &self.nodes[node].replies[class as usize];
        (durations.counts(), durations.sum_us())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_keyspace::{
        map::{Map, Slots},
        route::{Plan, decide},
    };

    #[test]
    fn requests_are_of_the_kind_that_their_route_says() {
        let map = Map::new(1, Slots::even(3).unwrap());
        for (line, expected) in [
            ("get a", Kind::Read),
            ("set a b", Kind::Write),
            ("blpop a 0", Kind::Write),
            ("time", Kind::Other),
            ("multi", Kind::Other),
            ("subscribe a", Kind::Other),
            ("mset a 1 b 2 c 3", Kind::Several),
            ("mget {a}1 {a}2", Kind::Read),
            ("dbsize", Kind::Several),
            ("scan 0", Kind::Several),
            ("ping", Kind::Local),
            ("get", Kind::Refused),
            ("nonsense", Kind::Refused),
        ] {
            let args: Vec<&str> = line.split(' ').collect();
            let decision = decide(&args[..], &map, &mut Plan::default());
            assert_eq!(Kind::of(&decision), expected, "{line}");
        }
        for (number, (kind, _)) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }

    #[test]
    fn requests_have_a_class() {
        let map = Map::new(1, Slots::even(3).unwrap());
        for (line, expected) in [
            ("get a", Class::Read),
            ("set a b", Class::Write),
            ("mset a 1 b 2 c 3", Class::SeveralNodes),
            ("scan 0", Class::SeveralNodes),
            ("eval x 1 a", Class::Script),
            ("fcall x 1 a", Class::Script),
            ("eval_ro x 1 a", Class::Read),
            ("time", Class::Other),
            ("multi", Class::Other),
        ] {
            let args: Vec<&str> = line.split(' ').collect();
            let decision = decide(&args[..], &map, &mut Plan::default());
            assert_eq!(Kind::of(&decision).class(&decision), expected, "{line}");
        }
    }

    #[test]
    fn what_is_counted_is_read() {
        let tally = Tally::new(2);
        tally.request(Kind::Read);
        tally.request(Kind::Read);
        tally.request(Kind::Refused);
        tally.errors(1);
        tally.errors(2);
        tally.repeat();
        tally.reply(1, Class::Read, 150, false);
        tally.reply(1, Class::Other, 7, true);
        tally.set_down(0, true);
        assert_eq!((tally.requests_of(Kind::Read), tally.requests_of(Kind::Refused)), (2, 1));
        assert_eq!((tally.requests_of(Kind::Write), tally.error_replies()), (0, 3));
        assert_eq!(tally.repeats(), 1);
        assert_eq!((tally.node(0), tally.node(1)), ((0, true), (1, false)));
        let (counts, sum_us) = tally.durations(1, Class::Read);
        assert_eq!((counts[1], counts.iter().sum::<u64>(), sum_us), (1, 1, 150));
        assert_eq!(tally.durations(1, Class::Write), ([0; BUCKETS], 0));
        tally.set_down(0, false);
        assert_eq!(tally.node(0), (0, false));
    }
}
