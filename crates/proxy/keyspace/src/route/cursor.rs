//! Cursors of SCAN over several nodes.
//!
//! The proxy scans one node after the other. A client's cursor contains the node's own cursor in
//! the lower 48 bits and the node's number above. Bit 63 is 0, so clients may read the cursor as a
//! signed number. A node's cursor counts the buckets of a hash table, so 48 bits suffice; if a
//! cursor exceeds them, the client gets an error. With a single node, the client gets the node's own
//! cursors, unchanged.
//!
//! In a cluster, the number is that in the order of slots, in 7 bits, and 8 bits above it are the stamp of the map: a cursor
//! of other slots is refused, because some of them may have moved to a node that was already scanned.

use super::refusal;
use crate::map::{MAX_MASTERS, Map};

/// Number of bits for the node's own cursor.
const BITS: u32 = 48;

/// Number of bits for the node's number in a cluster. The stamp of the map is above.
const NUMBER_BITS: u32 = 7;

/// A position in a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The node to ask next.
    pub node: usize,
    /// The cursor for that node.
    pub cursor: u64,
    /// The node's place in the order of the scan, below `MAX_NODES`. Every decision has room for a cursor, so it is small.
    number: u16,
    /// In a cluster, that of the map.
    stamp: Option<u8>,
}

impl Cursor {
    /// Parses a client's cursor: decimal digits, read as Redis reads them (`strtoul`). So a zero byte
    /// ends the text, and an empty text is 0.
    ///
    /// # Errors
    /// Returns the error for the client, if the cursor is not valid for this map.
    pub fn parse(text: &[u8], map: &Map) -> Result<Cursor, Vec<u8>> {
        let raw = number(text).ok_or_else(refusal::invalid_cursor)?;
        let Some(cluster) = map.cluster() else {
            let cursor = Self::of_nodes(raw, map.nodes());
            return cursor.ok_or_else(refusal::invalid_cursor);
        };
        let stamp = Some(cluster.stamp());
        let number = (raw >> BITS) as usize % MAX_MASTERS;
        let (node, cursor) = (cluster.order().get(number).copied(), raw & ((1 << BITS) - 1));
        let number = number as u16;
        let is_current = raw == 0 || raw >> (BITS + NUMBER_BITS) == u64::from(cluster.stamp());
        let node = node.filter(|_| is_current).ok_or_else(refusal::moved_scan)?;
        Ok(Cursor { node, cursor, number, stamp })
    }

    fn of_nodes(raw: u64, nodes: usize) -> Option<Cursor> {
        if nodes == 1 {
            return Some(Cursor { node: 0, cursor: raw, number: 0, stamp: None });
        }
        let node = usize::try_from(raw >> BITS).ok().filter(|node| *node < nodes)?;
        let number = node as u16;
        Some(Cursor { node, cursor: raw & ((1 << BITS) - 1), number, stamp: None })
    }

    /// Returns the client's next cursor, after the node replied with `next`; 0 after the last of this many nodes.
    /// `None` if there are several nodes and the node's cursor does not fit.
    pub fn after(self, next: u64, nodes: usize) -> Option<u64> {
        if nodes == 1 && self.stamp.is_none() {
            return Some(next);
        }
        let stamp = u64::from(self.stamp.unwrap_or(0)) << (BITS + NUMBER_BITS);
        match next {
            0 if usize::from(self.number) + 1 >= nodes => Some(0),
            0 => Some(stamp | (u64::from(self.number) + 1) << BITS),
            _ if next >> BITS != 0 => None,
            _ => Some(stamp | u64::from(self.number) << BITS | next),
        }
    }
}

/// Reads the digits of a cursor.
fn number(text: &[u8]) -> Option<u64> {
    let text = text.split(|byte| *byte == 0).next()?;
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if text.is_empty() { Some(0) } else { std::str::from_utf8(digits).ok()?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Cluster, MAX_NODES, Slots};
    use proptest::prelude::*;

    fn read(text: &str, nodes: usize) -> Option<Cursor> {
        Cursor::parse(text.as_bytes(), &Map::new(1, Slots::even(nodes).unwrap())).ok()
    }

    fn at(node: usize, cursor: u64) -> Cursor {
        Cursor { node, cursor, number: node as u16, stamp: None }
    }

    #[test]
    fn a_scan_visits_all_nodes() {
        // Each node replies with 7, then 0.
        let (mut cursor, mut asked) = (0, Vec::new());
        loop {
            let place = read(&cursor.to_string(), 3).unwrap();
            asked.push((place.node, place.cursor));
            let next = if place.cursor == 0 { 7 } else { 0 };
            cursor = place.after(next, 3).unwrap();
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(asked, [(0, 0), (0, 7), (1, 0), (1, 7), (2, 0), (2, 7)]);
    }

    #[test]
    fn invalid_cursors_are_refused() {
        let beyond = (3_u64 << BITS).to_string();
        for wrong in ["x", "-1", "+", "++1", " 1", "1 ", "99999999999999999999", &beyond] {
            assert_eq!(read(wrong, 3), None, "{wrong}");
        }
    }

    #[test]
    fn a_cursor_is_read_like_a_number_in_c() {
        for (text, cursor) in [("", 0), ("\0x", 0), ("007", 7), ("+7", 7), ("7\0x", 7)] {
            assert_eq!(read(text, 3), Some(at(0, cursor)));
        }
    }

    #[test]
    fn a_node_cursor_that_does_not_fit_is_refused() {
        let place = at(1, 0);
        assert_eq!(place.after(1 << BITS, 3), None);
        assert_eq!(place.after((1 << BITS) - 1, 3), Some((2 << BITS) - 1));
    }

    #[test]
    fn a_single_node_keeps_its_own_cursors() {
        let cursor = read(&u64::MAX.to_string(), 1).unwrap();
        assert_eq!(cursor, at(0, u64::MAX));
        assert_eq!(cursor.after(u64::MAX, 1), Some(u64::MAX));
    }

    #[test]
    fn a_scan_of_a_cluster_ends_when_slots_move() {
        let cluster = |first: u16| {
            let ranges = [(first, 16383, 5), (0, first - 1, 9)];
            Map::new(1, Cluster::new(ranges.map(|(from, to, at)| (from, to, at, &b"name"[..]))))
        };
        let (map, other) = (cluster(100), cluster(101));
        let mut texts = vec!["0".to_string()];
        let mut asked = Vec::new();
        while texts.last().unwrap() != "0" || asked.is_empty() {
            let place = Cursor::parse(texts.last().unwrap().as_bytes(), &map).unwrap();
            asked.push((place.node, place.cursor));
            let next = if place.cursor == 0 { (1 << BITS) - 1 } else { 0 };
            texts.push(place.after(next, 2).unwrap().to_string());
        }
        assert_eq!(asked, [(9, 0), (9, (1 << BITS) - 1), (5, 0), (5, (1 << BITS) - 1)]);
        assert!(texts[1..4].iter().all(|text| text.parse::<i64>().unwrap() > 0), "{texts:?}");
        for text in &texts[1..4] {
            let error = Cursor::parse(text.as_bytes(), &other).unwrap_err();
            assert!(error.starts_with(b"SHARDMOVED "), "{}", error.escape_ascii());
        }
        let none = Map::new(1, Cluster::unknown());
        assert!(Cursor::parse(b"0", &none).is_err());
    }

    proptest! {
        #[test]
        fn a_returned_cursor_can_be_parsed(
            nodes in 2..=MAX_NODES,
            node in 0..MAX_NODES,
            next in 1_u64..1 << BITS,
        ) {
            let node = node % nodes;
            let given = at(node, 0).after(next, nodes).unwrap();
            prop_assert!(given <= i64::MAX as u64);
            prop_assert_eq!(read(&given.to_string(), nodes), Some(at(node, next)));
        }
    }
}
