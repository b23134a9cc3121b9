//! Cursors of SCAN over several nodes.
//!
//! The proxy scans one node after the other. A client's cursor contains the node's own cursor in
//! the lower 48 bits and the node's number above. Bit 63 is 0, so clients may read the cursor as a
//! signed number. A node's cursor counts the buckets of a hash table, so 48 bits suffice; if a
//! cursor exceeds them, the client gets an error. With a single node, the client gets the node's own
//! cursors, unchanged.

/// Number of bits for the node's own cursor.
const BITS: u32 = 48;

/// A position in a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The node to ask next.
    pub node: usize,
    /// The cursor for that node.
    pub cursor: u64,
}

impl Cursor {
    /// Parses a client's cursor: decimal digits, read as Redis reads them (`strtoul`). So a zero byte
    /// ends the text, and an empty text is 0. Returns `None` if it is not valid for this number of
    /// nodes.
    pub fn parse(text: &[u8], nodes: usize) -> Option<Cursor> {
        let text = text.split(|byte| *byte == 0).next()?;
        let digits = text.strip_prefix(b"+").unwrap_or(text);
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let cursor: u64 =
            if text.is_empty() { 0 } else { std::str::from_utf8(digits).ok()?.parse().ok()? };
        if nodes == 1 {
            return Some(Cursor { node: 0, cursor });
        }
        let node = usize::try_from(cursor >> BITS).ok().filter(|node| *node < nodes)?;
        Some(Cursor { node, cursor: cursor & ((1 << BITS) - 1) })
    }

    /// Returns the client's next cursor, after the node replied with `next`; 0 after the last node.
    /// `None` if there are several nodes and the node's cursor does not fit.
    pub fn after(self, next: u64, nodes: usize) -> Option<u64> {
        match next {
            _ if nodes == 1 => Some(next),
            0 if self.node + 1 == nodes => Some(0),
            0 => Some((self.node as u64 + 1) << BITS),
            _ if next >> BITS != 0 => None,
            _ => Some((self.node as u64) << BITS | next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MAX_NODES;
    use proptest::prelude::*;

    #[test]
    fn a_scan_visits_all_nodes() {
        // Each node replies with 7, then 0.
        let (mut cursor, mut asked) = (0, Vec::new());
        loop {
            let place = Cursor::parse(cursor.to_string().as_bytes(), 3).unwrap();
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
            assert_eq!(Cursor::parse(wrong.as_bytes(), 3), None, "{wrong}");
        }
    }

    #[test]
    fn a_cursor_is_read_like_a_number_in_c() {
        for (text, cursor) in [("", 0), ("\0x", 0), ("007", 7), ("+7", 7), ("7\0x", 7)] {
            assert_eq!(Cursor::parse(text.as_bytes(), 3), Some(Cursor { node: 0, cursor }));
        }
    }

    #[test]
    fn a_node_cursor_that_does_not_fit_is_refused() {
        let place = Cursor { node: 1, cursor: 0 };
        assert_eq!(place.after(1 << BITS, 3), None);
        assert_eq!(place.after((1 << BITS) - 1, 3), Some((2 << BITS) - 1));
    }

    #[test]
    fn a_single_node_keeps_its_own_cursors() {
        let cursor = Cursor::parse(u64::MAX.to_string().as_bytes(), 1).unwrap();
        assert_eq!(cursor, Cursor { node: 0, cursor: u64::MAX });
        assert_eq!(cursor.after(u64::MAX, 1), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn a_returned_cursor_can_be_parsed(
            nodes in 2..=MAX_NODES,
            node in 0..MAX_NODES,
            next in 1_u64..1 << BITS,
        ) {
            let node = node % nodes;
            let given = Cursor { node, cursor: 0 }.after(next, nodes).unwrap();
            prop_assert!(given <= i64::MAX as u64);
            let read = Cursor::parse(given.to_string().as_bytes(), nodes);
            prop_assert_eq!(read, Some(Cursor { node, cursor: next }));
        }
    }
}
