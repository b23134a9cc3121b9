//! Expected HTTP replies. Servers differ in header fields, in their order and in how they frame the
//! content, so a transcript specifies only the relevant parts. `proto`'s client decodes the framing.

use regatta_proto::http1::{
    Method,
    client::{Decoder, Event},
};
use regex::bytes::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;

/// An expected HTTP reply in a transcript file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// Whether it answers a HEAD request, so that it has no content.
    head: bool,
    status: u16,
    /// By name, a regular expression that the value of the first such field must match.
    fields: BTreeMap<String, String>,
    /// A regular expression that the whole content must match.
    body: Option<String>,
}

/// An expected HTTP reply.
#[derive(Debug)]
pub struct Reply {
    asked: Method,
    status: u16,
    fields: Vec<(String, Regex)>,
    body: Option<Regex>,
}

impl Reply {
    pub(super) fn new(entry: Entry) -> Result<Reply, String> {
        let whole = |text: &str| Regex::new(&format!("^(?:{text})$")).map_err(|e| e.to_string());
        let fields = entry.fields.into_iter().map(|(name, value)| Ok((name, whole(&value)?)));
        Ok(Reply {
            asked: if entry.head { Method::Head } else { Method::Get },
            status: entry.status,
            fields: fields.collect::<Result<_, String>>()?,
            body: entry.body.as_deref().map(whole).transpose()?,
        })
    }

    /// Reads a whole reply and compares it. `next` returns the next byte, or `None` at the end of the
    /// stream. Reads no byte after the reply.
    pub(super) fn read(
        &self,
        mut next: impl FnMut() -> Result<Option<u8>, String>,
    ) -> Result<(), String> {
        let (mut decoder, mut input, mut body) = (Decoder::default(), Vec::new(), Vec::new());
        loop {
            let mut rest = &input[..];
            let mut event = decoder.next(&mut rest, self.asked).map_err(|e| e.to_string())?;
            if event.is_none() {
                match next()? {
                    Some(byte) => {
                        let taken = input.len() - rest.len();
                        input.drain(..taken);
                        input.push(byte);
                        continue;
                    }
                    None => event = decoder.end_of_input().map_err(|e| e.to_string())?,
                }
            }
            match event {
                Some(Event::Head(head)) => {
                    self.compare_head(head.status, |n| head.fields.get(n))?
                }
                Some(Event::Switched(_)) => {
                    return Err("expected a reply, got another protocol (101)".into());
                }
                Some(Event::Content(content)) => body.extend_from_slice(content),
                Some(Event::End { .. }) => return self.compare_body(&body),
                None => return Err("expected a reply, got the end of the stream".into()),
            }
            let taken = input.len() - rest.len();
            input.drain(..taken);
        }
    }

    fn compare_head<'a>(
        &self,
        status: u16,
        get: impl Fn(&str) -> Option<&'a [u8]>,
    ) -> Result<(), String> {
        if status != self.status {
            return Err(format!("expected the status {}, got {status}", self.status));
        }
        for (name, expected) in &self.fields {
            match get(name) {
                Some(value) if expected.is_match(value) => {}
                Some(value) => {
                    let value = value.escape_ascii();
                    return Err(format!("expected {name} to match {expected}, got {value}"));
                }
                None => return Err(format!("expected the field {name}, got none")),
            }
        }
        Ok(())
    }

    fn compare_body(&self, body: &[u8]) -> Result<(), String> {
        match &self.body {
            Some(expected) if !expected.is_match(body) => {
                let body = body.escape_ascii();
                Err(format!("expected content that matches {expected}, got \"{body}\""))
            }
            _ => Ok(()),
        }
    }
}
