//! All exchanges of a run, laid out so that any run of requests is one slice to write and any run
//! of replies one slice to compare with. Knows nothing of what the bytes mean.

/// Exchanges in a script before it repeats; a power of two.
pub(crate) const EXCHANGES: usize = 1 << 18;

/// Requests back to back, the expected replies back to back, and where each begins.
#[derive(Default)]
pub(crate) struct Script {
    requests: Vec<u8>,
    replies: Vec<u8>,
    /// One more than exchanges: the end of one is the beginning of the next.
    begins: Vec<Begin>,
}

/// Where an exchange begins. Both offsets side by side: the hot path needs them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begin {
    /// Offset into the requests.
    pub request: u32,
    /// Offset into the replies.
    pub reply: u32,
}

impl Script {
    /// Appends an exchange.
    pub fn push(&mut self, request: &[u8], reply: &[u8]) {
        self.begins.push(self.end());
        self.requests.extend_from_slice(request);
        self.replies.extend_from_slice(reply);
    }

    /// Repeats the first `pipeline` exchanges at the end, so that what a connection has outstanding
    /// never wraps around.
    pub fn close(&mut self, pipeline: usize) {
        assert_eq!(self.begins.len(), EXCHANGES);
        for i in 0..pipeline as u32 {
            let (request, reply) = (self.request(i).to_vec(), self.reply(i).to_vec());
            self.push(&request, &reply);
        }
        self.begins.push(self.end());
    }

    /// Where exchange `i` begins.
    #[inline]
    pub fn begin(&self, i: u32) -> Begin {
        self.begins[i as usize]
    }

    /// How far apart an exchange and its repetition are.
    pub fn period(&self) -> Begin {
        self.begins[EXCHANGES]
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

    /// Reply `i`.
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
