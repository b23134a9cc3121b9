//! A client's knowledge of its own keys, and the check of replies against it.

use super::{
    node::{CONFIGURATION, ELEMENT},
    seen::Trouble,
};
use regatta_proto::resp::{Replies, Value};
use std::collections::BTreeMap;

/// The possible contents of a key.
#[derive(Clone, Debug)]
struct Known {
    /// It holds one of these now.
    now: Vec<Option<Vec<u8>>>,
    /// Writes with unknown outcome. Each may also be applied later.
    late: Vec<Option<Vec<u8>>>,
}

impl Default for Known {
    fn default() -> Self {
        Known { now: vec![None], late: Vec::new() }
    }
}

impl Known {
    fn set(&mut self, value: Option<Vec<u8>>) {
        self.now = vec![value];
    }

    fn maybe(&mut self, value: Option<Vec<u8>>) {
        self.now.push(value.clone());
        self.late.push(value);
    }

    fn read(&mut self, value: Option<&[u8]>) -> bool {
        let is = |known: &Option<Vec<u8>>| known.as_deref() == value;
        let fits = self.now.iter().any(is) || self.late.iter().any(is);
        self.now = vec![value.map(<[u8]>::to_vec)];
        fits
    }

    /// The minimum and maximum number of keys that DEL may have removed here.
    fn present(&self) -> (usize, usize) {
        let all = self.now.iter().chain(&self.late);
        let always = self.now.iter().all(Option::is_some) && self.late.iter().all(Option::is_some);
        (usize::from(always), usize::from(all.into_iter().any(Option::is_some)))
    }
}

/// A counter. `at`: its last known value; `maybe`: how many INCR have an unknown outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    at: i64,
    maybe: i64,
}

/// The refusal of a request for credentials.
const SECRET: &[u8] = b"ERR the proxy does not support 'config|get' of user names and passwords";

/// Returns whether these are the parameters `max*` of the nodes with their values, in any order.
fn is_configuration(bytes: &[u8]) -> bool {
    let bulk = |word: &str| format!("${}\r\n{word}\r\n", word.len());
    let all = CONFIGURATION.iter().filter(|(name, _)| name.starts_with("max"));
    let mut all: Vec<String> = all.map(|(name, value)| bulk(name) + &bulk(value)).collect();
    let is = |all: &[String]| all.concat().as_bytes() == bytes;
    let is_first = is(&all);
    all.reverse();
    is_first || is(&all)
}

/// A client's knowledge of its own keys.
#[derive(Debug, Default)]
pub struct Model {
    pub database: u32,
    pub resp3: bool,
    keys: BTreeMap<(u32, Vec<u8>), Known>,
    counters: BTreeMap<(u32, Vec<u8>), Counter>,
}

/// What a client requested, and so which reply it expects.
#[derive(Clone, Debug)]
pub enum Expected {
    /// These bytes, whatever happens.
    Exactly(Vec<u8>),
    /// These bytes, or an error.
    Scripted(Vec<u8>),
    /// This simple string, or an error.
    Simply(&'static str),
    Get(Vec<u8>),
    Set(Vec<u8>, Vec<u8>),
    Mget(Vec<Vec<u8>>),
    Mset(Vec<(Vec<u8>, Vec<u8>)>),
    Del(Vec<Vec<u8>>),
    Incr(Vec<u8>),
    /// RPUSH to a key without a list.
    Push,
    /// BLPOP of the element that was pushed before, unless the push failed.
    Pop(Vec<u8>, Vec<u8>),
    Queued,
    Exec(Vec<Expected>),
    Select(u32),
    Hello(bool),
    /// The same with a user name and the right password.
    HelloAs(bool),
    /// AUTH with the right password.
    Auth,
    /// AUTH with a wrong password.
    Denied,
    /// RESET, which never fails.
    Reset,
    Publish,
    /// CONFIG GET of parameters without credentials.
    Configuration,
    /// CONFIG GET of credentials, which is refused.
    Secret,
    /// The client is blocked until it disconnects.
    Never,
    /// The number of confirmations.
    Subscribed(usize),
}

impl Model {
    fn known(&mut self, key: &[u8]) -> &mut Known {
        self.keys.entry((self.database, key.to_vec())).or_default()
    }

    /// Returns an error if a reply is wrong. `trouble`: what may have gone wrong in this history.
    #[expect(clippy::too_many_lines, reason = "one case for each kind of command")]
    pub fn check(
        &mut self,
        expected: &Expected,
        reply: &[u8],
        trouble: Trouble,
    ) -> Result<(), String> {
        let is_local = match expected {
            Expected::Exactly(_) | Expected::Reset => true,
            Expected::Hello(_) => !trouble.has_users,
            _ => false,
        };
        if trouble.explains(reply) && !is_local {
            // The proxy may claim that nothing was applied only if that is true.
            let is_certain = reply.ends_with(b"no command of the transaction was applied\r\n");
            if !is_certain {
                self.fail(expected);
            }
            return Ok(());
        }
        let value = Value::read(reply).map(|(value, _)| value);
        let is_right = match (expected, value) {
            (Expected::Exactly(bytes) | Expected::Scripted(bytes), _) => reply == bytes,
            (Expected::Simply(text), Some(Value::Simple(said))) => said == text.as_bytes(),
            (Expected::Set(key, value), Some(Value::Simple(b"OK"))) => {
                self.known(key).set(Some(value.clone()));
                true
            }
            (Expected::Set(_, value), Some(Value::Error(text))) => {
                let is_refused = text.starts_with(b"SHARDTOOLARGE node ");
                value.len() > 1 << 20 && is_refused && text.ends_with(b"; nothing was sent")
            }
            (Expected::Get(key), Some(Value::Bulk(value))) => self.known(key).read(Some(value)),
            (Expected::Get(key), Some(Value::Null)) => {
                self.is_null(reply) && self.known(key).read(None)
            }
            (Expected::Mget(keys), Some(Value::Elements(b'*', count, bytes))) => {
                count == keys.len() && self.all(keys, bytes)
            }
            (Expected::Mset(pairs), Some(Value::Simple(b"OK"))) => {
                for (key, value) in pairs {
                    self.known(key).set(Some(value.clone()));
                }
                true
            }
            (Expected::Del(keys), Some(Value::Integer(count))) => {
                let (mut least, mut most) = (0, 0);
                for key in keys {
                    let (low, high) = self.known(key).present();
                    (least, most) = (least + low, most + high);
                    self.known(key).set(None);
                }
                (least as i64..=most as i64).contains(&count)
            }
            (Expected::Incr(key), Some(Value::Integer(number))) => {
                let counter = self.counters.entry((self.database, key.clone())).or_default();
                let more = number - counter.at - 1;
                let fits = (0..=counter.maybe).contains(&more);
                *counter = Counter { at: number, maybe: counter.maybe - more };
                fits
            }
            (Expected::Push, Some(Value::Integer(count))) => count == 1,
            (Expected::Pop(key, element), Some(Value::Elements(_, 2, bytes))) => {
                let first = Value::read(bytes);
                let second = first.and_then(|(_, at)| Value::read(&bytes[at..]));
                let is = |value: Option<(Value<'_>, usize)>, text: &[u8]| matches!(value, Some((Value::Bulk(said), _)) if said == text);
                is(first, key) && is(second, element)
            }
            // The RPUSH failed.
            (Expected::Pop(..), Some(Value::Null)) => trouble.fails,
            // An element that was pushed while the proxy stopped.
            (Expected::Never, Some(Value::Elements(_, 2, bytes))) => {
                bytes.ends_with(&[ELEMENT, b"\r\n"].concat())
            }
            (Expected::Queued, Some(Value::Simple(text))) => text == b"QUEUED",
            (Expected::Exec(queued), Some(Value::Elements(_, count, bytes))) => {
                count == queued.len() && self.each(queued, bytes, trouble)?
            }
            // A late write changed a watched key.
            (Expected::Exec(_), Some(Value::Null)) => trouble.fails || trouble.remaps,
            (Expected::Select(database), Some(Value::Simple(b"OK"))) => {
                self.database = *database;
                true
            }
            (
                Expected::Hello(resp3) | Expected::HelloAs(resp3),
                Some(Value::Elements(kind, ..)),
            ) => {
                self.resp3 = *resp3;
                (kind == b'%') == *resp3
            }
            (Expected::Auth, Some(Value::Simple(text))) => text == b"OK",
            (Expected::Denied, Some(Value::Error(text))) => text.starts_with(b"WRONGPASS invalid "),
            (Expected::Reset, Some(Value::Simple(b"RESET"))) => {
                (self.database, self.resp3) = (0, false);
                true
            }
            (Expected::Publish, Some(Value::Integer(count))) => count == 1,
            (Expected::Configuration, Some(Value::Elements(kind, _, bytes))) => {
                (kind == b'%') == self.resp3 && is_configuration(bytes)
            }
            (Expected::Secret, Some(Value::Error(text))) => text.starts_with(SECRET),
            _ => false,
        };
        if is_right {
            return Ok(());
        }
        let expected = format!("{expected:?}");
        Err(format!(
            "\"{}\" is not a valid reply to {}",
            reply[..reply.len().min(120)].escape_ascii(),
            &expected[..expected.len().min(300)]
        ))
    }

    fn is_null(&self, reply: &[u8]) -> bool {
        reply == if self.resp3 { &b"_\r\n"[..] } else { b"$-1\r\n" }
    }

    fn all(&mut self, keys: &[Vec<u8>], bytes: &[u8]) -> bool {
        let mut at = 0;
        keys.iter().all(|key| {
            let Some((value, taken)) = Value::read(&bytes[at..]) else { return false };
            at += taken;
            match value {
                Value::Bulk(value) => self.known(key).read(Some(value)),
                Value::Null => self.known(key).read(None),
                _ => false,
            }
        })
    }

    fn each(
        &mut self,
        queued: &[Expected],
        bytes: &[u8],
        trouble: Trouble,
    ) -> Result<bool, String> {
        let (mut replies, mut at) = (Replies::default(), 0);
        for expected in queued {
            let found = replies.next(&bytes[at..]).map_err(|error| error.to_string())?;
            self.check(expected, &bytes[at..at + found.bytes], trouble)?;
            at += found.bytes;
        }
        Ok(at == bytes.len())
    }

    /// Records that a request may or may not have been applied.
    fn fail(&mut self, expected: &Expected) {
        match expected {
            Expected::Set(key, value) => self.known(key).maybe(Some(value.clone())),
            Expected::Mset(pairs) => {
                for (key, value) in pairs {
                    self.known(key).maybe(Some(value.clone()));
                }
            }
            Expected::Del(keys) => keys.iter().for_each(|key| self.known(key).maybe(None)),
            Expected::Incr(key) => {
                self.counters.entry((self.database, key.clone())).or_default().maybe += 1;
            }
            Expected::Exec(queued) => queued.iter().for_each(|queued| self.fail(queued)),
            _ => {}
        }
    }
}
