//! All exchanges of a run, laid out so that any run of requests is one slice to write and, where
//! every reply is known to the byte, any run of replies one slice to compare with. Knows nothing of
//! what the bytes mean.

/// Most exchanges in a script before it repeats; a power of two.
pub const EXCHANGES: usize = 1 << 18;
/// Most bytes of requests and replies in a script before it repeats. Only long lines meet it.
pub const BYTES: usize = 64 << 20;
/// Most bytes of all requests, and of all replies, the repeated tail included: offsets are 32 bits
/// wide, and memory is for the server.
const MOST_BYTES: usize = 1 << 30;

/// Requests back to back, the expected replies back to back, and where each begins. Where a reply is
/// not known to the byte, what stands in its place is the text that it is compared with.
#[derive(Debug)]
pub struct Script {
    requests: Vec<u8>,
    replies: Vec<u8>,
    /// One more than exchanges: the end of one is the beginning of the next.
    begins: Vec<Begin>,
    /// Exchanges before it repeats.
    count: u32,
    conversations: Conversations,
}

/// Where an exchange begins. Both offsets side by side: the hot path needs them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// Offset into the requests.
    pub request: u32,
    /// Offset into the replies.
    pub reply: u32,
}

/// Where a conversation may begin.
#[derive(Debug, PartialEq, Eq)]
pub enum Conversations {
    /// All have so many exchanges.
    Each(u32),
    /// At these exchanges, in order; the first is 0. Begun empty, and filled by
    /// [`Script::begin_conversation`].
    At(Vec<u32>),
}

/// The script does not fit into memory.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Script {
    /// An empty one.
    pub fn new(conversations: Conversations) -> Self {
        let (requests, replies, begins) = (Vec::new(), Vec::new(), Vec::new());
        Script { requests, replies, begins, count: 0, conversations }
    }

    /// The next exchange is the first of a conversation.
    pub fn begin_conversation(&mut self) {
        if let Conversations::At(starts) = &mut self.conversations {
            starts.push(self.begins.len() as u32);
        }
    }

    /// Appends an exchange: the bytes that ask, and those that are to come, or the text that what
    /// comes is compared with.
    pub fn push(&mut self, request: &[u8], reply: &[u8]) {
        self.begins.push(self.end());
        self.requests.extend_from_slice(request);
        self.replies.extend_from_slice(reply);
    }

    /// The same requests, not closed either; the reply to each is to be `reply`, to the byte.
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

    /// The same bytes of requests, not closed either, as requests that all have the mean length. They
    /// make sense only to a server that counts bytes.
    pub fn levelled(self) -> Self {
        let mean = self.mean_request();
        let mut requests = self.requests;
        requests.truncate(mean * self.begins.len());
        let begins = self.begins.iter().enumerate();
        let begin = |(i, begin): (usize, &Begin)| Begin { request: (i * mean) as u32, ..*begin };
        Script { begins: begins.map(begin).collect(), requests, ..self }
    }

    /// Exchanges so far.
    pub fn pushed(&self) -> usize {
        self.begins.len()
    }

    /// Bytes so far, of requests and replies.
    pub fn bytes(&self) -> usize {
        self.requests.len() + self.replies.len()
    }

    /// Repeats the first `pipeline` exchanges at the end, so that what a connection has outstanding
    /// never wraps around.
    ///
    /// # Errors
    /// They take too much memory.
    pub fn close(&mut self, pipeline: usize) -> Result<(), TooLarge> {
        self.count = self.begins.len() as u32;
        assert!(self.count > 0 && self.count as usize <= EXCHANGES);
        for i in 0..pipeline as u32 {
            if self.requests.len().max(self.replies.len()) > MOST_BYTES {
                return Err(TooLarge);
            }
            let (request, reply) = (self.request(i).to_vec(), self.reply(i).to_vec());
            self.push(&request, &reply);
        }
        self.begins.push(self.end());
        Ok(())
    }

    /// Exchanges of a closed script, the repeated tail included.
    pub fn exchanges(&self) -> usize {
        self.begins.len() - 1
    }

    /// Exchanges before it repeats.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The first exchange from `i` on that a conversation begins with; after the last one, the
    /// first of all.
    pub fn conversation_from(&self, i: u32) -> u32 {
        match &self.conversations {
            Conversations::Each(exchanges) => i.next_multiple_of(*exchanges) % self.count,
            Conversations::At(starts) => {
                let i = i % self.count;
                starts.get(starts.partition_point(|start| *start < i)).copied().unwrap_or(0)
            }
        }
    }

    /// Where exchange `i` begins.
    #[inline]
    pub fn begin(&self, i: u32) -> Begin {
        self.begins[i as usize]
    }

    /// How far apart an exchange and its repetition are.
    pub fn period(&self) -> Begin {
        self.begins[self.count as usize]
    }

    /// The requests from one byte offset to another.
    #[inline]
    pub fn requests(&self, from: u32, to: u32) -> &[u8] {
        &self.requests[from as usize..to as usize]
    }

    /// The replies from one byte offset to another.
    #[inline]
    pub fn replies(&self, from: u32, to: u32) -> &[u8] {
        &self.replies[from as usize..to as usize]
    }

    /// Request `i`.
    pub fn request(&self, i: u32) -> &[u8] {
        self.requests(self.begin(i).request, self.begin_after(i).request)
    }

    /// Reply `i`; of a pattern, the text that belongs to it.
    pub fn reply(&self, i: u32) -> &[u8] {
        self.replies(self.begin(i).reply, self.begin_after(i).reply)
    }

    /// The exchange whose reply holds the byte at this offset.
    pub fn exchange_of_reply(&self, offset: u32) -> u32 {
        self.begins.partition_point(|begin| begin.reply <= offset) as u32 - 1
    }

    /// How many exchanges have their whole request before this offset.
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
