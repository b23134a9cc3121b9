//! The scripts that the broker runs for histories, and what they answer.

use super::{
    super::{greeting::NOT_IN_SCRIPT, settings::key},
    header::read_epoch,
};
use crate::hub::history::{Epoch, HistoryLimits, Seen, Span};
use regatta_proto::resp::{Value, write_bulk, write_command};
use sha1::{Digest, Sha1};
use std::{fmt::Write as _, iter, sync::LazyLock, time::Duration};

const BEAT: &str = concat!(include_str!("reign.lua"), include_str!("beat.lua"));
const PUBLISH: &str =
    concat!(include_str!("reign.lua"), "local publish = 'PUBLISH'\n", include_str!("publish.lua"));
/// The same for sharded channels.
const SHARDED_PUBLISH: &str =
    concat!(include_str!("reign.lua"), "local publish = 'SPUBLISH'\n", include_str!("publish.lua"));
const LOOK: &str = concat!(include_str!("reign.lua"), include_str!("look.lua"));

/// A script, and the name by which the broker knows it: the SHA-1 digest of its text.
#[derive(Debug)]
struct Script {
    text: &'static str,
    name: String,
}

/// All scripts: each is digested once.
static SCRIPTS: LazyLock<[Script; 4]> = LazyLock::new(|| {
    [BEAT, PUBLISH, SHARDED_PUBLISH, LOOK].map(|text| Script { text, name: digest(text) })
});

/// The scripts, for keys with a prefix.
#[derive(Debug)]
pub(super) struct Scripts {
    /// The start of all keys.
    start: String,
    beat: &'static Script,
    publish: &'static Script,
    look: &'static Script,
}

fn digest(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha1::digest(text) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// What a hub knows when it sends a heartbeat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat<'a> {
    /// A name for a new reign.
    pub next: Epoch,
    /// The run of the server at which it has heard its last message, and how long ago that was.
    pub last: Option<(&'a str, Duration)>,
    /// It keeps histories.
    pub keeps: bool,
}

/// The key of the reign. It is there as long as some hub keeps histories.
fn reign(prefix: &str) -> String {
    key(prefix, "", "reign")
}

/// The keys of the history of a room.
fn keys(prefix: &str, room: &str) -> [String; 3] {
    [reign(prefix), key(prefix, room, "history"), key(prefix, room, "messages")]
}

impl Scripts {
    /// Those for keys that begin with this; in a cluster, for sharded channels.
    pub fn new(start: String, is_in_cluster: bool) -> Scripts {
        let [beat, publish, sharded, look] = &*SCRIPTS;
        Scripts { start, beat, publish: if is_in_cluster { sharded } else { publish }, look }
    }

    /// How many commands [`Scripts::load`] writes.
    pub const COUNT: usize = 3;

    /// Makes the broker know them.
    pub fn load(&self, out: &mut Vec<u8>) {
        for script in [self.beat, self.publish, self.look] {
            write_command([&b"SCRIPT"[..], b"LOAD", script.text.as_bytes()], out);
        }
    }

    /// Asks whether some hub keeps histories.
    pub fn others_keep(&self, out: &mut Vec<u8>) {
        write_command([&b"EXISTS"[..], reign(&self.start).as_bytes()], out);
    }

    /// Asks which reign it is, and whether the hub may do what the other scripts do.
    pub fn beat(&self, beat: &Beat<'_>, out: &mut Vec<u8>) {
        let (run, age) = beat.last.unwrap_or_default();
        let (next, age) = (beat.next.to_string(), age.as_millis().to_string());
        let age = if beat.last.is_some() { &*age } else { "" };
        let keys = [reign(&self.start), key(&self.start, "", "tried")];
        let keeps = if beat.keeps { "1" } else { "0" };
        let parts = ["EVALSHA", &self.beat.name, "2", &keys[0], &keys[1], &next, run, age, keeps];
        write_command(parts.map(str::as_bytes), out);
    }

    /// Publishes a message of a room with a history of these limits. `epoch`: a name for a new one. `length`: of the
    /// message, which `write` appends.
    pub fn publish(
        &self,
        (room, channel): (&str, &str),
        (limits, epoch): (HistoryLimits, Epoch),
        (length, write): (usize, impl FnOnce(&mut Vec<u8>)),
        out: &mut Vec<u8>,
    ) {
        let [reign, known, messages] = keys(&self.start, room);
        let (kept, seconds) = (limits.messages.to_string(), limits.time.as_secs().to_string());
        let epoch = epoch.to_string();
        out.extend_from_slice(b"*11\r\n");
        for part in [
            "EVALSHA",
            &self.publish.name,
            "3",
            &reign,
            &known,
            &messages,
            channel,
            &kept,
            &seconds,
            &epoch,
        ] {
            write_bulk(part.as_bytes(), out);
        }
        out.push(b'$');
        out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        out.extend_from_slice(b"\r\n");
        write(out);
        out.extend_from_slice(b"\r\n");
    }

    /// Asks for what is known of the history of a room, and for some messages. `breaks`: a message was published without
    /// a place in it, so that it must not continue.
    pub fn look(
        &self,
        room: &str,
        (limits, epoch): (HistoryLimits, Epoch),
        (span, breaks): (Span, bool),
        out: &mut Vec<u8>,
    ) {
        let [reign, known, messages] = keys(&self.start, room);
        let (kept, seconds) = (limits.messages.to_string(), limits.time.as_secs().to_string());
        let (direction, from, to) = match span {
            _ if breaks => ("", String::new(), String::new()),
            Span::Nothing | Span::Skip => ("", String::new(), String::new()),
            Span::From(first) => ("+", first.to_string(), "+".to_owned()),
            Span::Down(first, last) => ("-", first.to_string(), last.to_string()),
        };
        let (epoch, breaks) = (epoch.to_string(), if breaks { "1" } else { "0" });
        let parts = [
            "EVALSHA",
            &self.look.name,
            "3",
            &reign,
            &known,
            &messages,
            &epoch,
            &kept,
            &seconds,
            breaks,
            direction,
            &from,
            &to,
        ];
        write_command(parts.map(str::as_bytes), out);
    }
}

/// The offset of a message, and what a hub has published.
pub(super) type Found<'a> = (u64, &'a [u8]);

/// Reads the answer to [`Scripts::look`]: what is known, and the offsets of messages with what hubs have published. `None`:
/// it is none.
pub(super) fn read_seen(reply: Value<'_>) -> Option<(Seen, Vec<Found<'_>>)> {
    let Value::Elements(b'*', count, rest) = reply else { return None };
    let mut all = elements(rest);
    let epoch = read_epoch(text(all.next()?)?)?;
    let top = text(all.next()?)?.parse().ok()?;
    let is_all = all.next()? == Value::Integer(1);
    let mut messages = Vec::new();
    for _ in 0..count.checked_sub(3)? / 2 {
        let offset = text(all.next()?)?.parse().ok()?;
        let Value::Bulk(message) = all.next()? else { return None };
        messages.push((offset, message));
    }
    Some((Seen { epoch, top, is_all }, messages))
}

/// The elements of an array, and what is behind it.
fn elements(mut rest: &[u8]) -> impl Iterator<Item = Value<'_>> {
    iter::from_fn(move || {
        let (value, taken) = Value::read(rest)?;
        rest = &rest[taken..];
        Some(value)
    })
}

fn text(value: Value<'_>) -> Option<&str> {
    if let Value::Bulk(text) = value { str::from_utf8(text).ok() } else { None }
}

/// What the broker answers to [`Scripts::beat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beaten<'a> {
    /// The reign; empty: the one before must end, and the server refuses that.
    pub reign: &'a str,
    /// The run of the server.
    pub run: &'a str,
    /// Why the hub may not do what the other scripts do; empty: it may.
    pub refusal: &'a [u8],
}

/// Reads it. `None`: it is none.
pub(super) fn read_beaten(reply: Value<'_>) -> Option<Beaten<'_>> {
    let Value::Elements(b'*', 3, rest) = reply else { return None };
    let mut all = elements(rest);
    let (reign, run) = (text(all.next()?)?, text(all.next()?)?);
    let Value::Bulk(refusal) = all.next()? else { return None };
    Some(Beaten { reign, run, refusal })
}

/// Errors of the broker: their codes, and what those who wait learn.
const REFUSALS: [(&str, &str); 13] = [
    ("MISCONF", "not published: the broker cannot save its data (MISCONF)"),
    ("NOREPLICAS", "not published: the broker has too few replicas (NOREPLICAS)"),
    ("OOM", "not published: the broker has no memory (OOM)"),
    ("READONLY", "not published: the broker is a replica (READONLY)"),
    ("NOSCRIPT", "not published: the broker has lost a script (NOSCRIPT)"),
    ("WRONGTYPE", "not published: somebody else uses the keys of the room (WRONGTYPE)"),
    ("NOPERM", "not published: the broker does not permit it (NOPERM)"),
    // Redis up to 7.0, and later versions and Valkey, have no code for what a script may not do.
    (NOT_IN_SCRIPT[0], "not published: the broker does not permit it (NOPERM)"),
    (NOT_IN_SCRIPT[1], "not published: the broker does not permit it (NOPERM)"),
    ("CLUSTERDOWN", "not published: the cluster of the broker is down (CLUSTERDOWN)"),
    ("MOVED", "not published: the slot of the room is at another node (MOVED)"),
    ("ASK", "not published: the slot of the room is being moved (ASK)"),
    ("TRYAGAIN", "not published: the slot of the room is being moved (TRYAGAIN)"),
];

/// Whether an error has this code, or these words.
fn has(text: &[u8], code: &str) -> bool {
    let text = String::from_utf8_lossy(text);
    // Redis 6 writes "ERR Error running script (…): …: -MISCONF …".
    text.starts_with(code)
        || text.contains(&format!(": -{code} "))
        || code.contains(' ') && text.contains(code)
}

/// Why the broker has refused to run a script, for those who wait for it.
pub(super) fn refusal(text: &[u8]) -> &'static str {
    let known = REFUSALS.iter().find(|(code, _)| has(text, code));
    known.map_or("not published: the broker refuses to run the script", |(_, why)| *why)
}

/// Errors that are over without a change of rights, and that concern all hubs.
const PASSING: [&str; 7] =
    ["MISCONF", "OOM", "NOREPLICAS", "READONLY", "LOADING", "BUSY", "NOSCRIPT"];

/// Whether scripts are refused only for now, and to all hubs.
pub(super) fn is_passing(text: &[u8]) -> bool {
    PASSING.iter().any(|code| has(text, code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_answer_has_what_is_known_and_messages() {
        let bytes = b"*5\r\n$16\r\n00000000000000ff\r\n$2\r\n13\r\n:0\r\n$2\r\n13\r\n$1\r\nx\r\n";
        let (value, _) = Value::read(bytes).unwrap();
        let seen = Seen { epoch: Epoch(255), top: 13, is_all: false };
        assert_eq!(read_seen(value), Some((seen, vec![(13, &b"x"[..])])));
        assert_eq!(read_seen(Value::Integer(1)), None);
        let (short, _) = Value::read(b"*1\r\n$1\r\nx\r\n").unwrap();
        assert_eq!((read_seen(short), read_beaten(short)), (None, None));
        let (value, _) = Value::read(b"*3\r\n$1\r\na\r\n$1\r\nb\r\n$0\r\n\r\n").unwrap();
        let beaten = Beaten { reign: "a", run: "b", refusal: b"" };
        assert_eq!(read_beaten(value), Some(beaten));
    }

    #[test]
    fn a_refusal_says_its_code() {
        let in_redis_6 = b"ERR Error running script (call to f_1): @user_script:37: -MISCONF Redis";
        for text in [&b"MISCONF Redis is configured"[..], in_redis_6] {
            assert!(refusal(text).contains("MISCONF"));
        }
        assert!(refusal(b"").starts_with("not published: "));
        let not_permitted = [
            "NOPERM User plain has no permissions to run the 'evalsha' command",
            // Redis 6.2, 7.0, and later versions and Valkey.
            "ERR Error running script (call to f_1): @user_script:12: @user_script: 12: The user executing the script \
             can't run this command or subcommand",
            "ERR The user executing the script can't run this command or subcommand script: f1, on @user_script:9.",
            "ERR ACL failure in script: User plain has no permissions to run the 'info' command script: f1, on \
             @user_script:4.",
        ];
        for text in not_permitted {
            assert!(refusal(text.as_bytes()).contains("NOPERM"), "{text}");
            assert!(!is_passing(text.as_bytes()), "{text}");
        }
        for text in [&in_redis_6[..], b"LOADING Redis is loading", b"BUSY Redis is busy"] {
            assert!(is_passing(text));
        }
        assert!(!is_passing(b"TRYAGAIN Multiple keys request during rehashing of slot"));
    }

    #[test]
    fn in_a_cluster_scripts_publish_in_sharded_channels() {
        let load = |is_in_cluster| {
            let mut out = Vec::new();
            Scripts::new("x".to_owned(), is_in_cluster).load(&mut out);
            String::from_utf8(out).unwrap()
        };
        let (usual, sharded) = (load(false), load(true));
        assert!(!usual.contains("SPUBLISH") && sharded.contains("= 'SPUBLISH'"));
        // Nothing else is different, and the command is named once.
        assert_eq!(usual.matches("PUBLISH").count(), 1);
        assert_eq!(sharded.replace("SPUBLISH", "PUBLISH").len(), usual.len());
    }

    /// Prefixes and names that contain what the hub puts between them.
    fn part() -> impl Strategy<Value = String> {
        let word = prop::sample::select(
            &[":", ":0", "7", "12", ":history", ":messages", "reign", "ä"][..],
        );
        prop::collection::vec(word, 0..9).prop_map(|words| words.concat())
    }

    /// What a key is made of.
    fn parts(key: &str) -> Option<(&str, &str, &str)> {
        let (rest, kind) = key.rsplit_once(':')?;
        let (rest, length) = rest.rsplit_once(':')?;
        let (rest, room) = rest.split_at_checked(rest.len().checked_sub(length.parse().ok()?)?)?;
        Some((rest.strip_suffix(':')?, room, kind))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_two_keys_are_the_same(prefix in part(), room in part()) {
            // Its parts follow from a key, so keys with other parts are other keys.
            let [reign, history, messages] = keys(&prefix, &room);
            prop_assert_eq!(parts(&reign), Some((&*prefix, "", "reign")));
            prop_assert_eq!(parts(&history), Some((&*prefix, &*room, "history")));
            prop_assert_eq!(parts(&messages), Some((&*prefix, &*room, "messages")));
        }
    }
}
