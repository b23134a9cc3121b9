//! Bytes formatted for people: printable and of limited length.

use regatta_record::Exchange;

/// Escapes bytes to printable ASCII and cuts them after 200 characters: see [`cut`].
pub fn printable(bytes: &[u8]) -> String {
    cut(bytes, 200)
}

/// Escapes bytes to printable ASCII. Cuts them after `longest` characters and then appends `...`.
pub fn cut(bytes: &[u8], longest: usize) -> String {
    let mut text = bytes.escape_ascii().take(longest + 1).map(char::from).collect::<String>();
    if text.len() > longest {
        text.truncate(longest);
        text.push_str("...");
    }
    text
}

/// Describes bytes that are not a reply to any request. `last` is the request before them,
/// `received` the bytes, `reply_index` the number of replies before them.
pub(crate) fn unsolicited(last: Option<&[u8]>, received: String, reply_index: u32) -> Exchange {
    let (sent, expected) = match last {
        Some(request) => {
            (printable(request), "nothing more: every request on this connection has its reply")
        }
        None => (String::new(), "nothing: no request was sent on this connection yet"),
    };
    Exchange { sent, expected: expected.into(), received, reply_index: reply_index.into() }
}

/// Returns the bytes up to and including the first newline; all bytes if there is none.
pub(crate) fn line(bytes: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', bytes).map_or(bytes, |end| &bytes[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_bytes_and_cuts_long_ones() {
        assert_eq!(printable(b"\xff\t\n"), "\\xff\\t\\n");
        let long = printable(&[b'x'; 500]);
        assert_eq!((long.len(), long.ends_with("x...")), (203, true));
    }
}
