//! Straight-line programs over `BufRead + Write`, as if each connection had the machine to itself.
//! Run on `fork`, `prefork`, `threads` and `green`.

use super::words::{EMPTY, LAST_NAME, too_long};
use crate::double::{QUOTED, TOO_LONG};
use regatta_proto::line::{Integer, MAX_LINE, escape};
use std::io::{self, BufRead, Read, Write};

/// Doubles integers until `end`.
pub(super) fn double(talk: &mut (impl BufRead + Write)) -> io::Result<()> {
    let mut line = Vec::new();
    let mut reply = Vec::new();
    while read_line(talk, &mut line)? && line != b"end" {
        reply.clear();
        match Integer::parse(&line) {
            Some(number) => number.write_doubled(&mut reply),
            None => {
                reply.extend_from_slice(b"error: not an integer: ");
                escape(&line, QUOTED, &mut reply);
            }
        }
        reply.push(b'\n');
        talk.write_all(&reply)?;
    }
    talk.flush()
}

/// Reads a first name, asks for the last name, and greets, until a first name is `end`.
pub(super) fn dialogue(talk: &mut (impl BufRead + Write)) -> io::Result<()> {
    let mut first = Vec::new();
    let mut last = Vec::new();
    while read_name(talk, &mut first)? && first != b"end" {
        talk.write_all(LAST_NAME)?;
        if !read_name(talk, &mut last)? {
            break;
        }
        talk.write_all(b"hello ")?;
        talk.write_all(&first)?;
        talk.write_all(b" ")?;
        talk.write_all(&last)?;
        talk.write_all(b"\n")?;
    }
    talk.flush()
}

/// Reads lines until one is not empty. Returns `false` at the end of the conversation.
fn read_name(talk: &mut (impl BufRead + Write), name: &mut Vec<u8>) -> io::Result<bool> {
    while read_line(talk, name)? {
        if !name.is_empty() {
            return Ok(true);
        }
        talk.write_all(EMPTY)?;
    }
    Ok(false)
}

/// Reads a line without its line end. Returns `false` at the end of the input, and after replying
/// to a line over the limit.
fn read_line(talk: &mut (impl BufRead + Write), line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    Read::take(&mut *talk, MAX_LINE as u64 + 1).read_until(b'\n', line)?;
    if line.len() > MAX_LINE && line.ends_with(b"\r") {
        Read::take(&mut *talk, 1).read_until(b'\n', line)?;
    }
    if line.ends_with(b"\n") {
        line.pop();
        if line.ends_with(b"\r") {
            line.pop();
        }
        return Ok(true);
    }
    if too_long(line) {
        talk.write_all(TOO_LONG)?;
    }
    Ok(false)
}
