//! The channels of the broker: each room is in one of 128 partitions, and each partition has a channel.
//!
//! In a Redis Cluster they are channels of sharded publish/subscribe (Redis 7.0), whose names have the prefix as their
//! hash tag. So all are in one slot, and its master is the broker: a channel of the cluster as a whole has another order on
//! each node.

/// The number of partitions. All hubs at one broker must agree on it.
pub(super) const PARTITIONS: usize = 128;

/// The partition of a room: its name, hashed with FNV-1a (64 bits; draft-eastlake-fnv), modulo their number.
pub(super) fn partition(room: &str) -> usize {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in room.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (hash % PARTITIONS as u64) as usize
}

/// The names of the channels of a hub, and the commands for them.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) subscribe: &'static [u8],
    pub(super) publish: &'static [u8],
    partitions: Vec<Box<str>>,
    /// The one in which only this hub publishes: its heartbeat.
    pub(super) beat: Box<str>,
    /// The one in which a hub announces that it was at another server.
    pub(super) moved: Box<str>,
    /// The one in which hubs publish which members they have, if this one notifies its own.
    presence: Option<Box<str>>,
}

impl Channels {
    /// Those that begin with this, of the hub with this number.
    pub(super) fn new(start: &str, node: u64, is_in_cluster: bool) -> Channels {
        let name = |partition: usize| {
            [start, ":room:", itoa::Buffer::new().format(partition)].concat().into()
        };
        Channels {
            subscribe: if is_in_cluster { b"SSUBSCRIBE" } else { b"SUBSCRIBE" },
            publish: if is_in_cluster { b"SPUBLISH" } else { b"PUBLISH" },
            partitions: (0..PARTITIONS).map(name).collect(),
            beat: format!("{start}:beat:{node:016x}").into(),
            moved: format!("{start}:moved").into(),
            presence: None,
        }
    }

    /// With the one for presence, which is returned.
    pub(super) fn with_presence(&mut self, start: &str) -> &str {
        self.presence.insert(format!("{start}:presence").into())
    }

    /// The channel of a room.
    pub(super) fn of(&self, room: &str) -> &str {
        &self.partitions[partition(room)]
    }

    /// All that a hub subscribes to.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let partitions = self.partitions.iter().map(|name| &**name);
        partitions.chain([&*self.beat, &*self.moved]).chain(self.presence.as_deref())
    }

    /// How many these are.
    pub(super) fn count(&self) -> usize {
        PARTITIONS + 2 + usize::from(self.presence.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rooms_have_partitions_that_never_change() {
        // Other versions of the hub may be at the same broker.
        assert_eq!([partition(""), partition("a"), partition("chat")], [37, 12, 11]);
        let names = (0..10_000).map(|number| format!("room:{number}"));
        let mut counts = [0; PARTITIONS];
        names.for_each(|name| counts[partition(&name)] += 1);
        assert!(counts.iter().all(|count| (40..130).contains(count)), "{counts:?}");
    }

    #[test]
    fn no_two_channels_are_the_same() {
        let (one, other) = (Channels::new("a", 1, false), Channels::new("a", 2, false));
        let all: BTreeSet<&str> = one.all().chain([&*other.beat]).collect();
        assert_eq!(all.len(), one.count() + 1);
        assert!(one.all().any(|channel| channel == one.of("chat")));
        assert_eq!(&*one.beat, "a:beat:0000000000000001");
        assert_eq!((one.subscribe, one.publish), (&b"SUBSCRIBE"[..], &b"PUBLISH"[..]));
        let sharded = Channels::new("{a}", 1, true);
        let mut with_presence = Channels::new("a", 1, false);
        assert_eq!(with_presence.with_presence("a"), "a:presence");
        assert_eq!(with_presence.all().count(), with_presence.count());
        assert_eq!((with_presence.count(), one.count()), (131, 130));
        assert!(sharded.all().all(|channel| channel.starts_with("{a}:")), "all are in one slot");
        assert_eq!((sharded.subscribe, sharded.publish), (&b"SSUBSCRIBE"[..], &b"SPUBLISH"[..]));
    }
}
