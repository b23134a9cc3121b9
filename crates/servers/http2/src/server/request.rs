//! The rules for the fields of a request (RFC 9113, 8.3.1 and 8.5).

use crate::{
    connection::fields::{check, check_value, read_length},
    hpack::{Field, Fields},
    rule::Rule,
};

/// What a head says: where its fields are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub method: usize,
    pub path: Option<usize>,
    pub authority: Option<usize>,
    pub has_hosts: bool,
    pub expects: Option<usize>,
    pub content_length: Option<u64>,
}

/// The positions of the fields that every request may have.
#[derive(Default)]
struct Positions {
    method: Option<usize>,
    scheme: Option<usize>,
    path: Option<usize>,
    authority: Option<usize>,
    host: Option<usize>,
    /// Whether there are several Host fields.
    has_hosts: bool,
    expects: Option<usize>,
    content_length: Option<u64>,
}

/// Checks the fields of a head.
pub(super) fn head(fields: &Fields) -> Result<Summary, Rule> {
    let (mut at, mut is_regular) = (Positions::default(), false);
    for (position, Field { name, value, .. }) in fields.iter().enumerate() {
        if name.first() == Some(&b':') {
            if is_regular {
                return Err(Rule::PseudoLate);
            }
            at.pseudo(name, position)?;
            check_value(value)?;
            continue;
        }
        is_regular = true;
        check(name, value)?;
        match name {
            b"content-length" => at.content_length(value)?,
            b"host" => at.has_hosts |= at.host.replace(position).is_some(),
            b"expect" if !at.expects.is_some_and(|at| is_other(fields.value_at(at))) => {
                at.expects = Some(position);
            }
            _ => {}
        }
    }
    at.summary(fields)
}

/// Whether an expectation is another than the one that RFC 9110, 10.1.1, defines.
fn is_other(expectation: &[u8]) -> bool {
    !expectation.eq_ignore_ascii_case(b"100-continue")
}

impl Positions {
    fn pseudo(&mut self, name: &[u8], position: usize) -> Result<(), Rule> {
        let place = match name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":path" => &mut self.path,
            b":authority" => &mut self.authority,
            _ => return Err(Rule::PseudoUnknown),
        };
        match place.replace(position) {
            Some(_) => Err(Rule::PseudoRepeated),
            None => Ok(()),
        }
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Rule> {
        let length = read_length(value).ok_or(Rule::ContentLengthValue)?;
        match self.content_length.replace(length) {
            Some(other) if other != length => Err(Rule::ContentLengthValue),
            _ => Ok(()),
        }
    }

    fn summary(&self, fields: &Fields) -> Result<Summary, Rule> {
        let value = |at: Option<usize>| at.map(|at| fields.value_at(at));
        let method = self.method.ok_or(Rule::PseudoMissing)?;
        if fields.value_at(method) == b"CONNECT" {
            if self.authority.is_none() || self.scheme.is_some() || self.path.is_some() {
                return Err(Rule::ConnectFields);
            }
        } else if self.scheme.is_none() || self.path.is_none() {
            return Err(Rule::PseudoMissing);
        } else if !matches!(value(self.path), Some([b'/', ..] | b"*")) {
            return Err(Rule::PathValue);
        }
        if let (Some(authority), Some(host)) = (value(self.authority), value(self.host))
            && !self.has_hosts
            && !authority.eq_ignore_ascii_case(host)
        {
            return Err(Rule::HostDiffers);
        }
        Ok(Summary {
            method,
            path: self.path,
            authority: self.authority.or(self.host),
            has_hosts: self.has_hosts,
            expects: self.expects,
            content_length: self.content_length,
        })
    }
}
