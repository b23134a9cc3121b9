//! Expected values in a reply's JSON, with placeholders.

use crate::{
    dialects::http::reply::expected::Is,
    workload::{
        draw::{Drawer, Value as Drawn},
        expression::Bounds,
        template::{Scope, Side, Template},
    },
};
use serde_json::{Value, value::to_raw_value};

/// A JSON value that may differ per exchange.
#[derive(Debug)]
pub(super) enum JsonTemplate {
    /// A value without placeholders.
    Fixed(Value),
    /// A text with placeholders.
    Text(Template),
    /// One integer placeholder and nothing else; gives a number.
    Integer(Template),
    List(Vec<JsonTemplate>),
}

/// The expected value at a pointer.
pub(super) enum Wanted {
    /// The same for every exchange.
    Fixed(Is),
    Template(JsonTemplate),
}

/// Reads an expected value: a scalar or a list, whose texts may have placeholders, or `{ any = true }`,
/// or `{ null = true }` because TOML has no null.
pub(super) fn wanted(value: Value, side: Side, scope: &mut Scope<'_>) -> Result<Wanted, String> {
    if let Value::Object(table) = &value {
        return match (table.len(), table.get("any"), table.get("null")) {
            (1, Some(Value::Bool(true)), _) => Ok(Wanted::Fixed(Is::Any)),
            (1, _, Some(Value::Bool(true))) => fixed(&Value::Null),
            _ => Err("expected a value, { any = true } for any value, or { null = true }; for an \
                      object, give each value its own pointer, e.g. \"/user/name\""
                .into()),
        };
    }
    Ok(match template(value, side, scope)? {
        JsonTemplate::Fixed(value) => fixed(&value)?,
        template => Wanted::Template(template),
    })
}

fn fixed(value: &Value) -> Result<Wanted, String> {
    let value = to_raw_value(value).map_err(|error| error.to_string())?;
    Ok(Wanted::Fixed(Is::Value(value)))
}

fn template(value: Value, side: Side, scope: &mut Scope<'_>) -> Result<JsonTemplate, String> {
    Ok(match value {
        Value::String(text) => {
            let template = Template::parse(&text, side, scope)?;
            if let Some(text) = template.as_literal() {
                return Ok(JsonTemplate::Fixed(String::from_utf8_lossy(text).into()));
            }
            match template.as_integer(side, scope) {
                Some(bounds) if is_exact(bounds) => JsonTemplate::Integer(template),
                Some(Bounds { low, high }) => {
                    return Err(format!(
                        "{text} can be from {low} to {high}; JSON numbers are compared only from \
                         -2^63 to 2^64-1; draw smaller ones"
                    ));
                }
                None => JsonTemplate::Text(template),
            }
        }
        Value::Array(values) => {
            let values: Result<Vec<_>, String> =
                values.into_iter().map(|value| template(value, side, scope)).collect();
            let values = values?;
            let fixed = values.iter().map(|value| match value {
                JsonTemplate::Fixed(value) => Some(value.clone()),
                _ => None,
            });
            match fixed.collect::<Option<Vec<_>>>() {
                Some(fixed) => JsonTemplate::Fixed(fixed.into()),
                None => JsonTemplate::List(values),
            }
        }
        Value::Object(_) => return Err("a list cannot contain tables".into()),
        scalar => JsonTemplate::Fixed(scalar),
    })
}

/// Whether the JSON parser represents all of these integers exactly.
fn is_exact(Bounds { low, high }: Bounds) -> bool {
    low >= i64::MIN.into() && high <= u64::MAX.into()
}

impl JsonTemplate {
    /// Maximum number of bytes of its JSON.
    pub fn longest(&self, side: Side, scope: &Scope<'_>) -> usize {
        match self {
            JsonTemplate::Fixed(value) => value.to_string().len(),
            // A control character takes six bytes: \u001f.
            JsonTemplate::Text(template) => 2 + 6 * template.longest(side, scope),
            JsonTemplate::Integer(template) => template.longest(side, scope),
            JsonTemplate::List(values) => {
                2 + values.iter().map(|value| 1 + value.longest(side, scope)).sum::<usize>()
            }
        }
    }

    /// Appends its JSON, which contains no newline.
    pub fn fill(
        &self,
        text: &mut Vec<u8>,
        content: &[u8],
        captures: &mut Vec<Drawn>,
        drawer: &mut Drawer<'_>,
    ) {
        match self {
            JsonTemplate::Fixed(value) => text.extend_from_slice(value.to_string().as_bytes()),
            JsonTemplate::Integer(template) => template.fill(text, content, captures, drawer),
            JsonTemplate::Text(template) => {
                let mut plain = Vec::new();
                template.fill(&mut plain, content, captures, drawer);
                let plain = Value::from(String::from_utf8_lossy(&plain));
                text.extend_from_slice(plain.to_string().as_bytes());
            }
            JsonTemplate::List(values) => {
                for (i, value) in values.iter().enumerate() {
                    text.push(if i == 0 { b'[' } else { b',' });
                    value.fill(text, content, captures, drawer);
                }
                text.push(b']');
            }
        }
    }
}
