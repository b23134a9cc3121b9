//! All exchanges of a run, laid out so that any run of requests is one slice to write and, where
//! every reply is known to the byte, any run of replies one slice to compare with. Knows nothing of
//! what the bytes mean.

use crate::{
    http::{Expected, Replies},
    patterns::{Due, Patterns},
};

/// Most exchanges in a script before it repeats; a power of two.
pub(crate) const EXCHANGES: usize = 1 << 18;
/// Most bytes of requests and replies in a script before it repeats. Only long lines meet it.
pub(crate) const BYTES: usize = 64 << 20;
/// Most bytes of all requests, and of all replies, the repeated tail included: offsets are 32 bits
/// wide, and memory is for the server.
const MOST_BYTES: usize = 1 << 30;

/// Requests back to back, the expected replies back to back, and where each begins.
pub struct Script {
    requests: Vec<u8>,
    replies: Vec<u8>,
    /// One more than exchanges: the end of one is the beginning of the next.
    begins: Vec<Begin>,
    /// Exchanges before it repeats.
    count: u32,
    conversations: Conversations,
    /// Where not all replies are known to the byte: what must come instead.
    patterns: Option<Patterns>,
    /// Where replies are HTTP: what must come instead. What stands among the replies is the text that
    /// a content is compared with.
    http: Option<Replies>,
}

/// Where an exchange begins. Both offsets side by side: the hot path needs them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begin {
    /// Offset into the requests.
    pub request: u32,
    /// Offset into the replies.
    pub reply: u32,
}

/// Where a conversation may begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Conversations {
    /// All have so many exchanges.
    Each(u32),
    /// At these exchanges, in order; the first is 0. Begun empty, and filled by
    /// [`Script::begin_conversation`].
    At(Vec<u32>),
}

/// The script does not fit into memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Script {
    /// An empty one.
    pub(crate) fn new(conversations: Conversations, patterns: Option<Patterns>) -> Self {
        let (requests, replies, begins) = (Vec::new(), Vec::new(), Vec::new());
        Script { requests, replies, begins, count: 0, conversations, patterns, http: None }
    }

    /// An empty one whose replies are HTTP, of these kinds.
    pub(crate) fn http(conversations: Conversations, kinds: Vec<Expected>) -> Self {
        let http = Some(Replies { kinds, of: Vec::new() });
        Script { http, ..Script::new(conversations, None) }
    }

    /// The next exchange is the first of a conversation.
    pub(crate) fn begin_conversation(&mut self) {
        if let Conversations::At(starts) = &mut self.conversations {
            starts.push(self.begins.len() as u32);
        }
    }

    /// Appends an exchange. Without patterns the reply is to be `reply`, its newline included; with
    /// patterns, a line that is as `due` says of `reply`.
    pub(crate) fn push(&mut self, request: &[u8], reply: &[u8], due: Due) {
        self.append(request, reply);
        if let Some(patterns) = &mut self.patterns {
            patterns.push(due);
        }
    }

    /// Appends an exchange whose reply is HTTP, of this kind; `text` is what its content is compared
    /// with.
    pub(crate) fn push_http(&mut self, request: &[u8], text: &[u8], kind: u16) {
        self.append(request, text);
        if let Some(replies) = &mut self.http {
            replies.of.push(kind);
        }
    }

    /// The same requests, not closed either; the reply to each is to be `reply`, to the byte.
    pub(crate) fn answered_with(self, reply: &[u8]) -> Self {
        let begins = self.begins.iter().enumerate();
        let begin =
            |(i, begin): (usize, &Begin)| Begin { reply: (i * reply.len()) as u32, ..*begin };
        Script {
            begins: begins.map(begin).collect(),
            replies: reply.repeat(self.begins.len()),
            patterns: None,
            http: None,
            ..self
        }
    }

    /// Exchanges so far.
    pub(crate) fn pushed(&self) -> usize {
        self.begins.len()
    }

    /// Bytes so far, of requests and replies.
    pub(crate) fn bytes(&self) -> usize {
        self.requests.len() + self.replies.len()
    }

    /// Repeats the first `pipeline` exchanges at the end, so that what a connection has outstanding
    /// never wraps around.
    pub(crate) fn close(&mut self, pipeline: usize) -> Result<(), TooLarge> {
        self.count = self.begins.len() as u32;
        assert!(self.count > 0 && self.count as usize <= EXCHANGES);
        for i in 0..pipeline as u32 {
            if self.requests.len().max(self.replies.len()) > MOST_BYTES {
                return Err(TooLarge);
            }
            let (request, reply) = (self.request(i).to_vec(), self.reply(i).to_vec());
            self.append(&request, &reply);
            if let Some(replies) = &mut self.http {
                replies.of.push(replies.of[i as usize]);
            }
        }
        self.begins.push(self.end());
        Ok(())
    }

    /// Exchanges before it repeats.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// What must come where not all replies are known to the byte.
    #[inline]
    pub(crate) fn patterns(&self) -> Option<&Patterns> {
        self.patterns.as_ref()
    }

    /// What must come where replies are HTTP.
    #[inline]
    pub fn replies_in_http(&self) -> Option<&Replies> {
        self.http.as_ref()
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
    pub(crate) fn begin(&self, i: u32) -> Begin {
        self.begins[i as usize]
    }

    /// How far apart an exchange and its repetition are.
    pub(crate) fn period(&self) -> Begin {
        self.begins[self.count as usize]
    }

    /// The requests from one byte offset to another.
    #[inline]
    pub(crate) fn requests(&self, from: u32, to: u32) -> &[u8] {
        &self.requests[from as usize..to as usize]
    }

    /// The replies from one byte offset to another.
    #[inline]
    pub(crate) fn replies(&self, from: u32, to: u32) -> &[u8] {
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
    pub(crate) fn exchange_of_reply(&self, offset: u32) -> u32 {
        self.begins.partition_point(|begin| begin.reply <= offset) as u32 - 1
    }

    /// How many exchanges have their whole request before this offset.
    pub(crate) fn whole_requests(&self, offset: u32) -> u32 {
        self.begins.partition_point(|begin| begin.request <= offset) as u32 - 1
    }

    fn append(&mut self, request: &[u8], reply: &[u8]) {
        self.begins.push(self.end());
        self.requests.extend_from_slice(request);
        self.replies.extend_from_slice(reply);
    }

    fn begin_after(&self, i: u32) -> Begin {
        self.begins.get(i as usize + 1).copied().unwrap_or(self.end())
    }

    fn end(&self) -> Begin {
        Begin { request: self.requests.len() as u32, reply: self.replies.len() as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_longer_than_the_script_goes_round_it_more_than_once() {
        let mut script = Script::new(Conversations::Each(1), None);
        script.push(b"a\n", b"A\n", Due::Exact);
        script.push(b"bb\n", b"BB\n", Due::Exact);
        script.close(5).unwrap();
        assert_eq!((script.count(), script.period()), (2, Begin { request: 5, reply: 5 }));
        assert_eq!((script.request(6), script.reply(5)), (&b"a\n"[..], &b"BB\n"[..]));
    }

    #[test]
    fn conversations_of_any_length_begin_where_they_do() {
        let with = |conversations| {
            let mut script = Script::new(conversations, None);
            for i in 0..6 {
                if [0, 1, 5].contains(&i) {
                    script.begin_conversation();
                }
                script.push(b"\n", b"\n", Due::Exact);
            }
            script.close(4).unwrap();
            script
        };
        let of = |script: &Script| [0, 1, 2, 3, 5, 6, 7, 9].map(|i| script.conversation_from(i));
        assert_eq!(of(&with(Conversations::Each(1))), [0, 1, 2, 3, 5, 0, 1, 3]);
        assert_eq!(of(&with(Conversations::Each(2))), [0, 2, 2, 4, 0, 0, 2, 4]);
        assert_eq!(of(&with(Conversations::At(vec![]))), [0, 1, 5, 5, 5, 0, 1, 5]);
    }

    #[test]
    fn a_tail_that_does_not_fit_is_refused() {
        let mut script = Script::new(Conversations::Each(1), None);
        script.push(&vec![b'x'; 1 << 20], b"\n", Due::Exact);
        assert_eq!(script.close(2_000), Err(TooLarge));
    }
}
