//! Tolerated errors. Whether a failed command was executed, or will be executed later, is unknown. If it
//! writes, its keys are in doubt from then on: each may hold any value that the client has written to
//! it, or none.

use super::{
    private::{applied, take_framed},
    talk::{ABSENT, ConnectionState, DOUBTFUL, Progress},
    wrong::Wrong,
};
use crate::dialects::redis::{
    commands::{Command, Framed},
    exchanges::{Ask, Exchanges, Expectation},
    names::Kind,
};
use regatta_proto::resp::Value;

/// Whether the input is an error reply to a command that should not fail.
#[inline]
pub(super) fn is_error(ask: Ask, talk: &ConnectionState, input: &[u8]) -> bool {
    let begins = || {
        input.first() == Some(&b'-')
            && talk.progress == Progress::default()
            && talk.framing.partial().is_empty()
    };
    talk.is_error || begins() && !matches!(ask, Ask::Bytes(Expectation::Error))
}

/// Consumes the bytes of such an error from the front of `input`. Returns `Err` once the error is
/// complete; the connection may continue after it (see [`ConnectionState::resumes`]). Also returns `Err` if the
/// bytes are not a valid reply; the connection cannot continue then.
pub(super) fn take_error(
    exchanges: &Exchanges,
    ask: Ask,
    version: u64,
    talk: &mut ConnectionState,
    input: &mut &[u8],
) -> Result<bool, Box<Wrong>> {
    talk.is_error = true;
    let mut whole = false;
    let expected = || "anything but an error".to_owned();
    let taken = take_framed(&mut talk.framing, input, expected, |reply| {
        whole = true;
        Err(Wrong::new(&exchanges.names, expected(), reply))
    });
    if whole {
        talk.is_error = false;
        talk.resumes = Some(0);
        if let Ask::Keys { command, first } = ask {
            let (framed, keys) = exchanges.command(command, first);
            doubt(framed, keys, version, talk);
        }
    }
    taken
}

/// Records a failed command. If it writes, its keys are marked as in doubt, except with a log.
fn doubt(framed: &Framed, keys: &[u16], version: u64, talk: &mut ConnectionState) {
    if let Some(log) = &talk.log {
        // Its operations stay in the log without a reply.
        log.lock().expect("no thread panicked").replies(version, keys.len());
        return;
    }
    if matches!(framed.command, Command::Get | Command::Mget) {
        return;
    }
    talk.has_doubts = true;
    let held = held_mut(framed, talk);
    for key in keys {
        if let Some(held) = held.get_mut(usize::from(*key)) {
            *held = DOUBTFUL;
        }
    }
}

fn held_mut<'t>(framed: &Framed, talk: &'t mut ConnectionState) -> &'t mut Vec<u64> {
    match framed.command.kind() {
        Kind::Value => &mut talk.versions,
        Kind::Counter => &mut talk.counters,
    }
}

/// Whether the reply to a command depends on a key that is in doubt.
pub(super) fn concerns(talk: &ConnectionState, (framed, keys): (&Framed, &[u16])) -> bool {
    let held = match framed.command {
        Command::Set | Command::Mset => return false,
        Command::Get | Command::Mget | Command::Del => &talk.versions,
        Command::Incr => &talk.counters,
    };
    keys.iter().any(|key| held[usize::from(*key)] == DOUBTFUL)
}

/// Consumes the bytes of the reply to such a command, the client's `version`-th request, from the front
/// of `input`. Returns whether the reply is complete.
///
/// # Errors
/// The reply is wrong whatever the keys in doubt hold.
pub(super) fn take(
    exchanges: &Exchanges,
    (framed, keys): (&Framed, &[u16]),
    version: u64,
    talk: &mut ConnectionState,
    input: &mut &[u8],
) -> Result<bool, Box<Wrong>> {
    let ConnectionState { framing, versions, author, .. } = talk;
    let names = &exchanges.names;
    let expected = || {
        format!(
            "a reply to {} that is consistent with this client's earlier commands",
            framed.command
        )
    };
    let may_be = |key: u16, value: Value<'_>| match (versions[usize::from(key)], value) {
        (ABSENT | DOUBTFUL, Value::Null) => true,
        (held, Value::Bulk(bytes)) => names.read(bytes).is_some_and(|found| {
            let fits = found.version == held || held == DOUBTFUL && found.version < version;
            found.author == *author && found.key == key && fits
        }),
        _ => false,
    };
    let count = |of: fn(u64) -> bool| {
        keys.iter().filter(|key| of(versions[usize::from(**key)])).count() as i64
    };
    let whole = take_framed(framing, input, expected, |reply| {
        let is_right = match (framed.command, Value::read(reply).map(|(value, _)| value)) {
            (Command::Get, Some(value)) => may_be(keys[0], value),
            (Command::Mget, Some(Value::Elements(b'*', n, rest))) if n == keys.len() => {
                all(keys, rest, may_be)
            }
            (Command::Del, Some(Value::Integer(deleted))) => {
                let least = count(|held| held != ABSENT && held != DOUBTFUL);
                (least..=least + count(|held| held == DOUBTFUL)).contains(&deleted)
            }
            (Command::Incr, Some(Value::Integer(count))) => count > 0,
            _ => false,
        };
        if is_right { Ok(()) } else { Err(Wrong::new(names, expected(), reply)) }
    })?;
    if whole {
        applied(framed.command, keys, version, talk);
    }
    Ok(whole)
}

/// Whether each element of an array is correct for its key.
fn all(keys: &[u16], mut elements: &[u8], is_right: impl Fn(u16, Value<'_>) -> bool) -> bool {
    keys.iter().all(|key| {
        let Some((value, taken)) = Value::read(elements) else { return false };
        elements = &elements[taken..];
        is_right(*key, value)
    })
}
