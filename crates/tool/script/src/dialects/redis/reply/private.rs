//! Replies about keys that belong to one client: each reply follows from the commands before it, and is
//! compared in place.

use super::{
    framing::Framing,
    talk::{ABSENT, ConnectionState, DOUBTFUL, Progress},
    wrong::{Wrong, in_words},
};
use crate::dialects::redis::{
    commands::{Command, Framed},
    exchanges::{Ask, Exchanges, Expectation},
    names::Identity,
};
use crate::text::printable;

const OK: &[u8] = b"+OK\r\n";
const NIL: &[u8] = b"$-1\r\n";

/// Consumes the bytes of the reply to an exchange, the client's `version`-th request, from the front of
/// `input`. Returns whether the reply is complete.
///
/// # Errors
/// The reply is wrong.
#[inline]
pub(super) fn take(
    exchanges: &Exchanges,
    exchange: u32,
    version: u64,
    talk: &mut ConnectionState,
    input: &mut &[u8],
) -> Result<bool, Box<Wrong>> {
    let (framed, keys) = match exchanges.ask(exchange) {
        Ask::Keys { command, first } => exchanges.command(command, first),
        Ask::Bytes(due) => return take_bytes(exchanges, exchange, due, talk, input),
    };
    let right = &mut talk.progress.right;
    let whole = match framed.command {
        Command::Set | Command::Mset => compare(&[OK], right, input),
        Command::Get => take_value(exchanges, talk, keys[0], input),
        Command::Mget => take_values(exchanges, talk, framed, keys, input),
        Command::Del => {
            let present = present(talk, keys);
            take_integer(present, talk, input)
        }
        Command::Incr => {
            let count = talk.counters[usize::from(keys[0])] + 1;
            take_integer(count, talk, input)
        }
    };
    match whole {
        Some(true) => applied(framed.command, keys, version, talk),
        Some(false) => return Ok(false),
        None => return Err(explain(exchanges, talk, framed, keys, input)),
    }
    Ok(true)
}

/// Updates the content of the keys after a reply arrived. Does nothing for keys whose content is not
/// tracked or in doubt.
#[inline]
pub(super) fn applied(command: Command, keys: &[u16], version: u64, talk: &mut ConnectionState) {
    let (held, holds) = match command {
        Command::Set | Command::Mset => (&mut talk.versions, version),
        Command::Del => (&mut talk.versions, ABSENT),
        Command::Incr => {
            let count = talk.counters[usize::from(keys[0])];
            (&mut talk.counters, count.wrapping_add(1))
        }
        Command::Get | Command::Mget => return,
    };
    for key in keys {
        if let Some(held) = held.get_mut(usize::from(*key)).filter(|held| **held != DOUBTFUL) {
            *held = holds;
        }
    }
}

/// Number of these keys that hold a value.
fn present(talk: &ConnectionState, keys: &[u16]) -> u64 {
    keys.iter().filter(|key| talk.versions[usize::from(**key)] != ABSENT).count() as u64
}

/// Compares the front of `input` with `parts`, of which `right` bytes were received before, and
/// consumes it. Returns whether the parts are complete. Returns `None` if they differ; nothing is
/// consumed then.
#[inline]
fn compare(parts: &[&[u8]], right: &mut usize, input: &mut &[u8]) -> Option<bool> {
    let (mut before, mut data) = (*right, *input);
    for part in parts {
        let Some(due) = part.get(before..) else {
            before -= part.len();
            continue;
        };
        before = 0;
        let here = due.len().min(data.len());
        if data[..here] != due[..here] {
            return None;
        }
        data = &data[here..];
        if here < due.len() {
            *right += input.len();
            *input = data;
            return Some(false);
        }
    }
    (*right, *input) = (0, data);
    Some(true)
}

#[inline]
fn take_integer(integer: u64, talk: &mut ConnectionState, input: &mut &[u8]) -> Option<bool> {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(integer).as_bytes();
    compare(&[b":", digits, b"\r\n"], &mut talk.progress.right, input)
}

#[inline]
fn take_value(
    exchanges: &Exchanges,
    talk: &mut ConnectionState,
    key: u16,
    input: &mut &[u8],
) -> Option<bool> {
    let identity = identity(talk, key);
    let right = &mut talk.progress.right;
    match identity {
        None => compare(&[NIL], right, input),
        Some(identity) => {
            exchanges.names.with_value(identity, |parts| compare(parts, right, input))
        }
    }
}

/// Returns the origin of the value of a key, or `None` if the key is absent.
#[inline]
fn identity(talk: &ConnectionState, key: u16) -> Option<Identity> {
    let version = talk.versions[usize::from(key)];
    (version != ABSENT).then_some(Identity { author: talk.author, key, version })
}

#[inline]
fn take_values(
    exchanges: &Exchanges,
    talk: &mut ConnectionState,
    framed: &Framed,
    keys: &[u16],
    input: &mut &[u8],
) -> Option<bool> {
    loop {
        let whole = match talk.progress.element.checked_sub(1) {
            None => compare(&[&framed.reply], &mut talk.progress.right, input)?,
            Some(nth) => take_value(exchanges, talk, keys[nth], input)?,
        };
        if !whole {
            return Some(false);
        }
        talk.progress.element += 1;
        if talk.progress.element > keys.len() {
            talk.progress.element = 0;
            return Some(true);
        }
    }
}

/// Takes the reply to a command of a workload file.
fn take_bytes(
    exchanges: &Exchanges,
    exchange: u32,
    due: Expectation,
    talk: &mut ConnectionState,
    input: &mut &[u8],
) -> Result<bool, Box<Wrong>> {
    let (text, names) = (exchanges.script.reply(exchange), &exchanges.names);
    if due == Expectation::Exact {
        let right = talk.progress.right;
        return compare(&[text], &mut talk.progress.right, input)
            .ok_or_else(|| Wrong::new(names, printable(text), &[&text[..right], *input].concat()));
    }
    let expected = || match due {
        Expectation::Error => format!("an error that starts with {}", printable(text)),
        _ => "anything but an error".into(),
    };
    take_framed(&mut talk.framing, input, expected, |reply| {
        let is_error = matches!(reply, [b'-' | b'!', ..]);
        let is_right = if due == Expectation::Error { reply.starts_with(text) } else { !is_error };
        if is_right { Ok(()) } else { Err(Wrong::new(names, expected(), reply)) }
    })
}

/// Consumes a reply whose bytes are not known in advance, and passes it to `check` once it is complete.
pub(super) fn take_framed(
    framing: &mut Framing,
    input: &mut &[u8],
    expected: impl Fn() -> String,
    check: impl FnOnce(&[u8]) -> Result<(), Box<Wrong>>,
) -> Result<bool, Box<Wrong>> {
    let data = *input;
    match framing.take(input) {
        Ok(None) => Ok(false),
        Ok(Some(reply)) => check(reply).map(|()| true),
        Err(malformed) => Err(Wrong::malformed(expected(), data, malformed)),
    }
}

/// Describes the expected reply where the front of `input` is wrong.
#[cold]
fn explain(
    exchanges: &Exchanges,
    talk: &ConnectionState,
    framed: &Framed,
    keys: &[u16],
    input: &[u8],
) -> Box<Wrong> {
    let Progress { element, right } = talk.progress;
    let names = &exchanges.names;
    let of_key = |key: u16| {
        let name = names.key(framed.command.kind(), &talk.owner, key);
        match identity(talk, key) {
            None => (NIL.to_vec(), format!("nil, because {name} was deleted")),
            Some(identity) => {
                let mut bytes = Vec::new();
                names.write_value(identity, &mut bytes);
                (bytes, in_words(identity))
            }
        }
    };
    let integer = |integer: u64| format!(":{integer}\r\n").into_bytes();
    let (bytes, what) = match (framed.command, element) {
        (Command::Set | Command::Mset, _) => (OK.to_vec(), String::new()),
        (Command::Get, _) => of_key(keys[0]),
        (Command::Mget, 0) => (framed.reply.clone(), String::new()),
        (Command::Mget, nth) => {
            let (bytes, what) = of_key(keys[nth - 1]);
            (bytes, format!("element {nth} of {}: {what}", keys.len()))
        }
        (Command::Del, _) => {
            let present = present(talk, keys);
            (integer(present), format!("{present} of the {} keys hold a value", keys.len()))
        }
        (Command::Incr, _) => {
            let count = talk.counters[usize::from(keys[0])];
            (integer(count + 1), format!("the count was {count}"))
        }
    };
    let shown = printable(&bytes);
    let expected = if what.is_empty() { shown } else { format!("{shown} ({what})") };
    Wrong::new(names, expected, &[&bytes[..right], input].concat())
}
