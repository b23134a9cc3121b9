//! A request with placeholders: parses and validates its templates, and fills them in.

use super::{
    context::{Context, at_most},
    raw::Request,
};
use crate::{
    dialects::http::rules,
    protocol::Destination,
    workload::{
        draw::{Drawer, Value},
        template::{Side, Template},
    },
};
use regatta_proto::http1::{MAX_HEAD, Method, client::Ask};

/// Maximum number of bytes of a path with its query. Every recipient should accept request lines of at
/// least this length (RFC 9112, section 3).
const LONGEST_PATH: usize = 8_000;
/// Maximum number of bytes of a field's value.
const LONGEST_VALUE: usize = 8_000;

/// Maximum number of bytes that chunked transfer coding adds to a request: its field, the size of one chunk, and the
/// end (RFC 9112, 7.1).
const CHUNKED_FRAMING: usize = 64;

/// The templates of a request.
#[derive(Debug)]
pub(super) struct AskTemplate {
    pub method: Method,
    target: Template,
    /// Whether the target is a line of a list, unencoded.
    is_line: bool,
    /// All fields except Host.
    fields: Vec<(String, Template)>,
    /// The Host that the file sets, in place of the requested host.
    host: Option<Template>,
    body: Option<Template>,
    /// Whether the body is sent with chunked transfer coding, in place of a Content-Length.
    is_chunked: bool,
}

impl AskTemplate {
    /// Reads a request. Also returns the maximum number of bytes of its content, and of its path, fields
    /// and content together.
    pub fn read(
        raw: &Request,
        context: &mut Context<'_>,
    ) -> Result<(AskTemplate, usize, usize), String> {
        let method = raw.method.as_deref().map_or(Ok(Method::Get), rules::method);
        let method = method.map_err(|why| format!("`method`: {why}"))?;
        let Some(path) = &raw.path else {
            return Err("it has no `path`; write: path = \"/items/{n=int:1..9}\"".into());
        };
        let (target, mut head) = target(path, context)?;
        let is_line = target.as_line().is_some();
        let mut ask = AskTemplate {
            method,
            target,
            is_line,
            fields: Vec::new(),
            host: None,
            body: None,
            is_chunked: raw.chunked == Some(true),
        };
        // Host comes first, in the order of filling in: captures are numbered in that order.
        let is_host = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("host");
        let fields = raw.headers.iter();
        let (hosts, others): (Vec<_>, Vec<_>) = fields.partition(is_host);
        for (name, value) in hosts.into_iter().chain(others) {
            head += ask.read_field(name, value, context)?;
        }
        if head > MAX_HEAD {
            return Err(format!(
                "its path and headers can become {head} bytes long; at most {MAX_HEAD} are permitted"
            ));
        }
        ask.body = body(raw, context)?;
        let content = ask.body.as_ref().map_or(0, |body| context.longest(body, Side::Send));
        at_most("its body", content, rules::LONGEST_BODY)?;
        if ask.is_chunked && ask.body.is_none() {
            return Err("it has `chunked` but no body; add `body`, or remove `chunked`".into());
        }
        let framing = if ask.is_chunked { CHUNKED_FRAMING } else { 0 };
        Ok((ask, content, head + content + framing))
    }

    /// Reads a field. Returns the maximum number of bytes of its line.
    fn read_field(
        &mut self,
        name: &str,
        value: &str,
        context: &mut Context<'_>,
    ) -> Result<usize, String> {
        rules::check_sent_name(name).map_err(|why| format!("`headers`: {why}"))?;
        let place = format!("`headers`: {name}");
        let template = context.template(&place, value, Side::Send)?;
        rules::check_value(value).map_err(|why| format!("{place} = {value:?}: {why}"))?;
        if context.can_hold_controls(&template, Side::Send) {
            return Err(format!(
                "{place} = {value:?}: its list has a line with a control \
                 character, such as CR, which a header cannot contain; remove it from the list"
            ));
        }
        let longest = context.longest(&template, Side::Send);
        at_most(&format!("{place} = {value:?}"), longest, LONGEST_VALUE)?;
        let is_host = name.eq_ignore_ascii_case("host");
        let is_known = self.fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if is_known || is_host && self.host.is_some() {
            return Err(format!("{place} is given twice; remove one"));
        }
        match is_host {
            true => self.host = Some(template),
            false => self.fields.push((name.into(), template)),
        }
        Ok(name.len() + ": \r\n".len() + longest)
    }

    /// Whether requests differ from each other.
    pub fn is_drawn(&self) -> bool {
        let fields = self.fields.iter().map(|(_, value)| value);
        let mut all = fields.chain([&self.target]).chain(&self.host).chain(&self.body);
        all.any(|template| template.as_literal().is_none())
    }

    /// Appends the request to `out`, and returns its content.
    pub fn fill(
        &self,
        out: &mut Vec<u8>,
        place: Destination<'_>,
        captures: &mut Vec<Value>,
        drawer: &mut Drawer<'_>,
    ) -> Vec<u8> {
        let mut target = Vec::new();
        let write = if self.is_line { Value::write } else { write_encoded };
        self.target.fill_with(&mut target, &[], captures, drawer, write);
        let mut filled = |template: &Template| {
            let mut text = Vec::new();
            template.fill(&mut text, &[], captures, drawer);
            text
        };
        let other = self.host.as_ref().map(&mut filled);
        let texts: Vec<Vec<u8>> = self.fields.iter().map(|(_, value)| filled(value)).collect();
        let content = self.body.as_ref().map(&mut filled);
        let names = self.fields.iter().map(|(name, _)| name.as_str());
        let mut fields: Vec<_> = names.zip(texts.iter().map(|value| text(value))).collect();
        let says_so = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection"));
        fields.extend((place.closes && !says_so).then_some(("Connection", "close")));
        fields.extend(self.is_chunked.then_some(("Transfer-Encoding", "chunked")));
        let whole = content.as_deref().filter(|_| !self.is_chunked);
        let has_length = rules::has_length(self.method) && !self.is_chunked;
        let ask = Ask {
            method: self.method,
            target: text(&target),
            host: other.as_deref().map_or(place.host, text),
            fields: &fields,
            content: whole.or(has_length.then_some(&[])),
        };
        ask.write(out);
        let content = content.unwrap_or_default();
        if self.is_chunked {
            write_chunked(&content, out);
        }
        content
    }
}

/// Appends a body in one chunk, and the end (RFC 9112, 7.1). A chunk of no bytes would be the end.
fn write_chunked(content: &[u8], out: &mut Vec<u8>) {
    if !content.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", content.len()).as_bytes());
        out.extend_from_slice(content);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
}

/// Templates and functions on their values produce only valid text.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a template produces valid UTF-8")
}

/// Appends a value to a path. Percent-encodes all but unreserved characters (RFC 3986, 2.3), so that
/// the value stays within its segment.
fn write_encoded(value: &Value, path: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut plain = Vec::new();
    value.write(&mut plain);
    for byte in plain {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(byte);
        } else {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            path.extend_from_slice(&[b'%', high, low]);
        }
    }
}

/// Reads a path. Also returns the maximum number of bytes of the filled-in path.
fn target(path: &str, context: &mut Context<'_>) -> Result<(Template, usize), String> {
    let target = context.template("`path`", path, Side::Send)?;
    let place = format!("`path` = {path:?}");
    let mut longest = context.longest(&target, Side::Send);
    if let Some(list) = target.as_line() {
        for line in context.lines(list) {
            rules::check_path(&line).map_err(|why| format!("{place}: {line:?}: {why}"))?;
        }
    } else {
        rules::check_path(&target.literals("~")).map_err(|why| format!("{place}: {why}"))?;
        // A byte of a value takes up to three bytes.
        let literals = target.literals("").len();
        longest = literals + 3 * (longest - literals);
    }
    at_most(&place, longest, LONGEST_PATH)?;
    Ok((target, longest))
}

fn body(raw: &Request, context: &mut Context<'_>) -> Result<Option<Template>, String> {
    match (&raw.body, &raw.body_file) {
        (Some(_), Some(_)) => Err("it has both `body` and `body_file`; remove one".into()),
        (Some(text), None) => context.template("`body`", text, Side::Send).map(Some),
        (None, Some(name)) => {
            let content = context.file(name).map_err(|why| format!("`body_file`: {why}"))?;
            Ok(Some(Template::literal(content)))
        }
        (None, None) => Ok(None),
    }
}
