//! Replies about keys that all clients share: each is checked for its form and its bytes, and written down,
//! since only all of them together show whether it is right.

use super::{
    commands::{Command, Framed},
    exchanges::Exchanges,
    log::{Did, Write},
    names::Names,
    private::take_framed,
    talk::Talk,
    wrong::Wrong,
};
use crate::time::Nanos;
use regatta_proto::resp::Value;

/// Takes the bytes of the reply to a command, the client's `version`-th request, off the front of `input`:
/// whether it is whole.
///
/// # Errors
/// No server could have sent it, whatever the clients did.
pub(super) fn take(
    exchanges: &Exchanges,
    (framed, keys): (&Framed, &[u16]),
    version: u64,
    talk: &mut Talk,
    now: Nanos,
    input: &mut &[u8],
) -> Result<bool, Box<Wrong>> {
    let Talk { framing, log, .. } = talk;
    let expected = || expected(framed);
    take_framed(framing, input, expected, |reply| {
        let did = said(&exchanges.names, framed, keys, reply)
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

/// What a reply says that was done with each key, where that was not known before. `None`: it is no reply
/// to this command.
fn said(names: &Names, framed: &Framed, keys: &[u16], reply: &[u8]) -> Option<Vec<Option<Did>>> {
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

/// What was found under a key: nothing, or a value that a client wrote to it.
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
        Command::Get => "nothing, or a value that a client wrote to this key".into(),
        Command::Mget => {
            format!("{keys} elements: of each key nothing, or a value that a client wrote to it")
        }
        Command::Del => format!("a number from 0 to {keys}"),
        Command::Incr => "a number above 0".into(),
    }
}
