//! Both ends of RESP: however the input is cut, the commands and the ends of replies are the same, and
//! parsing a whole reply succeeds or returns an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_proto::resp::{CommandLimits, Commands, Replies, Value};

fn commands<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<Vec<u8>>>, bool) {
    let limits = CommandLimits { args: 100, bulk: 1000, inline: 200, command: 5000 };
    let mut decoder = Commands::new(limits);
    let (mut held, mut all) = (Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            match decoder.next(&held) {
                Ok((0, None)) => break,
                Ok((taken, command)) => {
                    all.extend(command.map(|one| one.args().map(<[u8]>::to_vec).collect()));
                    held.drain(..taken);
                }
                Err(_) => return (all, true),
            }
        }
        assert!(held.len() <= limits.command);
    }
    (all, false)
}

fn replies<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<(Vec<u8>, bool)>, bool) {
    let mut decoder = Replies::default();
    let (mut held, mut all, mut reply): (Vec<u8>, _, Vec<u8>) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            let Ok(found) = decoder.next(&held) else { return (all, true) };
            reply.extend(held.drain(..found.bytes));
            if !found.whole {
                break;
            }
            let _ = Value::read(&reply);
            all.push((std::mem::take(&mut reply), found.push));
        }
    }
    (all, false)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let cut = usize::from(cut) + 1;
    assert_eq!(commands(std::iter::once(bytes)), commands(bytes.chunks(cut)));
    assert_eq!(replies(std::iter::once(bytes)), replies(bytes.chunks(cut)));
});
