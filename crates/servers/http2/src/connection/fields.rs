//! The rules for regular fields (RFC 9113, 8.2), and for trailers.

use crate::{hpack::Fields, rule::Rule};

/// Checks the fields of trailers.
pub(crate) fn trailers(fields: &Fields) -> Result<(), Rule> {
    fields.iter().try_for_each(|field| match field.name.first() {
        Some(b':') => Err(Rule::PseudoInTrailers),
        _ => check(field.name, field.value),
    })
}

/// Reads digits. A number that does not fit is none.
pub(crate) fn read_length(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit).then_some(value)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Checks a regular field.
pub(crate) fn check(name: &[u8], value: &[u8]) -> Result<(), Rule> {
    if name.is_empty() {
        return Err(Rule::FieldName);
    }
    for byte in name {
        match byte {
            b'A'..=b'Z' => return Err(Rule::UppercaseName),
            0..=b' ' | b':' | 0x7f.. => return Err(Rule::FieldName),
            _ => {}
        }
    }
    check_value(value)?;
    match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
            Err(Rule::ConnectionField)
        }
        b"te" if value != b"trailers" => Err(Rule::ConnectionField),
        _ => Ok(()),
    }
}

/// Checks the value of a field (RFC 9113, 8.2.1).
pub(crate) fn check_value(value: &[u8]) -> Result<(), Rule> {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_space(value.first())
        || is_space(value.last())
        || value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
    {
        return Err(Rule::FieldValue);
    }
    Ok(())
}
