//! The slow log: requests to which a node took long to reply.
//!
//! Its form is that of Redis (`slowlog.c`): the newest entry comes first, arguments are shortened in the same words, and
//! numbers of entries are not used again after a reset.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Maximum number of bytes of a client's name in an entry.
pub(crate) const LONGEST_NAME: usize = 128;

/// The slow log of all cores. Its lock is taken only for a slow request, and to read the log.
#[derive(Debug)]
pub struct SlowLog {
    most: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// The number of the next entry.
    next: u64,
    /// The newest is the last.
    all: VecDeque<SlowEntry>,
}

/// A request, or the part of one that went to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowEntry {
    /// Its number, from 0. The log sets it.
    pub id: u64,
    /// When its reply arrived: Unix time in seconds.
    pub unix_s: u64,
    /// How long the node took, in microseconds.
    pub duration_us: u64,
    /// How long it was in the proxy before and after that, in microseconds: its request until it was sent, and its reply
    /// from its first bytes until it was in the client's output. The second part is missing while the reply waits.
    pub proxy_us: u64,
    /// Its arguments, shortened.
    pub arguments: Vec<Vec<u8>>,
    /// The number of the client (CLIENT ID); 0 if it has disconnected.
    pub client: u64,
    /// The first bytes of the client's name (CLIENT SETNAME).
    pub client_name: Vec<u8>,
}

impl SlowLog {
    /// An empty log that keeps the `most` newest entries.
    pub(crate) fn new(most: usize) -> Self {
        SlowLog { most, entries: Mutex::default() }
    }

    /// Adds an entry. The oldest one makes room. Returns its number.
    pub(crate) fn add(&self, mut entry: SlowEntry) -> u64 {
        let mut entries = self.lock();
        let id = entries.next;
        entry.id = id;
        entries.next += 1;
        if entries.all.len() >= self.most {
            entries.all.pop_front();
        }
        entries.all.push_back(entry);
        id
    }

    /// Adds to the time that the entry with this number was in the proxy, if it is still there.
    pub(crate) fn add_proxy_time(&self, id: u64, more_us: u64) {
        let mut entries = self.lock();
        let first = entries.all.front().map_or(0, |entry| entry.id);
        let place = id.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        if let Some(entry) = place.and_then(|place| entries.all.get_mut(place)) {
            entry.proxy_us += more_us;
        }
    }

    /// Returns the newest entries, the newest first, at most this many.
    pub fn newest(&self, most: usize) -> Vec<SlowEntry> {
        self.lock().all.iter().rev().take(most).cloned().collect()
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.lock().all.len()
    }

    /// Forgets all entries.
    pub(crate) fn reset(&self) {
        self.lock().all.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the arguments of a request of which these are the first bytes: an array in RESP that may end anywhere. What
/// is missing is described, as Redis does. So few bytes have fewer than 32 arguments, and none longer than 128 bytes,
/// from which on Redis shortens.
pub(crate) fn arguments(head: &[u8]) -> Vec<Vec<u8>> {
    let Some((count, mut rest)) = number(head, b'*') else {
        return vec![b"... (the request was not kept)".to_vec()];
    };
    let mut all: Vec<Vec<u8>> = Vec::new();
    while all.len() < count
        && let Some((length, bytes)) = number(rest, b'$')
    {
        let shown = &bytes[..bytes.len().min(length)];
        if shown.len() < length {
            if !shown.is_empty() {
                let more = format!("... ({} more bytes)", length - shown.len());
                all.push([shown, more.as_bytes()].concat());
            }
            break;
        }
        all.push(shown.to_vec());
        rest = bytes.get(length + 2..).unwrap_or_default();
    }
    if all.len() < count {
        all.push(format!("... ({} more arguments)", count - all.len()).into_bytes());
    }
    all
}

/// Reads a line with a number after this byte. Returns the number, and the bytes after the line.
fn number(bytes: &[u8], kind: u8) -> Option<(usize, &[u8])> {
    let bytes = bytes.strip_prefix(&[kind])?;
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let number = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
    Some((number, &bytes[end + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_proto::resp::write_command;

    fn bytes(request: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_command(request.iter().map(|argument| argument.as_bytes()), &mut bytes);
        bytes
    }

    /// The arguments of a request of which this many bytes are known.
    fn shown(request: &[&str], length: usize) -> Vec<String> {
        let bytes = bytes(request);
        let all = arguments(&bytes[..bytes.len().min(length)]).into_iter();
        all.map(|argument| String::from_utf8(argument).unwrap()).collect()
    }

    #[test]
    fn what_is_missing_of_a_request_is_described() {
        let set = ["SET", "key", "a longer value"];
        let whole = bytes(&set).len();
        assert_eq!(shown(&set, whole), set);
        assert_eq!(shown(&set, whole - 2), set, "without the last line end");
        assert_eq!(shown(&set, whole - 4), ["SET", "key", "a longer val... (2 more bytes)"]);
        assert_eq!(shown(&set, whole - 16), ["SET", "key", "... (1 more arguments)"]);
        assert_eq!(shown(&set, whole - 18), ["SET", "key", "... (1 more arguments)"]);
        assert_eq!(shown(&set, 9), ["S... (2 more bytes)", "... (2 more arguments)"]);
        assert_eq!(shown(&set, 4), ["... (3 more arguments)"]);
        for length in 0..4 {
            assert_eq!(shown(&set, length), ["... (the request was not kept)"]);
        }
        assert_eq!(shown(&["ECHO", "", "\r\n"], 100), ["ECHO", "", "\r\n"]);
    }

    #[test]
    fn the_oldest_entries_make_room_and_numbers_continue_after_a_reset() {
        let log = SlowLog::new(2);
        let ids = |most| log.newest(most).iter().map(|entry| entry.id).collect::<Vec<_>>();
        (0..3).for_each(|id| assert_eq!(log.add(SlowEntry::default()), id));
        assert_eq!((log.len(), ids(9), ids(1), ids(0)), (2, vec![2, 1], vec![2], vec![]));
        log.reset();
        assert_eq!((log.len(), ids(9)), (0, vec![]));
        log.add(SlowEntry::default());
        assert_eq!(ids(9), [3]);
    }

    #[test]
    fn time_is_added_to_an_entry_that_is_still_there() {
        let log = SlowLog::new(2);
        (0..3).for_each(|id| assert_eq!(log.add(SlowEntry::default()), id));
        (0..4).for_each(|id| log.add_proxy_time(id, 10 + id));
        log.add_proxy_time(2, 100);
        let times: Vec<u64> = log.newest(9).iter().map(|entry| entry.proxy_us).collect();
        assert_eq!(times, [112, 11]);
        log.reset();
        log.add_proxy_time(2, 1);
    }
}
