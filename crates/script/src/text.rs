//! Bytes as they are shown to people: printable, and not too many.

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
