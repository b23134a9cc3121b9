//! The slow log in a history: each entry is a command that a node was sent.

use super::World;
use crate::{
    node::{Asked, Data},
    seen::Seen,
};
use regatta_engine::Engine;

impl<E: Engine> World<E> {
    /// Checks the entries of the slow log.
    pub(super) fn check_slow_log(&self, seen: &mut Seen) -> Result<(), String> {
        let longest_us = (self.now - self.start).as_micros();
        for entry in self.shared.slow_log.newest(usize::MAX) {
            let shown = || entry.arguments.join(&b' ').escape_ascii().to_string();
            let mut asked = self.data.iter().flat_map(Data::asked);
            if !asked.any(|asked| is_of(&entry.arguments, asked)) {
                return Err(format!("no node was sent {}", shown()));
            }
            let took_us = entry.duration_us + entry.proxy_us;
            if u128::from(took_us) > longest_us {
                let shown = shown();
                return Err(format!("{shown} took {took_us} us in a history of {longest_us} us"));
            }
            seen.slow_entries += 1;
            let is_short =
                |last: &Vec<u8>| last.starts_with(b"... (") || last.ends_with(b" bytes)");
            seen.shortened_entries += u64::from(entry.arguments.last().is_some_and(is_short));
        }
        Ok(())
    }
}

/// Whether these arguments, which may be shortened as Redis does, are those of a command.
fn is_of(shown: &[Vec<u8>], asked: &Asked) -> bool {
    for (at, shown_one) in shown.iter().enumerate() {
        let Some((length, start)) = asked.get(at) else { return false };
        let rest = || format!("... ({} more arguments)", asked.len() - at);
        if at + 1 == shown.len() && *shown_one == rest().as_bytes() {
            return true;
        }
        let is_whole = shown_one.len() == *length && shown_one == start;
        if !is_whole && !is_start_of(shown_one, *length, start) {
            return false;
        }
    }
    shown.len() == asked.len()
}

/// Whether this is the start of an argument, with the number of the other bytes.
fn is_start_of(shown: &[u8], length: usize, start: &[u8]) -> bool {
    let mut counts = 1..length.min(start.len() + 1);
    let is_shortened = shown.ends_with(b" more bytes)");
    is_shortened
        && counts.any(|count| {
            let text = format!("... ({} more bytes)", length - count);
            shown.strip_prefix(&start[..count]).is_some_and(|rest| rest == text.as_bytes())
        })
}
