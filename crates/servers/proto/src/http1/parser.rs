//! The fast parser of request heads. It finds the end of a head, its lines and the relevant fields
//! in one pass, in blocks of sixteen bytes.
//!
//! It either accepts a head or leaves the decision to the careful parser ([`super::scan`] and
//! [`super::head`]), which determines whether the head is malformed and how, or whether it is
//! incomplete. So each refusal is written once. This file must guarantee one thing: the careful
//! parser accepts every head accepted here, with the same meaning. The tests compare the two.

use super::{
    MAX_FIELDS, MAX_HEAD, MAX_LINE, Method, Version,
    fields::is_token_byte,
    framing::Found,
    head::RequestHead,
    target::{self, Split},
};
use crate::block::Block;

/// Parses the head at the front of `input`. Returns it and its length in bytes, or `None` if it must
/// be refused or is incomplete.
#[inline(never)]
pub(super) fn read(input: &[u8]) -> Option<(RequestHead, usize)> {
    // A head that exceeds its limit is incomplete in this slice.
    let head = &input[..input.len().min(MAX_HEAD)];
    let mut controls = Controls::new(head);
    let line_end = controls.line_end(head, 0)?;
    let (method, target_at) = method(head)?;
    let target_end =
        line_end.checked_sub(" HTTP/1.1".len()).filter(|_| line_end + 2 <= MAX_LINE)?;
    let [b' ', version @ ..] = head[target_end..].first_chunk::<9>()? else { return None };
    let version = Version::parse(*version)?;
    let split = target(head, method, target_at, target_end)?;
    let mut found = Found::default();
    let end = fields(head, line_end + 2, &mut controls, &mut found)?;
    found.check().ok()?;
    let read = RequestHead::new(method, target_end, split, version, &found).ok()?;
    Some((read, end))
}

/// Returns the method and where the target starts.
#[inline]
fn method(head: &[u8]) -> Option<(Method, usize)> {
    let start = u64::from_le_bytes(*head.first_chunk()?);
    let starts_with = |text: &[u8]| {
        let word = text.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        start << (64 - 8 * text.len()) == word << (64 - 8 * text.len())
    };
    Some(match () {
        () if starts_with(b"GET ") => (Method::Get, 4),
        () if starts_with(b"POST ") => (Method::Post, 5),
        () if starts_with(b"HEAD ") => (Method::Head, 5),
        () if starts_with(b"PUT ") => (Method::Put, 4),
        () if starts_with(b"DELETE ") => (Method::Delete, 7),
        () if starts_with(b"PATCH ") => (Method::Patch, 6),
        () if starts_with(b"OPTIONS ") => (Method::Options, 8),
        () if starts_with(b"TRACE ") => (Method::Trace, 6),
        () => return None,
    })
}

/// Checks the target from `start` to `end`. Returns the position of its path.
#[inline(always)]
fn target(head: &[u8], method: Method, start: usize, end: usize) -> Option<Split> {
    let target = head.get(start..end)?;
    let mut path_length = target.len();
    let mut checked = 0;
    while checked < target.len() {
        let (ordinary, question_marks) =
            masks(head, start + checked, |block| (block.path_bytes(), block.equal_to(b'?')));
        let left = target.len() - checked;
        if (ordinary.trailing_ones() as usize) < left.min(Block::LEN) {
            return unusual_target(method, target);
        }
        if question_marks != 0 {
            path_length = path_length.min(checked + question_marks.trailing_zeros() as usize);
        }
        checked += Block::LEN;
    }
    if *target.first()? != b'/' {
        return unusual_target(method, target);
    }
    Some(Split::at(path_length))
}

/// Checks a target that contains a character that is rare in paths, or that does not start with a
/// path.
#[cold]
fn unusual_target(method: Method, target: &[u8]) -> Option<Split> {
    target::check(method, target).ok()?;
    Some(Split::of(target))
}

/// Parses the field lines from `start` on, and the empty line. Returns where the head ends.
#[inline(always)]
fn fields(head: &[u8], start: usize, controls: &mut Controls, found: &mut Found) -> Option<usize> {
    let mut line = start;
    for _ in 0..MAX_FIELDS + 1 {
        let (ordinary, colons) =
            masks(head, line, |block| (block.name_bytes(), block.equal_to(b':')));
        let mut name_length = colons.trailing_zeros() as usize;
        // The bytes before the first colon; empty if it is the first byte. Without a colon, all bits
        // are set, also those above the block, which are never ordinary.
        let before_colon = (colons & colons.wrapping_neg()).wrapping_sub(1);
        if before_colon & !ordinary != 0 || before_colon == 0 {
            if head.get(line..)?.starts_with(b"\r\n") {
                return Some(line + 2);
            }
            name_length = unusual_name(&head[line..])?;
        }
        let end = controls.line_end(head, line)?;
        if matters(name_length, head[line]) {
            let (name, value) = (head.get(line..)?, line + name_length + 1);
            if name_length == 4 && is(&name[..4], b"host") {
                if found.host || !is_plain_host(head, value, end) {
                    found.host(trim(head.get(value..end)?)).ok()?;
                }
                found.host = true;
            } else {
                field(&name[..name_length], trim(head.get(value..end)?), found)?;
            }
        }
        line = end + 2;
    }
    None
}

/// Returns the length of a name that fills a block, is longer, or contains bytes other than letters,
/// digits and `-`. `None` if it is not a token followed by a colon.
#[inline(never)]
fn unusual_name(line: &[u8]) -> Option<usize> {
    let length = line.iter().take_while(|&&byte| is_token_byte(byte)).count();
    (length > 0 && line.get(length) == Some(&b':')).then_some(length)
}

/// Returns whether a field with this name length and first letter can be relevant. Few other names
/// share both with a relevant one.
#[inline]
fn matters(length: usize, letter: u8) -> bool {
    const FIRST: [u8; 18] = {
        let mut first = [0; 18];
        first["host".len()] = b'h';
        first["expect".len()] = b'e';
        first["upgrade".len()] = b'u';
        first["connection".len()] = b'c';
        first["content-length".len()] = b'c';
        first["transfer-encoding".len()] = b't';
        first
    };
    FIRST.get(length).is_some_and(|&first| first == letter | 0x20)
}

/// Records a field other than Host, if it is relevant. Returns `None` if it is malformed.
#[inline(never)]
fn field(name: &[u8], value: &[u8], found: &mut Found) -> Option<()> {
    match name.len() {
        10 if is(name, b"connection") => found.connection(value),
        14 if is(name, b"content-length") => found.content_length(value).ok()?,
        17 if is(name, b"transfer-encoding") => found.transfer_encoding(value).ok()?,
        7 if is(name, b"upgrade") => found.upgrade(value),
        6 if is(name, b"expect") => found.expect(value),
        _ => {}
    }
    Some(())
}

/// Compares a token with a lower-case name, ignoring case. Setting the bit 0x20 makes a letter
/// lower-case. It turns no other byte of a token into a byte of `lower`.
#[inline(always)]
fn is<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    let Ok(name): Result<&[u8; N], _> = name.try_into() else { return false };
    let word = |text: &[u8; N], at: usize| match text[at..].first_chunk() {
        Some(bytes) => u32::from_le_bytes(*bytes),
        None => 0,
    };
    let differ = |at: usize| (word(name, at) | 0x2020_2020) ^ word(lower, at);
    // The last word overlaps the previous one.
    (0..N / 4).fold(differ(N - 4), |differs, n| differs | differ(4 * n)) == 0
}

/// Returns whether the value from `start` to `end` is one space and a short name or IPv4 address
/// with an optional port. Most Host values are. [`target::is_host`] checks the others.
#[inline(always)]
fn is_plain_host(head: &[u8], start: usize, end: usize) -> bool {
    let (ordinary, digits) = masks(head, start, |block| (block.host_bytes(), block.digits()));
    let name_end = start + 1 + (ordinary >> 1).trailing_ones() as usize;
    let port = (digits >> 1).wrapping_shr((name_end - start) as u32).trailing_ones() as usize;
    let plain = name_end >= end || name_end + 1 + port >= end && head.get(name_end) == Some(&b':');
    plain && start < end && end <= start + Block::LEN && head[start] == b' '
}

/// Removes spaces and tabs from both ends of `value`.
#[inline]
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Returns two masks of the sixteen bytes at `at`. Bytes after the end of `head` are in no class.
#[inline(always)]
fn masks(head: &[u8], at: usize, classes: fn(Block) -> (u32, u32)) -> (u32, u32) {
    match head.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => classes(Block::new(bytes)),
        None => masks_at_end(head, at, classes),
    }
}

/// The same when fewer than sixteen bytes remain: the masks of the last sixteen bytes, without
/// those before `at`. No head is shorter than that.
#[cold]
fn masks_at_end(head: &[u8], at: usize, classes: fn(Block) -> (u32, u32)) -> (u32, u32) {
    let Some(last) = head.last_chunk() else { return (0, 0) };
    let (first, second) = classes(Block::new(last));
    let before = (at + Block::LEN).saturating_sub(head.len()).min(Block::LEN);
    (first >> before, second >> before)
}

/// The control characters of a head, as a mask of 64 bytes at a time.
///
/// Line ends are read from the mask. So the loads do not depend on where a line ends, and the
/// processor executes them ahead. Searching each line separately takes half as long again.
struct Controls {
    /// Where the 64 bytes start.
    at: usize,
    mask: u64,
}

impl Controls {
    const LEN: usize = 4 * Block::LEN;

    #[inline(always)]
    fn new(head: &[u8]) -> Self {
        Controls { at: 0, mask: Controls::mask(head, 0) }
    }

    #[inline(always)]
    fn mask(head: &[u8], at: usize) -> u64 {
        match head.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => Controls::mask_of(bytes),
            None => Controls::mask_at_end(head, at),
        }
    }

    #[inline(always)]
    fn mask_of(bytes: &[u8; Controls::LEN]) -> u64 {
        let (blocks, _) = bytes.as_chunks();
        blocks
            .iter()
            .rev()
            .fold(0, |mask, block| mask << Block::LEN | u64::from(Block::new(block).controls()))
    }

    /// The same when fewer than 64 bytes remain.
    #[cold]
    fn mask_at_end(head: &[u8], at: usize) -> u64 {
        (0..4).rev().fold(0, |mask, n| {
            let (controls, _) = masks(head, at + n * Block::LEN, |block| (block.controls(), 0));
            mask << Block::LEN | u64::from(controls)
        })
    }

    /// Returns the position of the CR LF that ends the line containing the byte at `from`. Returns
    /// `None` if it is missing, or if a control character other than a tab precedes it. `from` must
    /// not decrease from call to call.
    #[inline(always)]
    fn line_end(&mut self, head: &[u8], from: usize) -> Option<usize> {
        let mut from = from;
        loop {
            while from >= self.at + Controls::LEN || self.mask >> (from - self.at) == 0 {
                self.at += Controls::LEN;
                if self.at >= head.len() {
                    return None;
                }
                self.mask = Controls::mask(head, self.at);
                from = from.max(self.at);
            }
            let found = from + (self.mask >> (from - self.at)).trailing_zeros() as usize;
            match head.get(found..)? {
                [b'\r', b'\n', ..] => return Some(found),
                [b'\t', ..] => from = found + 1,
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests;
