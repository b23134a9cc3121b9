//! A response while it arrives, and whether it is right. The rules of HTTP/2 itself are checked before, in
//! the crate `http2`.

use super::response::Response;
use crate::{
    dialects::http::reply::{
        check,
        criteria::Criteria,
        expected::{Content, Expected},
        partial_reply::SHOWN,
    },
    text::cut,
};
use regatta_http2::{client::Head, hpack::Fields};

/// Maximum capacity of a buffer for content that is kept for the next response, in bytes.
const KEPT: usize = 1 << 16;

/// What has arrived of a response.
#[derive(Debug, Default)]
pub struct Reply {
    /// Its status; 0 until its head has arrived.
    status: u16,
    /// The content that is checked when it is complete.
    content: Vec<u8>,
    /// The content was in one piece, and is right.
    is_checked: bool,
    /// Whether anything of the content has arrived.
    has_content: bool,
    /// What is wrong, if that is tolerated; the rest of the response is then not checked.
    wrong: Option<Fault>,
}

/// Why a response is wrong.
#[derive(Debug)]
enum Fault {
    /// Its head; holds the fields.
    Head(String),
    /// Its content exceeds this maximum number of bytes.
    TooLong(usize),
    /// Its content; holds the start of it.
    Content(String),
}

impl Fault {
    fn in_words(&self, status: u16) -> String {
        match self {
            Fault::Head(fields) => fields.clone(),
            Fault::TooLong(most) => {
                format!("the status {status} and more than {most} bytes of content")
            }
            Fault::Content(content) => format!("the status {status} and the content {content}"),
        }
    }
}

impl Response for Reply {
    type Expected = Expected;

    /// A server need not read content that it does not use (RFC 9113, 8.1).
    const FOLLOWS_REQUEST: bool = false;
    const OVER_HTTP1: &str = "load it without --http2";

    #[cold]
    fn in_words(expected: &Expected, text: &[u8]) -> String {
        expected.in_words(text)
    }

    #[inline]
    fn same_heads(expected: &Expected) -> bool {
        expected.given_fields() == 0
    }

    fn clear(&mut self) {
        self.status = 0;
        self.content.clear();
        self.content.shrink_to(KEPT);
        (self.is_checked, self.has_content) = (false, false);
        self.wrong = None;
    }

    #[inline]
    fn status(&self) -> u16 {
        self.status
    }

    #[inline]
    fn head(&mut self, head: &Head<'_>, is_known: bool, criteria: Criteria<'_>) {
        self.status = head.status;
        let fields = || head.fields.iter().map(|field| (field.name, field.value));
        if !is_known && !check::head(criteria.expected, head.status, fields, criteria.text) {
            self.wrong = Some(Fault::Head(in_words(head)));
        }
        if head.ends {
            self.piece(b"", true, criteria);
        }
    }

    #[inline]
    fn piece(&mut self, piece: &[u8], is_all: bool, criteria: Criteria<'_>) {
        if self.wrong.is_some() || matches!(criteria.expected.content, Content::Any) {
            return;
        }
        if is_all && !self.has_content {
            self.is_checked = true;
            return self.check(piece, criteria);
        }
        self.has_content |= !piece.is_empty();
        let text = criteria.expected.parts(criteria.text).content;
        let expected = &criteria.expected.content;
        let longest = expected.longest(text);
        if piece.len() > longest.saturating_sub(self.content.len()) {
            self.wrong = Some(Fault::TooLong(longest));
            return;
        }
        let more = expected.checked_bytes(text).saturating_sub(self.content.len());
        self.content.extend_from_slice(&piece[..piece.len().min(more)]);
    }

    /// No workload expects fields behind the content.
    #[inline]
    fn trailers(&mut self, _: &Fields, _: Criteria<'_>) {}

    #[inline]
    fn end(&mut self, criteria: Criteria<'_>) -> Option<String> {
        let is_unchecked = matches!(criteria.expected.content, Content::Any) || self.is_checked;
        if self.wrong.is_none() && !is_unchecked {
            let content = std::mem::take(&mut self.content);
            self.check(&content, criteria);
            self.content = content;
        }
        self.fault(false)
    }

    #[cold]
    fn refuse(&mut self, why: String) {
        self.wrong.get_or_insert(Fault::Head(why));
    }

    #[inline]
    fn is_wrong(&self) -> bool {
        self.wrong.is_some()
    }

    #[inline]
    fn fault(&mut self, tolerates: bool) -> Option<String> {
        let fault = self.wrong.take_if(|_| !tolerates)?;
        Some(fault.in_words(self.status))
    }
}

impl Reply {
    #[inline]
    fn check(&mut self, content: &[u8], criteria: Criteria<'_>) {
        if check::content(criteria, content).is_none() {
            self.wrong = Some(Fault::Content(cut(content, SHOWN)));
        }
    }
}

/// The fields of a head, for people.
#[cold]
fn in_words(head: &Head<'_>) -> String {
    let mut text = Vec::new();
    for field in head.fields.iter() {
        text.extend_from_slice(field.name);
        text.extend_from_slice(b": ");
        text.extend_from_slice(field.value);
        text.extend_from_slice(b"\r\n");
    }
    cut(&text, SHOWN)
}
