//! An expected reply with placeholders: parses it into an [`Expected`], and into the template of the
//! exchange's expected text.

use super::{
    context::{Context, at_most},
    json::{self, JsonTemplate, Wanted},
    raw::Request,
};
use crate::{
    dialects::http::{
        reply::expected::{Content, Expected, Field, Is, Member, Status, Value},
        rules,
    },
    workload::{
        draw::{Drawer, Value as Drawn},
        template::{Side, Template},
    },
};
use regatta_proto::http1::Method;
use serde_json::{Value as Json, value::RawValue};

/// The template of an exchange's expected text, which [`Expected::parts`] splits.
#[derive(Debug, Default)]
pub(super) struct TextTemplate {
    lines: Vec<Line>,
    content: Option<Template>,
}

#[derive(Debug)]
enum Line {
    Field(Template),
    Member(JsonTemplate),
}

/// Reads an expected reply. Also returns the maximum number of bytes of the text.
pub(super) fn read(
    raw: &Request,
    method: Method,
    side: Side,
    context: &mut Context<'_>,
) -> Result<(Expected, TextTemplate, usize), String> {
    let status = status(raw.status.as_ref())?;
    let mut text = TextTemplate::default();
    let mut expected = Expected { method, status, fields: Vec::new(), content: Content::Any };
    for (name, value) in &raw.expect_headers {
        let value = field(name, value, side, &mut text, context)?;
        expected.fields.push(Field { name: name.to_ascii_lowercase(), value });
    }
    expected.content = content(raw, method, side, &mut text, context)?;
    let longest = text.longest(side, context);
    Ok((expected, text, longest))
}

fn status(said: Option<&Json>) -> Result<Status, String> {
    let status = match said {
        None => Ok(Status::Class(2)),
        Some(Json::String(text)) => rules::status(text),
        Some(other) => rules::status(&other.to_string()),
    };
    status.map_err(|why| format!("`status`: {why}"))
}

fn field(
    name: &str,
    value: &Json,
    side: Side,
    text: &mut TextTemplate,
    context: &mut Context<'_>,
) -> Result<Value, String> {
    let wrong = |why: String| format!("`expect_headers`: {name}: {why}");
    rules::check_name(name).map_err(|why| format!("`expect_headers`: {why}"))?;
    let regex = match value {
        Json::Object(table) if table.len() == 1 => table.get("regex").and_then(Json::as_str),
        _ => None,
    };
    match (value, regex) {
        (Json::Bool(true), _) => Ok(Value::Any),
        (_, Some(regex)) => rules::regex(regex).map(Value::Matches).map_err(wrong),
        (Json::String(template), _) => {
            rules::check_value(template).map_err(wrong)?;
            let template =
                context.template(&format!("`expect_headers`: {name}"), template, side)?;
            if let Some(literal) = template.as_literal() {
                return Ok(Value::Is(String::from_utf8_lossy(literal).into()));
            }
            if context.can_hold_controls(&template, side) {
                return Err(wrong(
                    "its placeholders can produce a control character, which a header cannot contain"
                        .into(),
                ));
            }
            text.lines.push(Line::Field(template));
            Ok(Value::Given)
        }
        _ => Err(wrong(format!(
            "expected a text, true for any value, or {{ regex = '[a-z]+' }}, found \
             {value}"
        ))),
    }
}

fn content(
    raw: &Request,
    method: Method,
    side: Side,
    text: &mut TextTemplate,
    context: &mut Context<'_>,
) -> Result<Content, String> {
    let texts = [("exact", &raw.exact), ("prefix", &raw.prefix), ("regex", &raw.regex)];
    let mut said: Vec<&str> = texts.iter().filter(|(_, t)| t.is_some()).map(|(k, _)| *k).collect();
    said.extend((!raw.json.is_empty()).then_some("json"));
    said.extend(raw.json_equals.as_ref().map(|_| "json_equals"));
    if said.len() > 1 {
        return Err(format!(
            "its expected content is given by {}; use only one of exact = \"{{n*2}}\", prefix = \
             \"OK \", regex = '[0-9]+ ms', json = {{ \"/id\" = \"{{n}}\" }}, json_equals = '[1, 2]'",
            said.join(" and ")
        ));
    }
    if let (Method::Head, Some(key)) = (method, said.first()) {
        return Err(format!("`{key}`: the reply to HEAD has no content; remove it"));
    }
    if let Some(regex) = &raw.regex {
        return rules::regex(regex).map(Content::Matches).map_err(|why| format!("`regex` = {why}"));
    }
    for (key, said, content) in
        [("exact", &raw.exact, Content::Text), ("prefix", &raw.prefix, Content::Prefix)]
    {
        if let Some(said) = said {
            let template = context.template(&format!("`{key}`"), said, side)?;
            let longest = context.longest(&template, side);
            at_most(&format!("`{key}`"), longest, rules::LONGEST_BODY)?;
            text.content = Some(template);
            return Ok(content);
        }
    }
    if let Some(whole) = &raw.json_equals {
        return whole_json(whole);
    }
    if raw.json.is_empty() {
        return Ok(Content::Any);
    }
    let mut members = Vec::new();
    for (pointer, value) in &raw.json {
        rules::check_pointer(pointer).map_err(|why| format!("`json`: {why}"))?;
        let wanted = json::wanted(value.clone(), side, &mut context.scope())
            .map_err(|why| format!("`json`: {pointer:?} = {value}: {why}"))?;
        let is = match wanted {
            Wanted::Fixed(is) => is,
            Wanted::Template(template) => {
                text.lines.push(Line::Member(template));
                Is::Given
            }
        };
        members.push(Member { pointer: pointer.clone(), is });
    }
    Ok(Content::Json(members))
}

/// Reads the expected value of a whole body. It has no placeholders, because braces are JSON.
fn whole_json(text: &str) -> Result<Content, String> {
    at_most("`json_equals`", text.len(), rules::LONGEST_BODY)?;
    let is = RawValue::from_string(text.trim().to_owned())
        .map_err(|why| format!("`json_equals` is not JSON: {why}; it has no placeholders"))?;
    Ok(Content::Json(vec![Member { pointer: String::new(), is: Is::Value(is) }]))
}

impl TextTemplate {
    fn longest(&self, side: Side, context: &mut Context<'_>) -> usize {
        let lines = self.lines.iter().map(|line| match line {
            Line::Field(template) => 1 + template.longest(side, &context.scope()),
            Line::Member(value) => 1 + value.longest(side, &context.scope()),
        });
        let lines: usize = lines.sum();
        lines + self.content.as_ref().map_or(0, |content| context.longest(content, side))
    }

    /// Whether expected replies differ from each other.
    pub fn is_drawn(&self) -> bool {
        let content = self.content.as_ref();
        !self.lines.is_empty() || content.is_some_and(|content| content.as_literal().is_none())
    }

    /// Appends the text. `content` is the content of the request.
    pub fn fill(
        &self,
        text: &mut Vec<u8>,
        content: &[u8],
        captures: &mut Vec<Drawn>,
        drawer: &mut Drawer<'_>,
    ) {
        for line in &self.lines {
            match line {
                Line::Field(template) => template.fill(text, content, captures, drawer),
                Line::Member(value) => value.fill(text, content, captures, drawer),
            }
            text.push(b'\n');
        }
        if let Some(template) = &self.content {
            template.fill(text, content, captures, drawer);
        }
    }
}
