//! Replies as a field block and content. They become frames when their stream is known.

use crate::{Flow, http};
use regatta_http2::{
    hpack::{Encoder, Indexing},
    server::Response,
};
use regatta_proto::http1::{Date, Reply};

/// What a request requires of its reply's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The request was HEAD: the reply's content is omitted (RFC 9110, 9.3.2).
    pub head_only: bool,
}

/// A reply that is written once.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    bytes: Vec<u8>,
    /// The form and the second of the date.
    of: Option<(Form, u64)>,
}

/// The length of the field block, in front of it.
const LENGTH: usize = 4;

impl http::Form for Form {
    type Prepared = Prepared;

    /// Appends the length of a field block, the block and the content.
    fn write(self, reply: &Reply<'_>, date: &Date, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0; LENGTH]);
        let (mut status, mut length) = (itoa::Buffer::new(), itoa::Buffer::new());
        let has_content = reply.status.has_content();
        let fields: [(&[u8], &[u8], bool); 5] = [
            (b":status", status.format(reply.status.code()).as_bytes(), true),
            (b"date", date.value(), true),
            (b"allow", reply.allow.as_bytes(), !reply.allow.is_empty()),
            (b"content-type", reply.content_type.as_bytes(), has_content),
            (b"content-length", length.format(reply.content.len()).as_bytes(), has_content),
        ];
        let fields = fields.into_iter().filter(|(_, value, has)| *has && !value.is_empty());
        let fields = fields.map(|(name, value, _)| (name, value, Indexing::Without));
        Encoder::default().plain().encode(fields, out);
        let block = (out.len() - at - LENGTH) as u32;
        out[at..at + LENGTH].copy_from_slice(&block.to_be_bytes());
        if has_content && !self.head_only {
            out.extend_from_slice(reply.content);
        }
    }

    #[inline]
    fn flow(self) -> Flow {
        Flow::Continue
    }

    #[inline]
    fn is_prepared(self, prepared: &Prepared, date: &Date) -> bool {
        prepared.of == Some((self, date.unix_s()))
    }

    fn prepare(self, prepared: &mut Prepared, reply: &Reply<'_>, date: &Date) {
        prepared.bytes.clear();
        self.write(reply, date, &mut prepared.bytes);
        prepared.of = Some((self, date.unix_s()));
    }

    #[inline]
    fn append(self, prepared: &Prepared, out: &mut Vec<u8>) {
        out.extend_from_slice(&prepared.bytes);
    }
}

/// Reads a reply that a [`Form`] has written.
#[inline]
pub(super) fn response(written: &[u8]) -> Response<'_> {
    let (length, rest) = written.split_first_chunk::<LENGTH>().unwrap_or((&[0; LENGTH], &[]));
    let length = u32::from_be_bytes(*length) as usize;
    let (block, content) = rest.split_at_checked(length).unwrap_or((rest, &[]));
    Response { block, content }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Form as _;
    use regatta_http2::hpack::{Decoder, Fields};
    use regatta_proto::http1::Status;

    fn text(reply: Reply<'_>, head_only: bool) -> (String, Vec<u8>) {
        let (mut out, mut fields) = (Vec::new(), Fields::default());
        Form { head_only }.write(&reply, &Date::at(784_111_777), &mut out);
        let Response { block, content } = response(&out);
        let mut decoder = Decoder::new(4096);
        decoder.decode(block, &mut fields).unwrap();
        assert_eq!(decoder.table().count(), 0);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let line = |name, value| format!("{}={}", text(name), text(value));
        let lines: Vec<String> = fields.iter().map(|field| line(field.name, field.value)).collect();
        (lines.join("; "), content.to_vec())
    }

    #[test]
    fn a_reply_has_the_fields_and_the_content_of_the_one_over_http_1() {
        let date = "date=Sun, 06 Nov 1994 08:49:37 GMT";
        let fields = format!(":status=200; {date}; content-type=text/plain; content-length=3");
        let hello = Reply::text(Status::Ok, b"abc");
        assert_eq!(text(hello, false), (fields.clone(), b"abc".to_vec()));
        assert_eq!(text(hello, true), (fields, vec![]));
        let options = format!(":status=204; {date}; allow=GET");
        assert_eq!(text(Reply::options("GET"), false), (options, vec![]));
        let (fields, content) = text(Reply::method_not_allowed("GET"), false);
        assert!(fields.starts_with(&format!(":status=405; {date}; allow=GET; ")), "{fields}");
        assert!(fields.ends_with(&content.len().to_string()), "{fields}");
    }
}
