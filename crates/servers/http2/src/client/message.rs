//! The rules for the fields of a response (RFC 9113, section 8).

use crate::{
    connection::fields::{check, read_length},
    hpack::{Field, Fields},
    rule::Rule,
};

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
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
