//! Bytes as they are shown to people: printable, and not too many.

use regatta_record::Exchange;

/// Printable ASCII, long ones cut.
pub fn printable(bytes: &[u8]) -> String {
    cut(bytes, 200)
}

/// Printable ASCII, cut after so many characters.
pub fn cut(bytes: &[u8], longest: usize) -> String {
    let mut text = bytes.escape_ascii().take(longest + 1).map(char::from).collect::<String>();
    if text.len() > longest {
        text.truncate(longest);
        text.push_str("...");
    }
    text
}

/// What is told of bytes that are no reply to any request. `last` is the request before them, `received`
/// what they are, `reply_index` the number of replies before them.
pub(crate) fn unasked(last: Option<&[u8]>, received: String, reply_index: u32) -> Exchange {
    let (sent, expected) = match last {
        Some(request) => {
            (printable(request), "nothing more: every request on this connection has its reply")
        }
        None => (String::new(), "nothing: no request was sent on this connection yet"),
    };
    Exchange { sent, expected: expected.into(), received, reply_index: reply_index.into() }
}

/// Up to and including the first newline.
pub(crate) fn line(bytes: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', bytes).map_or(bytes, |end| &bytes[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_bytes_are_cut_and_all_are_printable() {
        assert_eq!(printable(b"\xff\t\n"), "\\xff\\t\\n");
        let long = printable(&[b'x'; 500]);
        assert_eq!((long.len(), long.ends_with("x...")), (203, true));
    }
}
