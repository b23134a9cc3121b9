//! Replies about keys that all clients share. Each is checked for its form and bytes, and logged,
//! because only the logs of all clients together show whether it is correct.

use super::{
    log::{Did, Write},
    private::take_framed,
    talk::ConnectionState,
    wrong::Wrong,
};
use crate::dialects::redis::{
    commands::{Command, Framed},
    exchanges::Exchanges,
    names::Names,
};
use crate::time::Nanos;
use regatta_proto::resp::Value;

/// Consumes the bytes of the reply to a command, the client's `version`-th request, from the front of
/// `input`. Returns whether the reply is complete.
///
/// # Errors
/// No server could have sent this reply, whatever the clients did.
#[expect(clippy::too_many_arguments, reason = "as the trait has it")]
pub(super) fn take(
    exchanges: &Exchanges,
    (framed, keys): (&Framed, &[u16]),
    version: u64,
    talk: &mut ConnectionState,
    now: Nanos,
    input: &mut &[u8],
) -> Result<bool, Box<Wrong>> {
    let ConnectionState { framing, log, .. } = talk;
    let expected = || expected(framed);
    take_framed(framing, input, expected, |reply| {
        let did = results(&exchanges.names, framed, keys, reply)
            .ok_or_else(|| Wrong::new(&exchanges.names, expected(), reply))?;
        let Some(log) = log else { return Ok(()) };
        let mut log = log.lock().expect("no thread panicked");
        for (entry, did) in log.replies(version, keys.len()).iter_mut().zip(did) {
            entry.span.end = now;
            entry.did = did.unwrap_or(entry.did);
        }
        Ok(())
    })
}

/// Returns what a reply reveals about the operation on each key, where that was not known before.
/// Returns `None` if it is not a reply to this command.
fn results(names: &Names, framed: &Framed, keys: &[u16], reply: &[u8]) -> Option<Vec<Option<Did>>> {
    let (value, _) = Value::read(reply)?;
    let all = |did: Option<Did>| Some(vec![did; keys.len()]);
    match (framed.command, value) {
        (Command::Set | Command::Mset, Value::Simple(b"OK")) => all(None),
        (Command::Get, value) => Some(vec![Some(read(names, keys[0], value)?)]),
        (Command::Mget, Value::Elements(b'*', count, mut rest)) if count == keys.len() => {
            let mut did = Vec::new();
            for key in keys {
                let (value, taken) = Value::read(rest)?;
                rest = &rest[taken..];
                did.push(Some(read(names, *key, value)?));
            }
            Some(did)
        }
        (Command::Del, Value::Integer(0)) => all(Some(Did::ReadNothing)),
        (Command::Del, Value::Integer(deleted)) => {
            (1..=keys.len() as i64).contains(&deleted).then(|| all(None))?
        }
        (Command::Incr, Value::Integer(count)) if count > 0 => {
            all(Some(Did::Counted(Some(count as u64))))
        }
        _ => None,
    }
}

/// Returns the result of reading a key: absent, or a value that a client wrote to it.
fn read(names: &Names, key: u16, value: Value<'_>) -> Option<Did> {
    match value {
        Value::Null => Some(Did::ReadNothing),
        Value::Bulk(bytes) => {
            let identity = names.read(bytes).filter(|identity| identity.key == key)?;
            (identity.version > 0).then(|| Did::Read(Write::of(identity)))
        }
        _ => None,
    }
}

fn expected(framed: &Framed) -> String {
    let keys = framed.keys;
    match framed.command {
        Command::Set | Command::Mset => "+OK\\r\\n".into(),
        Command::Get => "nil, or a value that a client wrote to this key".into(),
        Command::Mget => {
            format!("{keys} elements: for each key nil, or a value that a client wrote to it")
        }
        Command::Del => format!("a number from 0 to {keys}"),
        Command::Incr => "a number above 0".into(),
    }
}
