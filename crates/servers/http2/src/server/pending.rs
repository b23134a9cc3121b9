//! Content that waits for a window.

use std::collections::VecDeque;

/// The unsent parts of responses. Their memory is used again.
#[derive(Debug, Default)]
pub(super) struct Pending {
    parts: Vec<Part>,
    free: Vec<u32>,
    /// The streams that have one, in the order in which they are served.
    waiting: VecDeque<u32>,
    /// Memory of the free parts, in bytes.
    kept: usize,
}

#[derive(Debug, Default)]
struct Part {
    bytes: Vec<u8>,
    /// Number of bytes that were sent.
    sent: usize,
}

/// Maximum memory of the parts that are free, in bytes. That of others is given back.
const MAX_KEPT: usize = 64 * 1024;

impl Pending {
    /// Stores content of a stream. Returns its position.
    pub fn add(&mut self, stream: u32, content: &[u8]) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.parts.push(Part::default());
            self.parts.len() as u32 - 1
        });
        let bytes = &mut self.parts[at as usize].bytes;
        self.kept -= bytes.capacity();
        bytes.extend_from_slice(content);
        self.waiting.push_back(stream);
        at
    }

    /// Number of streams that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the stream that waits longest.
    pub fn next(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }

    /// Lets a stream that was taken wait again, behind the others.
    pub fn wait_again(&mut self, stream: u32) {
        self.waiting.push_back(stream);
    }

    /// The unsent bytes at a position.
    pub fn unsent(&self, at: u32) -> &[u8] {
        let part = &self.parts[at as usize];
        &part.bytes[part.sent..]
    }

    /// Marks bytes as sent.
    pub fn advance(&mut self, at: u32, bytes: usize) {
        self.parts[at as usize].sent += bytes;
    }

    /// Frees a position.
    pub fn free(&mut self, at: u32) {
        let part = &mut self.parts[at as usize];
        part.bytes.clear();
        part.sent = 0;
        if self.kept + part.bytes.capacity() > MAX_KEPT {
            part.bytes = Vec::new();
        }
        self.kept += part.bytes.capacity();
        self.free.push(at);
    }

    /// Removes a stream from those that wait.
    pub fn forget(&mut self, stream: u32) {
        self.waiting.retain(|other| *other != stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_free_parts_is_bounded() {
        let mut pending = Pending::default();
        for _ in 0..3 {
            let all: Vec<u32> = (0..256).map(|id| pending.add(2 * id + 1, &[7; 4000])).collect();
            assert_eq!(pending.kept, 0);
            all.into_iter().for_each(|at| pending.free(at));
            let kept: usize = pending.parts.iter().map(|part| part.bytes.capacity()).sum();
            assert_eq!(pending.kept, kept);
            assert!((60_000..=MAX_KEPT).contains(&kept), "{kept}");
        }
    }
}
