//! Requests whose content is still arriving.

use std::time::Instant;

/// The requests of a connection that are incomplete, oldest first. There are at most as many as streams.
#[derive(Debug, Default)]
pub(super) struct Requests {
    all: Vec<Incomplete>,
    /// The memory of earlier ones.
    spare: Vec<Vec<u8>>,
    /// The length of all texts, in bytes.
    held: usize,
}

/// A request whose content is still arriving. The content itself is not kept.
#[derive(Debug)]
pub(super) struct Incomplete {
    pub stream: u32,
    /// The method, and behind it the target.
    text: Vec<u8>,
    method: usize,
    /// Bytes of content so far.
    pub content: usize,
    since: Instant,
}

/// Maximum length of the methods and targets of the incomplete requests of a connection, in bytes.
const MAX_HELD: usize = 64 * 1024;

impl Incomplete {
    pub fn method(&self) -> &[u8] {
        &self.text[..self.method]
    }

    pub fn target(&self) -> &[u8] {
        &self.text[self.method..]
    }
}

impl Requests {
    /// Adds a request. Returns `false` if too many bytes are held.
    pub fn add(&mut self, stream: u32, (method, target): (&[u8], &[u8]), since: Instant) -> bool {
        let length = method.len() + target.len();
        if self.held + length > MAX_HELD {
            return false;
        }
        self.held += length;
        let mut text = self.spare.pop().unwrap_or_default();
        text.extend_from_slice(method);
        text.extend_from_slice(target);
        self.all.push(Incomplete { stream, text, method: method.len(), content: 0, since });
        true
    }

    /// The request of a stream.
    pub fn get_mut(&mut self, stream: u32) -> Option<&mut Incomplete> {
        self.all.iter_mut().find(|request| request.stream == stream)
    }

    /// Removes the request of a stream, if it is incomplete.
    pub fn remove(&mut self, stream: u32) -> Option<Incomplete> {
        let at = self.all.iter().position(|request| request.stream == stream)?;
        let request = self.all.remove(at);
        self.held -= request.text.len();
        Some(request)
    }

    /// Keeps the memory of a request that was removed.
    pub fn recycle(&mut self, request: Incomplete) {
        let mut text = request.text;
        text.clear();
        self.spare.push(text);
    }

    /// When the oldest request arrived.
    pub fn oldest(&self) -> Option<Instant> {
        self.all.first().map(|request| request.since)
    }
}
