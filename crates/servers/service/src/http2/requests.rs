//! Requests whose content is still arriving.

use std::time::Instant;

/// The requests of a connection that are incomplete, oldest first. There are at most as many as streams.
#[derive(Debug, Default)]
pub(super) struct Requests {
    all: Vec<Incomplete>,
    /// The memory of earlier ones, at most [`MAX_HELD`].
    spare: Vec<Vec<u8>>,
    /// Its size, in bytes.
    spared: usize,
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

/// Maximum length of the methods and targets of the incomplete requests of a connection, in bytes, and
/// maximum memory that is kept for later ones.
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
        self.spared -= text.capacity();
        text.reserve_exact(length);
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

    /// Keeps the memory of a request that was removed, if there is room for it.
    pub fn recycle(&mut self, request: Incomplete) {
        let mut text = request.text;
        if self.spared + text.capacity() <= MAX_HELD {
            text.clear();
            self.spared += text.capacity();
            self.spare.push(text);
        }
    }

    /// When the oldest request arrived.
    pub fn oldest(&self) -> Option<Instant> {
        self.all.first().map(|request| request.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_earlier_requests_is_bounded() {
        let (mut requests, now, long) = (Requests::default(), Instant::now(), [b'/'; 8000]);
        let mut next = 1;
        for _ in 0..250 {
            // Short ones grow with each round.
            let targets = (0..8).map(|nth| &long[..if nth == 7 { 8000 } else { 9 }]);
            let streams: Vec<u32> = targets
                .map(|target| {
                    next += 2;
                    assert!(requests.add(next, (b"POST", target), now));
                    next
                })
                .collect();
            for stream in streams {
                let request = requests.remove(stream).expect("it was added");
                requests.recycle(request);
            }
            let kept: usize = requests.spare.iter().map(Vec::capacity).sum();
            assert_eq!(kept, requests.spared);
            assert!(kept <= MAX_HELD, "{kept}");
        }
    }
}
