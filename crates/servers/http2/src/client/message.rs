//! The rules for the fields of a response (RFC 9113, section 8).

use crate::{
    hpack::{Field, Fields},
    rule::Rule,
};

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub status: u16,
    pub content_length: Option<u64>,
}

/// Checks the fields of a head.
pub(super) fn head(fields: &Fields) -> Result<Summary, Rule> {
    let (mut status, mut content_length, mut is_regular) = (None, None, false);
    for Field { name, value, .. } in fields.iter() {
        if let Some(b':') = name.first() {
            match (name, is_regular, status) {
                (_, true, _) => return Err(Rule::PseudoLate),
                (b":status", _, None) => status = Some(read_status(value)?),
                (b":status", _, Some(_)) => return Err(Rule::StatusRepeated),
                _ => return Err(Rule::PseudoUnknown),
            }
            continue;
        }
        is_regular = true;
        check(name, value)?;
        if name == b"content-length" {
            let length = read_length(value).ok_or(Rule::ContentLengthValue)?;
            if content_length.is_some_and(|other| other != length) {
                return Err(Rule::ContentLengthValue);
            }
            content_length = Some(length);
        }
    }
    let status = status.ok_or(Rule::StatusMissing)?;
    Ok(Summary { status, content_length })
}

/// Checks the fields of trailers.
pub(super) fn trailers(fields: &Fields) -> Result<(), Rule> {
    fields.iter().try_for_each(|field| match field.name.first() {
        Some(b':') => Err(Rule::PseudoInTrailers),
        _ => check(field.name, field.value),
    })
}

fn read_status(value: &[u8]) -> Result<u16, Rule> {
    match value {
        b"101" => Err(Rule::StatusSwitching),
        [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            let digit = |byte: &u8| u16::from(byte - b'0');
            Ok(100 * digit(a) + 10 * digit(b) + digit(c))
        }
        _ => Err(Rule::StatusValue),
    }
}

/// Reads digits. A number that does not fit is none.
fn read_length(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit).then_some(value)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Checks a regular field (RFC 9113, 8.2).
fn check(name: &[u8], value: &[u8]) -> Result<(), Rule> {
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
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_space(value.first())
        || is_space(value.last())
        || value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
    {
        return Err(Rule::FieldValue);
    }
    match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
            Err(Rule::ConnectionField)
        }
        b"te" if value != b"trailers" => Err(Rule::ConnectionField),
        _ => Ok(()),
    }
}
