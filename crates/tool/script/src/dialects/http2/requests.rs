//! The requests of a script as field blocks, compiled before the run.
//!
//! The fields that all requests have in common are inserted into the server's table by the first request
//! of each connection, and later ones refer to them. All other fields are literals, so the table does
//! not change and the blocks are the same on all connections. If the server permits a smaller table
//! than that, a connection uses none.

use crate::{
    dialects::http::reply::salted::{self, Salted, Salts},
    script::Script,
};
use regatta_http2::{
    frame::{Header, Kind, MIN_MAX_SIZE, flag, write},
    hpack::{Encoder, Indexing},
};
use std::ops::Range;

/// Size of the server's table until its settings have arrived, in bytes (RFC 9113, 6.5.2).
pub(super) const TABLE: u32 = 4096;

/// What an entry of the table takes besides its name and value, in bytes (RFC 7541, 4.1).
const OVERHEAD: usize = 32;

/// The update that sets the size of the table to 0 (RFC 7541, 6.3).
const NO_TABLE: &[u8] = &[0x20];

/// A name and a value.
type Field = (Vec<u8>, Vec<u8>);

/// All requests of a script.
#[derive(Debug)]
pub(super) struct Requests {
    /// Field blocks and contents.
    bytes: Vec<u8>,
    requests: Vec<Request>,
    common: Common,
    /// How requests get their salts, if each has its own.
    salted: Option<Salted>,
}

/// The fields that all requests have in common, in each form.
#[derive(Debug, Default)]
struct Common {
    inserting: Vec<u8>,
    indexed: Vec<u8>,
    literal: Vec<u8>,
}

/// Where the parts of a request are.
#[derive(Clone, Debug)]
struct Request {
    /// Its pseudo-header fields that are not common.
    lead: Range<usize>,
    /// Its other fields that are not common.
    rest: Range<usize>,
    content: Range<usize>,
    is_head: bool,
    /// Offset of its salt from the start of `lead`, if it has one.
    salt: Option<usize>,
}

/// The state of the server's table for requests, on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Table {
    /// Nothing was sent.
    #[default]
    Empty,
    /// It has the common fields.
    Filled,
    /// The server wants a smaller one: the next block sets its size to 0.
    Leaving,
    /// Its size is 0.
    Unused,
}

impl Table {
    /// The server permits a table of this size.
    pub fn limit(&mut self, size: u32) {
        if size < TABLE && *self != Table::Unused {
            *self = Table::Leaving;
        }
    }
}

impl Requests {
    /// Compiles the requests of a closed script, before its repeated tail. With `salted`, each path has the
    /// placeholder of a salt.
    pub fn compile(script: &Script, over_tls: bool, salted: Option<Salted>) -> Self {
        let are_salted = salted.is_some();
        let parsed: Vec<Parsed<'_>> =
            (0..script.count()).map(|i| Parsed::of(script.request(i), over_tls)).collect();
        let common = common(&parsed, are_salted);
        let mut bytes = Vec::new();
        let requests =
            parsed.iter().map(|parsed| parsed.compile(&common, are_salted, &mut bytes)).collect();
        Requests { requests, bytes, common: Common::of(&common), salted }
    }

    /// The content of a request.
    #[inline]
    pub fn content(&self, exchange: u32) -> &[u8] {
        &self.bytes[self.requests[exchange as usize].content.clone()]
    }

    /// Whether the method of a request is HEAD.
    #[inline]
    pub fn is_head(&self, exchange: u32) -> bool {
        self.requests[exchange as usize].is_head
    }

    /// How requests get their salts, if each has its own.
    pub fn salted(&self) -> Option<&Salted> {
        self.salted.as_ref()
    }

    /// The salt of a request, from the number of requests before it on its connection.
    #[inline]
    pub fn salt(&self, index: u32, salts: &Salts) -> Option<u64> {
        self.salted.as_ref().map(|salted| salted.salt(index, salts))
    }

    /// Appends the HEADERS frame of a request, and CONTINUATION frames if it is long. `salt` is written over its
    /// placeholder, if the request has one.
    pub fn write_head(
        &self,
        exchange: u32,
        (stream, salt): (u32, Option<u64>),
        table: &mut Table,
        out: &mut Vec<u8>,
    ) {
        let Request { lead, rest, content, salt: place, .. } = &self.requests[exchange as usize];
        let (update, common) = match *table {
            Table::Empty => (&[][..], &self.common.inserting),
            Table::Filled => (&[][..], &self.common.indexed),
            Table::Leaving => (NO_TABLE, &self.common.literal),
            Table::Unused => (&[][..], &self.common.literal),
        };
        *table = match *table {
            Table::Empty | Table::Filled => Table::Filled,
            Table::Leaving | Table::Unused => Table::Unused,
        };
        let parts = [update, &self.bytes[lead.clone()], common, &self.bytes[rest.clone()]];
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let ends = content.is_empty();
        if length > MIN_MAX_SIZE as usize {
            let mut block = parts.concat();
            place_salt(&mut block[update.len()..], *place, salt);
            return write::headers(out, |_| (), (stream, ends), &block, MIN_MAX_SIZE);
        }
        let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
        Header { length: length as u32, kind: Kind::HEADERS, flags, stream }.write(out);
        let start = out.len() + update.len();
        parts.iter().for_each(|part| out.extend_from_slice(part));
        place_salt(&mut out[start..], *place, salt);
    }
}

/// Writes a salt over its placeholder in a field block.
#[inline]
fn place_salt(block: &mut [u8], place: Option<usize>, salt: Option<u64>) {
    if let Some((at, salt)) = place.zip(salt) {
        block[at..][..salted::DIGITS].copy_from_slice(&salted::digits(salt));
    }
}

impl Common {
    fn of(fields: &[Field]) -> Self {
        let mut common = Common::default();
        let mut encoder = Encoder::default();
        encode(&mut encoder, fields, Indexing::Incremental, &mut common.inserting);
        encode(&mut encoder, fields, Indexing::Incremental, &mut common.indexed);
        encode(&mut Encoder::default(), fields, Indexing::Without, &mut common.literal);
        common
    }
}

fn encode<'f>(
    encoder: &mut Encoder,
    fields: impl IntoIterator<Item = &'f Field>,
    indexing: Indexing,
    out: &mut Vec<u8>,
) {
    let fields = fields.into_iter();
    encoder.encode(fields.map(|(name, value)| (&name[..], &value[..], indexing)), out);
}

/// The fields that all requests have, pseudo-header fields first, as many as the table holds. Paths with salts differ.
fn common(requests: &[Parsed<'_>], are_salted: bool) -> Vec<Field> {
    let Some((first, others)) = requests.split_first() else { return Vec::new() };
    let mut left = TABLE as usize;
    let mut common = first.fields.clone();
    common.retain(|field| {
        let size = field.0.len() + field.1.len() + OVERHEAD;
        let is_common = size <= left
            && !(are_salted && field.0 == b":path")
            && others.iter().all(|request| request.fields.contains(field));
        left -= if is_common { size } else { 0 };
        is_common
    });
    common
}

/// A request as HTTP/1.1 writes it, split into fields.
struct Parsed<'s> {
    /// All fields, pseudo-header fields first.
    fields: Vec<Field>,
    content: &'s [u8],
}

impl<'s> Parsed<'s> {
    /// Splits a request, which the script wrote.
    fn of(request: &'s [u8], over_tls: bool) -> Self {
        let end = memchr::memmem::find(request, b"\r\n\r\n").map_or(request.len(), |at| at + 4);
        let (head, content) = request.split_at(end);
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        let mut line = lines.next().unwrap_or_default().split(|byte| *byte == b' ');
        let mut word = || line.next().unwrap_or_default().to_vec();
        let scheme = if over_tls { &b"https"[..] } else { b"http" };
        let field = |name: &[u8], value: Vec<u8>| (name.to_vec(), value);
        let mut fields = vec![
            field(b":method", word()),
            field(b":scheme", scheme.to_vec()),
            field(b":path", word()),
        ];
        let mut is_chunked = false;
        for line in lines {
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let name = line[..colon].to_ascii_lowercase();
            let value = line[colon + 1..].trim_ascii().to_vec();
            match &name[..] {
                b"host" => fields.insert(3, field(b":authority", value)),
                // Fields of a connection of HTTP/1.1 (RFC 9113, 8.2.2).
                b"connection" | b"keep-alive" | b"proxy-connection" | b"upgrade"
                | b"http2-settings" => {}
                // Frames have the place of chunks (RFC 9113, 8.1).
                b"transfer-encoding" => is_chunked = true,
                b"te" if value != b"trailers" => {}
                _ => fields.push((name, value)),
            }
        }
        Parsed { fields, content: if is_chunked { chunk(content) } else { content } }
    }

    /// Appends the field blocks and the content.
    fn compile(&self, common: &[Field], is_salted: bool, bytes: &mut Vec<u8>) -> Request {
        let mut left = common.to_vec();
        let own: Vec<&Field> = self.fields.iter().filter(|field| !take(&mut left, field)).collect();
        let is_pseudo = |field: &&&Field| field.0.starts_with(b":");
        // The table changes between the connection's first request and the others, so these blocks refer
        // only to the static one.
        let mut part = |fields: Vec<&Field>| {
            let start = bytes.len();
            // In Huffman codes, the place of a salt depends on its digits.
            let encoder = Encoder::default();
            let mut encoder = if is_salted { encoder.plain() } else { encoder };
            encode(&mut encoder, fields, Indexing::Without, bytes);
            start..bytes.len()
        };
        let lead = part(own.iter().filter(is_pseudo).copied().collect());
        let rest = part(own.iter().filter(|field| !is_pseudo(field)).copied().collect());
        let start = bytes.len();
        bytes.extend_from_slice(self.content);
        let is_head = self.fields.first().is_some_and(|(_, method)| method == b"HEAD");
        let salt = memchr::memmem::find(&bytes[lead.clone()], salted::PLACE.as_bytes());
        let salt = salt.filter(|_| is_salted);
        Request { lead, rest, content: start..bytes.len(), is_head, salt }
    }
}

/// Returns the content of a body of at most one chunk, as a workload file sends it.
fn chunk(body: &[u8]) -> &[u8] {
    const END: &[u8] = b"\r\n0\r\n\r\n";
    let line = memchr::memmem::find(body, b"\r\n").map_or(body.len(), |at| at + 2);
    body[line..].strip_suffix(END).unwrap_or(&[])
}

/// Removes a field from a list. Returns whether it was there.
fn take(from: &mut Vec<Field>, field: &Field) -> bool {
    let at = from.iter().position(|other| other == field);
    at.is_some_and(|at| {
        from.remove(at);
        true
    })
}

#[cfg(test)]
mod tests;
