//! Errors that the proxy itself sends to clients.

/// What is before the text of an error with which Redis refuses EXEC: that ends the transaction.
pub(crate) const EXEC_REFUSED: &[u8] = b"EXECABORT Transaction discarded because of: ";

/// Appends an error. The parts are concatenated, without the leading `-`; line breaks become
/// spaces.
pub(crate) fn write(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.push(b'-');
    let start = out.len();
    parts.iter().for_each(|part| out.extend_from_slice(part));
    for byte in &mut out[start..] {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Returns an error line.
pub(crate) fn line(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, parts);
    out
}

/// Splits an error into its code, e.g. `OOM`, and its text. The code is `ERR` if the error has
/// none.
pub(crate) fn split_code(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == b' ') {
        Some(end) if end > 0 && text[..end].iter().all(u8::is_ascii_uppercase) => {
            (&text[..end], &text[end + 1..])
        }
        _ => (b"ERR", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(line(&[b"ERR a\r\nb", b" c"]), b"-ERR a  b c\r\n");
    }

    #[test]
    fn a_code_is_in_upper_case() {
        assert_eq!(split_code(b"OOM no memory"), (&b"OOM"[..], &b"no memory"[..]));
        assert_eq!(split_code(b"no memory"), (&b"ERR"[..], &b"no memory"[..]));
        assert_eq!(split_code(b" x"), (&b"ERR"[..], &b" x"[..]));
        assert_eq!(split_code(b"OOM"), (&b"ERR"[..], &b"OOM"[..]));
    }
}
