//! The scripts that the broker runs for histories, and what they answer.

use super::header::read_epoch;
use crate::hub::history::{Epoch, HistoryLimits, Seen, Span};
use regatta_proto::resp::{Value, write_bulk, write_command};
use sha1::{Digest, Sha1};
use std::fmt::Write as _;

const BEAT: &str = concat!(include_str!("reign.lua"), include_str!("beat.lua"));
const PUBLISH: &str = concat!(include_str!("reign.lua"), include_str!("publish.lua"));
const LOOK: &str = concat!(include_str!("reign.lua"), include_str!("look.lua"));
/// How long the broker knows that some hub keeps histories, in seconds: longer than any history.
const KNOWN_S: &str = "100000";

/// The names by which the broker knows the scripts: the SHA-1 digests of their texts.
#[derive(Debug)]
pub(super) struct Scripts {
    beat: String,
    publish: String,
    look: String,
}

impl Default for Scripts {
    fn default() -> Self {
        Scripts { beat: digest(BEAT), publish: digest(PUBLISH), look: digest(LOOK) }
    }
}

fn digest(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha1::digest(text) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// What a hub has heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    /// The reign, and the run of the server. Empty: nothing.
    pub reign: String,
    pub run: String,
    /// The number of the last message, among those of all rooms.
    pub clock: u64,
}

/// The key of the reign. It is there as long as some hub keeps histories.
pub(super) fn key(prefix: &str) -> String {
    format!("{prefix}:reign")
}

/// The keys of the history of a room.
fn keys(prefix: &str, room: &str) -> [String; 3] {
    [key(prefix), format!("{prefix}:history:{room}"), format!("{prefix}:messages:{room}")]
}

impl Scripts {
    /// How many commands [`Scripts::load`] writes.
    pub const COUNT: usize = 3;

    /// Makes the broker know them.
    pub fn load(out: &mut Vec<u8>) {
        for script in [BEAT, PUBLISH, LOOK] {
            write_command([&b"SCRIPT"[..], b"LOAD", script.as_bytes()], out);
        }
    }

    /// Says that this hub keeps histories, and what it has heard. `next`: a name for a new reign.
    pub fn beat(&self, prefix: &str, next: Epoch, claim: &Claim, out: &mut Vec<u8>) {
        let Claim { reign, run, clock } = claim;
        let (next, clock) = (next.to_string(), clock.to_string());
        let parts = ["EVALSHA", &self.beat, "1", &key(prefix), &next, reign, run, &clock, KNOWN_S];
        write_command(parts.map(str::as_bytes), out);
    }

    /// Publishes a message of a room with a history of these limits. `epoch`: a name for a new one. `length`: of the message, which `write` appends.
    pub fn publish(
        &self,
        (prefix, room, channel): (&str, &str, &str),
        (limits, epoch): (HistoryLimits, Epoch),
        (length, write): (usize, impl FnOnce(&mut Vec<u8>)),
        out: &mut Vec<u8>,
    ) {
        let [reign, known, messages] = keys(prefix, room);
        let (kept, seconds) = (limits.messages.to_string(), limits.time.as_secs().to_string());
        let epoch = epoch.to_string();
        out.extend_from_slice(b"*11\r\n");
        for part in [
            "EVALSHA",
            &self.publish,
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
        (prefix, room): (&str, &str),
        (limits, epoch): (HistoryLimits, Epoch),
        (span, breaks): (Span, bool),
        out: &mut Vec<u8>,
    ) {
        let [reign, known, messages] = keys(prefix, room);
        let (kept, seconds) = (limits.messages.to_string(), limits.time.as_secs().to_string());
        let (direction, from, to) = match span {
            _ if breaks => ("", String::new(), String::new()),
            Span::Nothing => ("", String::new(), String::new()),
            Span::From(first) => ("+", first.to_string(), "+".to_owned()),
            Span::Down(first, last) => ("-", first.to_string(), last.to_string()),
        };
        let (epoch, breaks) = (epoch.to_string(), if breaks { "1" } else { "0" });
        let parts = [
            "EVALSHA", &self.look, "3", &reign, &known, &messages, &epoch, &kept, &seconds, breaks,
            direction, &from, &to,
        ];
        write_command(parts.map(str::as_bytes), out);
    }
}

/// Reads the answer to [`Scripts::look`]: what is known, and the offsets of messages with what hubs have published. `None`:
/// it is none.
pub(super) fn read_seen(reply: Value<'_>) -> Option<(Seen, Vec<(u64, &[u8])>)> {
    let Value::Elements(b'*', count, mut rest) = reply else { return None };
    let mut next = || {
        let (value, taken) = Value::read(rest)?;
        rest = &rest[taken..];
        Some(value)
    };
    let epoch = read_epoch(text(next()?)?)?;
    let top = text(next()?)?.parse().ok()?;
    let is_all = next()? == Value::Integer(1);
    let mut messages = Vec::new();
    for _ in 0..count.checked_sub(3)? / 2 {
        let offset = text(next()?)?.parse().ok()?;
        let Value::Bulk(message) = next()? else { return None };
        messages.push((offset, message));
    }
    Some((Seen { epoch, top, is_all }, messages))
}

fn text(value: Value<'_>) -> Option<&str> {
    if let Value::Bulk(text) = value { str::from_utf8(text).ok() } else { None }
}

/// Reads the answer to [`Scripts::beat`]. `None`: it is none.
pub(super) fn read_claim(reply: Value<'_>) -> Option<Claim> {
    let Value::Elements(b'*', 3, mut rest) = reply else { return None };
    let mut next = || {
        let (value, taken) = Value::read(rest)?;
        rest = &rest[taken..];
        text(value)
    };
    let (reign, run) = (next()?.to_owned(), next()?.to_owned());
    Some(Claim { reign, run, clock: next()?.parse().ok()? })
}

/// Errors of the broker: their codes, what those who wait learn, and whether this may pass by itself because the server
/// refuses all that is written.
const REFUSALS: [(&str, &str, bool); 7] = [
    ("MISCONF", "not published: the broker cannot save its data (MISCONF)", true),
    ("NOREPLICAS", "not published: the broker has too few replicas (NOREPLICAS)", true),
    ("OOM", "not published: the broker has no memory (OOM)", true),
    ("READONLY", "not published: the broker is a replica (READONLY)", true),
    ("NOSCRIPT", "not published: the broker has lost a script (NOSCRIPT)", true),
    ("NOPERM", "not published: the broker does not permit it (NOPERM)", false),
    // Redis 7 has no code for it.
    ("ERR The user executing", "not published: the broker does not permit it (NOPERM)", false),
];

/// Why the broker has refused to run a script, for those who wait for it; and whether this may pass by itself.
pub(super) fn refusal(text: &[u8]) -> (&'static str, bool) {
    let text = String::from_utf8_lossy(text);
    // Redis 6 writes "ERR Error running script (…): …: -MISCONF …".
    let is = |code: &str| text.starts_with(code) || text.contains(&format!(": -{code} "));
    let known = REFUSALS.iter().find(|(code, ..)| is(code));
    known.map_or(
        ("not published: the broker refuses it; the log of the hub says why", false),
        |(_, why, may_pass)| (why, *may_pass),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_what_is_known_and_messages() {
        let bytes = b"*5\r\n$16\r\n00000000000000ff\r\n$2\r\n13\r\n:0\r\n$2\r\n13\r\n$1\r\nx\r\n";
        let (value, _) = Value::read(bytes).unwrap();
        let seen = Seen { epoch: Epoch(255), top: 13, is_all: false };
        assert_eq!(read_seen(value), Some((seen, vec![(13, &b"x"[..])])));
        assert_eq!(read_seen(Value::Integer(1)), None);
        let (short, _) = Value::read(b"*1\r\n$1\r\nx\r\n").unwrap();
        assert_eq!((read_seen(short), read_claim(short)), (None, None));
        let (value, _) = Value::read(b"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\n7\r\n").unwrap();
        let claim = Claim { reign: "a".into(), run: "b".into(), clock: 7 };
        assert_eq!(read_claim(value), Some(claim));
    }

    #[test]
    fn a_refusal_says_whether_it_may_pass() {
        let in_redis_6 = b"ERR Error running script (call to f_1): @user_script:37: -MISCONF Redis";
        for text in [&b"MISCONF Redis is configured"[..], in_redis_6] {
            assert!(refusal(text).1 && refusal(text).0.contains("MISCONF"));
        }
        assert!(!refusal(b"NOPERM this user").1 && !refusal(b"").1);
    }
}
