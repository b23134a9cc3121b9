//! Messages as hex digits.

/// Maximum number of bytes that are shown.
const SHOWN: usize = 100;

/// Parses pairs of hex digits, in upper or lower case.
///
/// # Errors
/// The first character that is wrong, and what was expected.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |c: char| c.to_digit(16).map(|digit| digit as u8);
    if let Some(wrong) = text.chars().find(|c| digit(*c).is_none()) {
        return Err(format!("{wrong:?} is not a hex digit; expected pairs of them, e.g. 0807"));
    }
    if !text.len().is_multiple_of(2) {
        return Err(format!("{} hex digits; expected two for each byte, e.g. 0807", text.len()));
    }
    let digits: Vec<u8> = text.chars().filter_map(digit).collect();
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Bytes as hex digits; long ones are cut.
#[cold]
pub(super) fn in_hex(bytes: &[u8]) -> String {
    match bytes.get(..SHOWN) {
        Some(shown) if bytes.len() > SHOWN => format!("{}...", all_in_hex(shown)),
        _ => all_in_hex(bytes),
    }
}

/// Bytes as hex digits.
pub(super) fn all_in_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_digits_and_back() {
        let bytes: Vec<u8> = (0..SHOWN as u8).map(|i| i.wrapping_mul(7)).collect();
        assert_eq!(from_hex(&in_hex(&bytes)), Ok(bytes.clone()));
        assert_eq!(from_hex(""), Ok(Vec::new()));
        assert_eq!(from_hex("aBFf"), Ok(vec![0xab, 0xff]));
        assert!(in_hex(&[0; SHOWN + 1]).ends_with("00..."));
    }

    #[test]
    fn other_texts_are_refused() {
        assert!(from_hex("080").unwrap_err().starts_with("3 hex digits"));
        assert!(from_hex("08 07").unwrap_err().starts_with("' ' is not a hex digit"));
        assert!(from_hex("+8").unwrap_err().starts_with("'+'"));
    }
}
