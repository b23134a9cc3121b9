//! What a node reports of its cluster: CLUSTER INFO, CLUSTER SLOTS and CLUSTER NODES.
//!
//! CLUSTER SHARDS is not used: it shows the slots of a master that is down as if they had no owner (redis#13414). Of CLUSTER
//! NODES the names, addresses and flags count: a node to which the first slot is being moved has none yet, and the names
//! show whether two views are of the same cluster.

use regatta_keyspace::map::{MAX_MASTERS, SLOTS};
use regatta_proto::resp::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

/// Maximum number of nodes, replicas included, whose addresses are remembered.
const MAX_NODES: usize = 1024;

/// Maximum length of the name of a node in the cluster, which has 40 digits, in bytes.
const MAX_ID: usize = 64;

/// Maximum length of an error of a node that is shown, in bytes.
const MAX_ERROR: usize = 200;

/// What a node reports of its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The cluster works, according to the node.
    pub(crate) is_ok: bool,
    /// The current epoch. It is higher after each failover.
    pub(crate) epoch: u64,
    pub(crate) ranges: Vec<Range>,
    /// The names of all nodes, also of replicas and of nodes that are down.
    pub(crate) ids: BTreeSet<Vec<u8>>,
    /// The addresses of all nodes, also of replicas and of masters without slots: they can be asked for the slots.
    pub(crate) addresses: BTreeSet<SocketAddr>,
    /// Those of masters that work, according to the node: only they can be getting slots.
    pub(crate) masters: BTreeSet<SocketAddr>,
    /// The configuration epochs by the names of nodes. A node that gets a slot has a higher one than all others.
    pub(crate) epochs: BTreeMap<Vec<u8>, u64>,
}

/// Slots with their master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    /// The name of the master in the cluster.
    pub(crate) id: Vec<u8>,
    pub(crate) address: SocketAddr,
}

impl View {
    /// Reads the replies to CLUSTER INFO, CLUSTER SLOTS and CLUSTER NODES of the node at this address.
    ///
    /// # Errors
    /// Returns why they cannot be used.
    pub(crate) fn read(replies: &[Vec<u8>; 3], from: SocketAddr) -> Result<View, String> {
        let [info, slots, nodes] = replies;
        let (info, nodes) = (text(info, "INFO")?, text(nodes, "NODES")?);
        if let Some((Value::Error(text), _)) = Value::read(slots) {
            return Err(shown(text));
        }
        let field = |name: &str| {
            let mut lines = info.split(|byte| *byte == b'\n');
            lines.find_map(|line| {
                let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
                std::str::from_utf8(value.trim_ascii()).ok()
            })
        };
        let epoch = field("cluster_current_epoch").and_then(|text| text.parse().ok());
        let epoch = epoch.ok_or("its reply to CLUSTER INFO has no epoch")?;
        let is_ok = field("cluster_state") == Some("ok");
        let mut view = View { is_ok, epoch, ..View::default() };
        for line in nodes.split(|byte| *byte == b'\n').take(MAX_NODES) {
            view.add_node(line, from);
        }
        let read = Reader(slots).slots(from, &mut view);
        read.ok_or("its reply to CLUSTER SLOTS is malformed, or too long")?;
        let ids: BTreeSet<&[u8]> = view.ranges.iter().map(|range| &range.id[..]).collect();
        match ids.len() {
            0 => Err("it knows no master that has slots and an IP address".into()),
            1..=MAX_MASTERS => Ok(view),
            more => {
                Err(format!("the cluster has {more} masters; at most {MAX_MASTERS} are possible"))
            }
        }
    }

    /// Adds a line of CLUSTER NODES: `ID IP:PORT@BUS,HOST FLAGS …`. A node in a handshake is not one of the cluster yet, and
    /// its name changes.
    fn add_node(&mut self, line: &[u8], from: SocketAddr) {
        let mut words = line.split(|byte| *byte == b' ');
        let (Some(id), Some(address), Some(flags)) = (words.next(), words.next(), words.next())
        else {
            return;
        };
        let has = |name: &[u8]| flags.split(|byte| *byte == b',').any(|flag| flag == name);
        if has(b"handshake") || !(1..=MAX_ID).contains(&id.len()) {
            return;
        }
        self.ids.insert(id.to_vec());
        // After the flags: its master, two times, and the epoch.
        let epoch = words.nth(3).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
        self.epochs.extend(epoch.map(|epoch| (id.to_vec(), epoch)));
        if let Some(address) = node_address(address, from).filter(|_| !has(b"noaddr")) {
            self.addresses.insert(address);
            if has(b"master") && !has(b"fail") {
                self.masters.insert(address);
            }
        }
    }

    /// The address of the master of a slot, and its configuration epoch (0: not known).
    pub(crate) fn master_of(&self, slot: u16) -> Option<(SocketAddr, u64)> {
        let range = self.ranges.iter().find(|range| (range.first..=range.last).contains(&slot))?;
        Some((range.address, self.epochs.get(&range.id).copied().unwrap_or(0)))
    }

    /// Whether this view is of the same cluster as an earlier one: it has at least half of the nodes of that one, or of its
    /// masters with slots. Replicas come and go; an address may have been taken over by a node of another cluster.
    pub(crate) fn is_of_cluster_of(&self, earlier: &View) -> bool {
        let has_half = |ids: &BTreeSet<&[u8]>| {
            2 * ids.iter().filter(|id| self.ids.contains(**id)).count() >= ids.len()
        };
        has_half(&earlier.ids.iter().map(|id| &id[..]).collect())
            || has_half(&earlier.ranges.iter().map(|range| &range.id[..]).collect())
    }
}

/// The text in the reply to CLUSTER INFO or CLUSTER NODES.
fn text<'a>(reply: &'a [u8], of: &str) -> Result<&'a [u8], String> {
    match Value::read(reply) {
        Some((Value::Bulk(text), _)) => Ok(text),
        Some((Value::Error(text), _)) => Err(shown(text)),
        _ => Err(format!("its reply to CLUSTER {of} is malformed")),
    }
}

/// An error of a node, for people.
fn shown(text: &[u8]) -> String {
    text[..text.len().min(MAX_ERROR)].escape_ascii().to_string()
}

/// Reads an address of CLUSTER NODES: `IP:PORT@BUS,HOST`.
fn node_address(word: &[u8], from: SocketAddr) -> Option<SocketAddr> {
    let word = std::str::from_utf8(word).ok()?;
    let (host, port) = word.split(['@', ',']).next()?.rsplit_once(':')?;
    let ip = if host.is_empty() { from.ip() } else { host.parse().ok()? };
    port.parse().ok().filter(|port| *port > 0).map(|port| SocketAddr::new(ip, port))
}

/// Reads one value after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<Value<'a>> {
        let (value, taken) = Value::read(self.0)?;
        self.0 = self.0.get(taken..)?;
        Some(value)
    }

    fn array(&mut self) -> Option<usize> {
        match self.next()? {
            Value::Elements(b'*', count, _) => Some(count),
            _ => None,
        }
    }

    /// Skips this many values with all that is in them.
    fn skip(&mut self, mut count: usize) -> Option<()> {
        while count > 0 {
            count -= 1;
            if let Value::Elements(_, more, _) = self.next()? {
                count = count.checked_add(more)?;
            }
        }
        Some(())
    }

    fn slot(&mut self) -> Option<u16> {
        match self.next()? {
            Value::Integer(number) => u16::try_from(number).ok().filter(|slot| *slot < SLOTS),
            _ => None,
        }
    }

    fn slots(&mut self, from: SocketAddr, view: &mut View) -> Option<()> {
        let ranges = self.array().filter(|ranges| *ranges <= usize::from(SLOTS))?;
        for _ in 0..ranges {
            let fields = self.array().filter(|fields| *fields >= 3)?;
            let (first, last) = (self.slot()?, self.slot()?);
            for number in 0..fields - 2 {
                let Some((address, id)) = self.node(from)? else { continue };
                // The first one is the master.
                if number == 0 {
                    view.ranges.push(Range { first, last, id, address });
                }
            }
        }
        Some(())
    }

    /// Reads a node. `Some(None)`: it has no address that can be used.
    fn node(&mut self, from: SocketAddr) -> Option<Option<(SocketAddr, Vec<u8>)>> {
        let fields = self.array().filter(|fields| *fields >= 3)?;
        let ip = match self.next()? {
            Value::Null | Value::Bulk(b"") => Some(from.ip()),
            Value::Bulk(text) => std::str::from_utf8(text).ok()?.parse::<IpAddr>().ok(),
            _ => return None,
        };
        let Value::Integer(port) = self.next()? else { return None };
        let Value::Bulk(id) = self.next()? else { return None };
        self.skip(fields - 3)?;
        let port = u16::try_from(port).ok().filter(|port| *port > 0);
        let is_id = (1..=MAX_ID).contains(&id.len());
        Some(
            ip.zip(port)
                .filter(|_| is_id)
                .map(|(ip, port)| (SocketAddr::new(ip, port), id.to_vec())),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "$48\r\ncluster_state:ok\r\ncluster_current_epoch:6\r\nx:1\r\n\r\n";

    fn node(host: &str, port: u16, id: &str) -> String {
        let host = if host == "null" { "$-1\r\n".into() } else { bulk(host) };
        format!("*4\r\n{host}:{port}\r\n{}*2\r\n{}{}", bulk(id), bulk("hostname"), bulk("h"))
    }

    fn bulk(text: &str) -> String {
        format!("${}\r\n{text}\r\n", text.len())
    }

    fn read(slots: &str) -> Result<View, String> {
        let nodes = "a 10.0.0.1:7001@17001 myself,master - 0 0 6 connected 0-99\nb ::1:7002@1,host slave a 0 1700000000000 5 connected\nc :0@0 master,noaddr\n\
                     d :7003@1 master,fail?\ne :7004@1 master,fail -\nf :7005@1 handshake -\ng :7006@1\n";
        let replies = [INFO.to_string(), slots.to_string(), bulk(nodes)].map(String::into_bytes);
        View::read(&replies, "10.0.0.9:1".parse().unwrap())
    }

    #[test]
    fn masters_and_replicas_are_read() {
        let slots = format!(
            "*3\r\n*4\r\n:0\r\n:99\r\n{}{}*3\r\n:100\r\n:200\r\n{}*3\r\n:201\r\n:300\r\n{}",
            node("10.0.0.1", 7001, "a"),
            node("::1", 7002, "b"),
            node("", 7003, "c"),
            node("null", 7004, "d"),
        );
        let view = read(&slots).unwrap();
        assert_eq!((view.is_ok, view.epoch), (true, 6));
        let of = |range: &Range| (range.first, range.last, range.address.to_string());
        let ranges: Vec<_> = view.ranges.iter().map(of).collect();
        let expected =
            [(0, 99, "10.0.0.1:7001"), (100, 200, "10.0.0.9:7003"), (201, 300, "10.0.0.9:7004")];
        assert_eq!(ranges, expected.map(|(first, last, at)| (first, last, at.to_string())));
        let all: Vec<String> = view.addresses.iter().map(SocketAddr::to_string).collect();
        assert_eq!(all, ["10.0.0.1:7001", "10.0.0.9:7003", "10.0.0.9:7004", "[::1]:7002"]);
        let masters: Vec<String> = view.masters.iter().map(SocketAddr::to_string).collect();
        assert_eq!(masters, ["10.0.0.1:7001", "10.0.0.9:7003"], "without those that failed");
        assert_eq!(view.ids.iter().map(|id| &id[..]).collect::<Vec<_>>().concat(), b"abcde");
        let epochs: Vec<_> = view.epochs.iter().map(|(id, epoch)| (id[0], *epoch)).collect();
        assert_eq!(epochs, [(b'a', 6), (b'b', 5)]);
        let master = |slot| view.master_of(slot).map(|(at, epoch)| (at.port(), epoch));
        assert_eq!(
            [0, 99, 100, 301].map(master),
            [Some((7001, 6)), Some((7001, 6)), Some((7003, 0)), None]
        );
    }

    #[test]
    fn a_cluster_is_known_by_half_of_its_nodes_or_masters() {
        let view = |ids: &str, masters: &str| View {
            ids: ids.bytes().map(|id| vec![id]).collect(),
            ranges: masters
                .bytes()
                .map(|id| Range {
                    first: 0,
                    last: 9,
                    id: vec![id],
                    address: ([10, 0, 0, 1], 1).into(),
                })
                .collect(),
            ..View::default()
        };
        let before = view("abcdefgh", "abc");
        for (ids, masters, expected) in [
            ("abcdefgh", "abc", true),
            ("efgh", "efgh", true),
            ("abc", "abc", true),
            ("abxyz", "ab", true),
            // A node was reset and belongs to another cluster.
            ("axyz", "xyz", false),
            ("efgx", "x", false),
            ("vwxyz", "vwx", false),
            ("", "", false),
        ] {
            assert_eq!(view(ids, masters).is_of_cluster_of(&before), expected, "{ids}");
        }
    }

    #[test]
    fn a_master_without_a_usable_address_is_left_out() {
        let slots = |host| format!("*1\r\n*3\r\n:0\r\n:9\r\n{}", node(host, 1, "a"));
        for host in ["?", "redis-1", "10.0.0.1.1"] {
            assert!(read(&slots(host)).unwrap_err().contains("no master"), "{host}");
        }
    }

    #[test]
    fn what_is_malformed_or_an_error_is_refused() {
        let good = format!("*1\r\n*3\r\n:0\r\n:9\r\n{}", node("1.1.1.1", 1, "a"));
        assert!(read(&good).is_ok());
        for end in 1..good.len() {
            assert!(read(&good[..end]).is_err(), "{end}");
        }
        for wrong in [
            "*0\r\n".to_string(),
            "*-1\r\n".into(),
            "*99999999\r\n".into(),
            good.replace(":9", ":16384"),
            good.replace(":0", ":-1"),
            good.replace(":1\r\n", ":0\r\n"),
            good.replace(&bulk("a"), &bulk(&"a".repeat(65))),
            "-NOPERM no\r\n".into(),
        ] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
        let from = "10.0.0.9:1".parse().unwrap();
        let error = |info: &str| {
            let replies = [info, &good, "$0\r\n\r\n"].map(|text| text.as_bytes().to_vec());
            View::read(&replies, from).unwrap_err()
        };
        assert_eq!(error("-ERR no cluster\r\n"), "ERR no cluster");
        assert_eq!(error(&format!("-{}\r\n", "x".repeat(999))).len(), MAX_ERROR);
        assert!(error("$3\r\nx:1\r\n").contains("no epoch"));
        assert!(error(":1\r\n").contains("malformed"));
    }

    #[test]
    fn the_number_of_masters_has_a_limit() {
        let slots = |count: usize| {
            let range =
                |n: usize| format!("*3\r\n:{n}\r\n:{n}\r\n{}", node("1.1.1.1", 1, &n.to_string()));
            format!("*{count}\r\n{}", (0..count).map(range).collect::<String>())
        };
        assert!(read(&slots(MAX_MASTERS)).is_ok());
        assert!(read(&slots(MAX_MASTERS + 1)).unwrap_err().contains("129 masters"));
    }
}
