//! All exchanges of a run, laid out so that any sequence of requests is one slice to write. Where
//! every reply is known to the byte, any sequence of replies is one slice to compare with. Does not
//! interpret the bytes.

/// Maximum number of exchanges in a script before it repeats; a power of two.
pub const EXCHANGES: usize = 1 << 18;
/// Number of bytes of requests and replies after which a script gets no further conversation before
/// it repeats. Only long requests or replies reach it.
pub const BYTES: usize = 64 << 20;
/// Maximum number of bytes of all requests, and of all replies, with the repeated tail. Offsets are 32
/// bits wide, and the server needs the memory.
const MOST_BYTES: usize = 1 << 30;

/// Requests back to back, the expected replies back to back, and where each starts. If a reply is
/// not known to the byte, the text that it is compared with takes its place.
#[derive(Debug)]
pub struct Script {
    requests: Vec<u8>,
    replies: Vec<u8>,
    /// In a closed script, one more than there are exchanges: the end of one is the start of the
    /// next.
    begins: Vec<Begin>,
    /// Number of exchanges before it repeats.
    count: u32,
    conversations: Conversations,
}

/// Where an exchange starts. The offsets are side by side because the hot path needs both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// Offset into the requests.
    pub request: u32,
    /// Offset into the replies.
    pub reply: u32,
}

/// Where a conversation may start.
#[derive(Debug, PartialEq, Eq)]
pub enum Conversations {
    /// Every conversation has this number of exchanges.
    Each(u32),
    /// At these exchanges, in order; the first is 0. Initially empty, and filled by
    /// [`Script::begin_conversation`].
    At(Vec<u32>),
}

/// The requests or replies of a script exceed the limit of their memory.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Script {
    /// Creates an empty script.
    pub fn new(conversations: Conversations) -> Self {
        let (requests, replies, begins) = (Vec::new(), Vec::new(), Vec::new());
        Script { requests, replies, begins, count: 0, conversations }
    }

    /// Marks the next exchange as the first of a conversation.
    pub fn begin_conversation(&mut self) {
        if let Conversations::At(starts) = &mut self.conversations {
            starts.push(self.begins.len() as u32);
        }
    }

    /// Appends an exchange: the request, and the expected reply or the text that the reply is
    /// compared with.
    pub fn push(&mut self, request: &[u8], reply: &[u8]) {
        self.begins.push(self.end());
        self.requests.extend_from_slice(request);
        self.replies.extend_from_slice(reply);
    }

    /// Returns the same requests, not closed, with `reply` as the exact reply to each.
    pub fn answered_with(self, reply: &[u8]) -> Self {
        let begins = self.begins.iter().enumerate();
        let begin =
            |(i, begin): (usize, &Begin)| Begin { reply: (i * reply.len()) as u32, ..*begin };
        Script {
            begins: begins.map(begin).collect(),
            replies: reply.repeat(self.begins.len()),
            ..self
        }
    }

    /// The mean length of the requests so far, rounded down, in bytes.
    pub fn mean_request(&self) -> usize {
        self.requests.len() / self.begins.len().max(1)
    }

    /// Returns the same number of requests, not closed, all of the mean length. Their bytes make
    /// sense only to a server that counts them.
    pub fn levelled(self) -> Self {
        let mean = self.mean_request();
        let mut requests = self.requests;
        requests.truncate(mean * self.begins.len());
        let begins = self.begins.iter().enumerate();
        let begin = |(i, begin): (usize, &Begin)| Begin { request: (i * mean) as u32, ..*begin };
        Script { begins: begins.map(begin).collect(), requests, ..self }
    }

    /// Number of exchanges so far.
    pub fn pushed(&self) -> usize {
        self.begins.len()
    }

    /// Number of bytes of requests and replies so far.
    pub fn bytes(&self) -> usize {
        self.requests.len() + self.replies.len()
    }

    /// Repeats the first `pipeline` exchanges at the end, so that the requests in flight on a
    /// connection never wrap around.
    ///
    /// # Errors
    /// The exchanges take too much memory.
    pub fn close(&mut self, pipeline: usize) -> Result<(), TooLarge> {
        self.count = self.begins.len() as u32;
        assert!(self.count > 0 && self.count as usize <= EXCHANGES);
        let (times, rest) =
            (pipeline / self.begins.len(), self.begins[pipeline % self.begins.len()]);
        let closed = |bytes: usize, rest: u32| bytes * (1 + times) + rest as usize;
        let requests = closed(self.requests.len(), rest.request);
        if requests.max(closed(self.replies.len(), rest.reply)) > MOST_BYTES {
            return Err(TooLarge);
        }
        for i in 0..pipeline as u32 {
            let (request, reply) = (self.request(i).to_vec(), self.reply(i).to_vec());
            self.push(&request, &reply);
        }
        self.begins.push(self.end());
        Ok(())
    }

    /// Number of exchanges in a closed script, including the repeated tail.
    pub fn exchanges(&self) -> usize {
        self.begins.len() - 1
    }

    /// Number of exchanges before it repeats.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the first exchange from `i` on that starts a conversation. Wraps around to the first
    /// exchange after the last conversation.
    pub fn conversation_from(&self, i: u32) -> u32 {
        match &self.conversations {
            Conversations::Each(exchanges) => i.next_multiple_of(*exchanges) % self.count,
            Conversations::At(starts) => {
                let i = i % self.count;
                starts.get(starts.partition_point(|start| *start < i)).copied().unwrap_or(0)
            }
        }
    }

    /// Returns where exchange `i` starts.
    #[inline]
    pub fn begin(&self, i: u32) -> Begin {
        self.begins[i as usize]
    }

    /// Distance between an exchange and its repetition.
    pub fn period(&self) -> Begin {
        self.begins[self.count as usize]
    }

    /// The requests between two byte offsets.
    #[inline]
    pub fn requests(&self, from: u32, to: u32) -> &[u8] {
        &self.requests[from as usize..to as usize]
    }

    /// The replies between two byte offsets.
    #[inline]
    pub fn replies(&self, from: u32, to: u32) -> &[u8] {
        &self.replies[from as usize..to as usize]
    }

    /// Request `i`.
    pub fn request(&self, i: u32) -> &[u8] {
        self.requests(self.begin(i).request, self.begin_after(i).request)
    }

    /// Reply `i`; for a pattern, the text that it refers to.
    pub fn reply(&self, i: u32) -> &[u8] {
        self.replies(self.begin(i).reply, self.begin_after(i).reply)
    }

    /// Returns the exchange whose reply holds the byte at this offset.
    pub fn exchange_of_reply(&self, offset: u32) -> u32 {
        self.begins.partition_point(|begin| begin.reply <= offset) as u32 - 1
    }

    /// Number of exchanges whose complete request is before this offset.
    pub fn whole_requests(&self, offset: u32) -> u32 {
        self.begins.partition_point(|begin| begin.request <= offset) as u32 - 1
    }

    fn begin_after(&self, i: u32) -> Begin {
        self.begins.get(i as usize + 1).copied().unwrap_or(self.end())
    }

    fn end(&self) -> Begin {
        Begin { request: self.requests.len() as u32, reply: self.replies.len() as u32 }
    }
}

#[cfg(test)]
mod tests;
