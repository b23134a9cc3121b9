//! The master of one slot of a Redis Cluster, for those who need no other.
//!
//! All nodes report the same current epoch soon after a change, but some of them the slot's new owner late, e.g. because
//! they do not reach it. So, besides the rules of [`Topology`], a view is not used in which the owner of the slot has a
//! lower configuration epoch than the present one: by this rule the nodes themselves decide whose slot it is (Redis Cluster
//! specification, "Hash slots configuration propagation").

use super::{topology::Topology, view::View, watch::News};
use regatta_keyspace::map::slot;
use std::{
    collections::BTreeMap,
    mem,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How long the master is not confirmed until that is reported: longer than a failover takes, as a rule.
const PATIENCE: Duration = Duration::from_secs(10);

/// Finds out which node is the master of the slot of a key. Without sockets and clocks: the caller asks the nodes.
#[derive(Debug)]
pub struct SlotMaster {
    topology: Topology,
    slot: u16,
    /// The highest configuration epoch of a master.
    epoch: u64,
    confirmed_at: Option<Instant>,
    /// Why each node has reported no view that can be used, before the first one that has.
    failures: BTreeMap<SocketAddr, String>,
    /// It was reported that it is not confirmed.
    is_missed: bool,
    is_in_doubt: bool,
    switches: u64,
    news: Vec<String>,
}

impl SlotMaster {
    /// The commands to send to a node that is asked.
    pub const QUESTIONS: [[&[u8]; 2]; 3] =
        [[b"CLUSTER", b"INFO"], [b"CLUSTER", b"SLOTS"], [b"CLUSTER", b"NODES"]];

    /// That of the slot of this key.
    pub fn new(key: &[u8]) -> SlotMaster {
        SlotMaster {
            topology: Topology::new(Vec::new()),
            slot: slot(key),
            epoch: 0,
            confirmed_at: None,
            failures: BTreeMap::new(),
            is_missed: false,
            is_in_doubt: true,
            switches: 0,
            news: Vec::new(),
        }
    }

    /// The nodes to begin with have these addresses now. Without effect if there are none.
    pub fn set_seeds(&mut self, seeds: Vec<SocketAddr>) {
        self.topology.set_seeds(seeds);
    }

    /// There is a reason to ask.
    pub fn want(&mut self) {
        self.topology.want(None);
    }

    /// When [`SlotMaster::ask`] returns a node. `None`: now, or once the question in flight is over.
    pub fn due(&self) -> Option<Instant> {
        self.topology.due()
    }

    /// Returns the node to ask, if it is time to and one is known. The caller must report the outcome.
    pub fn ask(&mut self, now: Instant) -> Option<SocketAddr> {
        self.topology.has_candidates().then(|| self.topology.ask(now)).flatten()
    }

    /// This node was asked, and these are its replies to [`SlotMaster::QUESTIONS`], or why there are none. `jitter`: a random
    /// number from 0 to 1.
    pub fn answered(
        &mut self,
        from: SocketAddr,
        replies: Result<[Vec<u8>; 3], String>,
        now: Instant,
        jitter: f64,
    ) {
        let before = self.address();
        let view = replies.and_then(|replies| View::read(&replies, from));
        let view = view.and_then(|view| self.checked(view));
        let view = view.map_err(|why| format!("node {from}: {why}"));
        if self.topology.adopted().is_none() {
            self.failures.extend(view.as_ref().err().map(|why| (from, why.clone())));
        }
        self.topology.answered(view, now, jitter);
        let is_foreign = |news: &News| matches!(news, News::Foreign(_));
        let news = self.topology.take_news();
        self.news.extend(news.iter().filter(|news| is_foreign(news)).map(News::line));
        self.follow(before);
        let is_new = self.topology.last_view().is_some_and(|(_, at)| at == now);
        let is_confirmed = is_new && self.topology.adopted().is_some_and(|view| view.is_ok);
        if is_confirmed && self.address().is_some() {
            self.confirmed_at = Some(now);
            if mem::take(&mut self.is_missed) {
                self.news.push("the cluster confirms the master again".to_owned());
            }
            return;
        }
        self.is_in_doubt = true;
        if !self.is_missed && self.confirmed_at.is_some_and(|at| now > at + PATIENCE) {
            self.is_missed = true;
            let why = self.why();
            self.news.push(format!("no node of a cluster that works confirms the master: {why}"));
        }
    }

    /// A view that may be used.
    fn checked(&self, view: View) -> Result<View, String> {
        let is_known = self.topology.adopted().is_some_and(|known| view.is_of_cluster_of(known));
        match view.master_of(self.slot) {
            Some((at, epoch)) if is_known && epoch < self.epoch => Err(format!(
                "its master {at} of slot {} has configuration epoch {epoch}, less than {}",
                self.slot, self.epoch
            )),
            _ => Ok(view),
        }
    }

    /// The master by the last view, and its configuration epoch.
    fn master(&self) -> Option<(SocketAddr, u64)> {
        self.topology.adopted()?.master_of(self.slot)
    }

    /// Notices whether the last view has another master than the view before.
    fn follow(&mut self, before: Option<SocketAddr>) {
        let Some((at, epoch)) = self.master() else { return };
        self.epoch = epoch.max(self.epoch);
        if before != Some(at) {
            self.switches += u64::from(before.is_some());
            self.news.push(format!("the master of slot {} is {at}", self.slot));
        }
    }

    /// The address of the master. `None`: no node has reported one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.master().map(|(at, _)| at)
    }

    /// When a node that finds that the cluster works was asked for the last time, and reported it.
    pub fn confirmed_at(&self) -> Option<Instant> {
        self.confirmed_at
    }

    /// How often another node became the master.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// Why there is no address, or why it is not confirmed. While there was none, all nodes are named, so that the text does
    /// not change with each question.
    pub fn why(&self) -> String {
        if !self.topology.has_candidates() {
            return "the names of its nodes cannot be resolved".to_owned();
        }
        let is_gone = self.topology.adopted().is_some() && self.master().is_none();
        if is_gone {
            return format!("slot {} has no master with an IP address", self.slot);
        }
        match self.topology.adopted() {
            None if !self.failures.is_empty() => {
                self.failures.values().map(String::as_str).collect::<Vec<_>>().join("; ")
            }
            _ => self.topology.why().to_owned(),
        }
    }

    /// Returns whether a node did not confirm the master since the last call, or none was asked: their names may have other
    /// addresses now.
    pub fn is_in_doubt(&mut self) -> bool {
        mem::take(&mut self.is_in_doubt) || !self.topology.has_candidates()
    }

    /// Returns lines that people should read, since the last call.
    pub fn take_news(&mut self) -> Vec<String> {
        mem::take(&mut self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    /// What a node reports: the current epoch, and the ranges of slots with the ports of their masters, whose configuration
    /// epochs are 10, 20 and 30. The names of nodes begin with this letter.
    fn replies_of(name: char, state: &str, epoch: u64, ranges: &[(u16, u16, u16)]) -> [Vec<u8>; 3] {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let info = format!("cluster_state:{state}\r\ncluster_current_epoch:{epoch}\r\n");
        let (mut slots, mut nodes) = (format!("*{}\r\n", ranges.len()), String::new());
        for (first, last, port) in ranges {
            let (ip, id) = (bulk("10.0.0.1"), bulk(&format!("{name}{port}")));
            slots += &format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n{ip}:{port}\r\n{id}");
        }
        for port in 1..=3 {
            nodes += &format!("{name}{port} 10.0.0.1:{port}@1 master - 0 0 {port}0 connected\n");
        }
        [bulk(&info), slots, bulk(&nodes)].map(String::into_bytes)
    }

    fn replies(epoch: u64, ranges: &[(u16, u16, u16)]) -> [Vec<u8>; 3] {
        replies_of('n', "ok", epoch, ranges)
    }

    /// The slot of "foo" is 12,182 (Redis Cluster specification).
    struct World {
        master: SlotMaster,
        now: Instant,
    }

    impl World {
        fn new() -> World {
            let mut master = SlotMaster::new(b"foo");
            master.set_seeds(vec![at(1)]);
            World { master, now: Instant::now() }
        }

        /// A node answers two seconds later.
        fn answers(&mut self, replies: Result<[Vec<u8>; 3], String>) -> Option<SocketAddr> {
            self.now += Duration::from_secs(2);
            self.master.want();
            let node = self.master.ask(self.now).expect("a node");
            assert_eq!(self.master.ask(self.now), None, "one question at a time");
            self.master.answered(node, replies, self.now, 0.5);
            self.master.address()
        }
    }

    #[test]
    fn the_master_of_a_slot_is_followed_and_an_older_view_is_not() {
        let mut world = World::new();
        for (epoch, ranges, expected) in [
            (5, vec![(0, 16_383, 1)], Some(1)),
            (6, vec![(0, 12_181, 1), (12_182, 16_383, 2)], Some(2)),
            (5, vec![(0, 16_383, 3)], Some(2)),
            (7, vec![(12_182, 12_182, 3), (0, 12_181, 1)], Some(3)),
            (8, vec![(0, 12_181, 1), (12_183, 16_383, 2)], None),
            (9, vec![(0, 16_383, 3)], Some(3)),
        ] {
            assert_eq!(world.answers(Ok(replies(epoch, &ranges))), expected.map(at), "{epoch}");
        }
        assert_eq!(world.master.switches(), 2, "not counted: those from and to none");
        assert_eq!(world.master.confirmed_at(), Some(world.now));
        let names =
            ["1", "2", "3", "3"].map(|port| format!("the master of slot 12182 is 10.0.0.1:{port}"));
        assert_eq!(world.master.take_news(), names);
    }

    /// A node that does not reach the new owner knows the new epoch from others, and still reports the old owner.
    #[test]
    fn an_owner_with_an_older_configuration_is_not_followed_at_the_same_epoch() {
        let mut world = World::new();
        world.answers(Ok(replies(5, &[(0, 16_383, 2)])));
        for _ in 0..9 {
            assert_eq!(world.answers(Ok(replies(6, &[(0, 16_383, 3)]))), Some(at(3)));
            assert_eq!(world.answers(Ok(replies(6, &[(0, 16_383, 2)]))), Some(at(3)));
        }
        assert_eq!(world.master.switches(), 1);
        // All of the cluster's nodes are new: the proxy's rule holds.
        let other = replies_of('o', "ok", 99, &[(0, 16_383, 1)]);
        assert_eq!(world.answers(Ok(other)), Some(at(3)));
        let news = world.master.take_news();
        assert!(news.last().is_some_and(|line| line.contains("is of another cluster")), "{news:?}");
    }

    /// A master that is cut off from the others answers, and finds that the cluster does not work.
    #[test]
    fn a_node_that_is_cut_off_does_not_confirm_the_master() {
        let mut world = World::new();
        let all = [(0, 16_383, 1)];
        assert_eq!(world.answers(Ok(replies(5, &all))), Some(at(1)));
        let confirmed_at = world.now;
        world.master.take_news();
        assert!(world.master.is_in_doubt(), "its names were not resolved yet");
        for _ in 0..20 {
            let cut_off = replies_of('n', "fail", 5, &all);
            assert_eq!(world.answers(Ok(cut_off)), Some(at(1)));
            assert!(world.master.is_in_doubt() && !world.master.is_in_doubt());
            for _ in 0..2 {
                assert_eq!(world.answers(Err("it is mute".to_owned())), Some(at(1)));
            }
            assert_eq!(world.master.confirmed_at(), Some(confirmed_at));
        }
        let news = world.master.take_news();
        let [line] = &news[..] else { panic!("{news:?}") };
        assert!(
            line.starts_with("no node of a cluster that works confirms the master: node 10.0.0.1:"),
            "{line}"
        );
        assert_eq!(world.answers(Ok(replies(5, &all))), Some(at(1)));
        assert_eq!(world.master.confirmed_at(), Some(world.now));
        assert_eq!(world.master.take_news(), ["the cluster confirms the master again"]);
    }

    #[test]
    fn the_reason_names_all_nodes_and_stays_the_same_while_they_fail() {
        let mut master = SlotMaster::new(b"foo");
        master.set_seeds(vec![at(1), at(2)]);
        let mut now = Instant::now();
        let mut reasons = Vec::new();
        for _ in 0..6 {
            now += Duration::from_secs(2);
            master.want();
            let node = master.ask(now).expect("a node");
            master.answered(node, Err("it is mute".to_owned()), now, 0.5);
            reasons.push(master.why());
        }
        let both = "node 10.0.0.1:1: it is mute; node 10.0.0.1:2: it is mute";
        assert!(reasons[1..].iter().all(|why| why == both), "{reasons:?}");
    }

    #[test]
    fn a_reason_is_given_while_there_is_none() {
        let (mut master, now) = (SlotMaster::new(b"foo"), Instant::now());
        assert_eq!((master.ask(now), master.address()), (None, None));
        assert!(master.is_in_doubt() && master.is_in_doubt(), "as long as no node is known");
        assert!(master.why().contains("cannot be resolved"));
        master.set_seeds(vec![at(1)]);
        let node = master.ask(now).expect("a node");
        let refusal = b"-ERR This instance has cluster support disabled\r\n";
        master.answered(node, Ok([0, 1, 2].map(|_| refusal.to_vec())), now, 0.5);
        assert!(master.why().contains("10.0.0.1:1: ERR This instance"), "{}", master.why());
        assert_eq!(master.take_news(), [""; 0], "the hub says it");
        let later = master.due().expect("again");
        assert!(later > now);
        let node = master.ask(later).expect("a node");
        master.answered(node, Ok(replies(1, &[(0, 0, 1)])), later, 0.5);
        assert_eq!(master.why(), "slot 12182 has no master with an IP address");
        assert_eq!(master.confirmed_at(), None);
    }
}
