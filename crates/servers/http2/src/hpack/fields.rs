//! A decoded field section.

use super::table::OVERHEAD;

/// The fields of one section, in their order. Its memory is used again for the next one.
#[derive(Debug, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// As the RFC counts it, over all fields that were decoded.
    size: usize,
    /// Whether fields were left out because they exceeded the limit.
    is_cut: bool,
}

/// A name and the value behind it.
#[derive(Clone, Copy, Debug)]
struct Span {
    at: usize,
    name: usize,
    value: usize,
    never_indexed: bool,
}

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name, as sent. Neither it nor the value needs to be text.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Whether the sender forbids to put it into a table (RFC 7541, 7.1.3).
    pub never_indexed: bool,
}

impl Fields {
    /// All fields, in their order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Field<'_>> {
        self.spans.iter().map(|span| self.field(*span))
    }

    /// The value of the first field with this name, in lowercase.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|field| field.name == name).map(|field| field.value)
    }

    /// The value of the field at a position, which exists.
    #[inline]
    pub(crate) fn value_at(&self, position: usize) -> &[u8] {
        self.spans.get(position).map_or(&[], |span| self.field(*span).value)
    }

    /// The size of the section, in bytes: names and values, and 32 for each field (RFC 9113, 6.5.2).
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether the section exceeded the limit. Then fields are missing.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    #[inline]
    fn field(&self, span: Span) -> Field<'_> {
        let middle = span.at + span.name;
        Field {
            name: &self.bytes[span.at..middle],
            value: &self.bytes[middle..middle + span.value],
            never_indexed: span.never_indexed,
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.size = 0;
        self.is_cut = false;
    }

    /// Adds a field that is in a table.
    #[inline]
    pub(super) fn push(&mut self, name: &[u8], value: &[u8], max: usize) {
        let at = self.bytes.len();
        if self.admit(name.len() + value.len(), max) {
            self.bytes.extend_from_slice(name);
            self.bytes.extend_from_slice(value);
            let (name, value) = (name.len(), value.len());
            self.spans.push(Span { at, name, value, never_indexed: false });
        }
    }

    /// The buffer to which the name and value of a literal field are appended, in this order.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Adds the field that was appended to the buffer: its name at `at`, its value at `middle`. Calls
    /// `insert` with both before it is removed again, if it exceeds the limit.
    pub(super) fn close(
        &mut self,
        (at, middle): (usize, usize),
        never_indexed: bool,
        max: usize,
        insert: impl FnOnce(&[u8], &[u8]),
    ) {
        let (name, value) = (middle - at, self.bytes.len() - middle);
        insert(&self.bytes[at..middle], &self.bytes[middle..]);
        if self.admit(name + value, max) {
            self.spans.push(Span { at, name, value, never_indexed });
        } else {
            self.bytes.truncate(at);
        }
    }

    /// Counts a field. Returns whether all fields so far are within the limit.
    #[inline]
    fn admit(&mut self, length: usize, max: usize) -> bool {
        self.size = self.size.saturating_add(length + OVERHEAD);
        self.is_cut |= self.size > max;
        !self.is_cut
    }
}
