//! A workload file: parses and validates its keys and its mix of commands.

use super::{
    commands::Command,
    keys::Distribution,
    mix::{Mix, Reply, Step},
    names::SHORTEST_VALUE,
};
use crate::workload::{
    conversation::{Captures, Conversation, Raw},
    file::{FileText, Kept, WorkloadFile, conversations},
    lists::NamedLists,
    template::{Scope, Side, Template},
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum number of keys of a client.
const MOST_KEYS: usize = 1 << 16;
/// Maximum number of keys of a command.
const MOST_KEYS_PER_COMMAND: usize = 1_000;
const LONGEST_VALUE: usize = 1 << 20;
/// Maximum number of bytes of a client's values, and of a command's values.
const MOST_VALUES: usize = 64 << 20;
const MOST_VALUES_PER_COMMAND: usize = 4 << 20;
/// Maximum number of arguments of a command written in a file.
const MOST_ARGS: usize = 1_000;
/// Bytes in a value if the file does not set them.
const VALUE: usize = 100;
/// Keys of a client if the file does not set them.
const KEYS: usize = 100;
/// The exponent if the file does not set it, as in YCSB.
const EXPONENT: f64 = 0.99;
const GREATEST_EXPONENT: f64 = 10.0;

/// A workload file.
#[derive(Debug)]
pub(super) struct MixFile {
    pub kept: Kept,
    pub mix: Mix,
}

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: Option<String>,
    #[serde(rename = "protocol")]
    _protocol: String,
    keys: Option<usize>,
    value_bytes: Option<usize>,
    distribution: Option<String>,
    exponent: Option<f64>,
    #[serde(default)]
    request: Vec<Request>,
    #[serde(default)]
    lines: BTreeMap<String, Vec<String>>,
}

/// A command, or a conversation of several, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    weight: Option<u32>,
    steps: Option<Vec<RawStep>>,
    command: Option<String>,
    keys_per_command: Option<usize>,
    send: Option<Vec<String>>,
    status: Option<String>,
    integer: Option<Number>,
    bulk: Option<String>,
    nil: Option<bool>,
    error: Option<String>,
}

/// A command and its expected reply, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    command: Option<String>,
    keys_per_command: Option<usize>,
    send: Option<Vec<String>>,
    status: Option<String>,
    integer: Option<Number>,
    bulk: Option<String>,
    nil: Option<bool>,
    error: Option<String>,
}

/// An integer or its template.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Is(i64),
    Template(String),
}

impl Raw for RawStep {
    type Step = Step;
    const KEYS: &str = "a command or an expectation";
    const EXAMPLE: &str = "{ command = \"SET\" }, { command = \"GET\" }";

    fn is_empty(&self) -> bool {
        let RawStep { command, keys_per_command, send, .. } = self;
        command.is_none() && keys_per_command.is_none() && send.is_none() && !self.expects()
    }
}

impl RawStep {
    fn expects(&self) -> bool {
        let texts = [&self.status, &self.bulk, &self.error];
        texts.iter().any(|text| text.is_some()) || self.integer.is_some() || self.nil.is_some()
    }
}

impl WorkloadFile for MixFile {
    fn read(file: FileText<'_>) -> Result<MixFile, String> {
        let raw: RawFile = file.parse()?;
        let keys = within("keys", raw.keys.unwrap_or(KEYS), 1..=MOST_KEYS)?;
        let value_bytes = raw.value_bytes.unwrap_or(VALUE);
        let value_bytes = within("value_bytes", value_bytes, SHORTEST_VALUE..=LONGEST_VALUE)?;
        if keys * value_bytes > MOST_VALUES {
            return Err(format!(
                "{keys} keys of {value_bytes} bytes exceed the limit of {MOST_VALUES} bytes per \
                 connection; reduce `keys` or `value_bytes`"
            ));
        }
        let distribution = distribution(raw.distribution.as_deref(), raw.exponent)?;
        let mut lists = file.lists(raw.lines, BTreeMap::new());
        let limits = Limits { keys, value_bytes };
        let example = "command = \"SET\", or send = [\"HGET\", \"h\", \"f\"]";
        let conversations = conversations(raw.request, example, |request| {
            let one = RawStep {
                command: request.command,
                keys_per_command: request.keys_per_command,
                send: request.send,
                status: request.status,
                integer: request.integer,
                bulk: request.bulk,
                nil: request.nil,
                error: request.error,
            };
            Conversation::read(request.weight, request.steps, one, |raw, captures| {
                step(raw, captures, &mut lists, limits)
            })
        })?;
        let mix = Mix { keys, value_bytes, distribution, conversations };
        Ok(MixFile { kept: file.keep(raw.name, lists)?, mix })
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

/// The limits of a command.
#[derive(Clone, Copy)]
struct Limits {
    keys: usize,
    value_bytes: usize,
}

fn within(
    name: &str,
    value: usize,
    limits: std::ops::RangeInclusive<usize>,
) -> Result<usize, String> {
    let (least, most) = (*limits.start(), *limits.end());
    match limits.contains(&value) {
        true => Ok(value),
        false => Err(format!("`{name}` is {value}; expected {least} to {most}")),
    }
}

fn distribution(name: Option<&str>, exponent: Option<f64>) -> Result<Distribution, String> {
    match (name.unwrap_or("uniform"), exponent) {
        ("uniform", None) => Ok(Distribution::Uniform),
        ("uniform", Some(_)) => Err("`exponent` belongs to distribution = \"zipf\"".into()),
        ("zipf", exponent) => {
            let exponent = exponent.unwrap_or(EXPONENT);
            match exponent > 0.0 && exponent <= GREATEST_EXPONENT {
                true => Ok(Distribution::Zipf(exponent)),
                false => Err(format!(
                    "`exponent` is {exponent}; expected more than 0, up to {GREATEST_EXPONENT}"
                )),
            }
        }
        (other, _) => Err(format!("`distribution` is {other:?}; expected \"uniform\" or \"zipf\"")),
    }
}

fn step(
    raw: RawStep,
    captures: &mut Captures,
    lists: &mut NamedLists,
    limits: Limits,
) -> Result<Step, String> {
    match (&raw.command, &raw.send) {
        (Some(name), None) => with_keys(name, &raw, limits),
        (None, Some(args)) => sends(args, &raw, &mut Scope { captures, lists }),
        (given, _) => {
            let found = if given.is_none() { "no command" } else { "command and send" };
            Err(format!(
                "it has {found}; expected either command = \"GET\" (with generated keys) or \
                 send = [\"HGET\", \"h\", \"f\"]"
            ))
        }
    }
}

/// Reads a command with generated keys.
fn with_keys(name: &str, raw: &RawStep, limits: Limits) -> Result<Step, String> {
    let Some(command) = Command::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    else {
        let names: Vec<&str> = Command::ALL.iter().map(|one| one.name()).collect();
        return Err(format!(
            "`command` is {name:?}; expected one of {}; use `send` for other commands",
            names.join(", ")
        ));
    };
    if raw.expects() {
        return Err(format!(
            "the load knows the reply to {command}; only `send` can have an expected reply"
        ));
    }
    let most = if command.has_several() { limits.keys.min(MOST_KEYS_PER_COMMAND) } else { 1 };
    let keys = within("keys_per_command", raw.keys_per_command.unwrap_or(1), 1..=most)
        .map_err(|why| format!("{command}: {why}"))?;
    if command.stores() && keys * limits.value_bytes > MOST_VALUES_PER_COMMAND {
        return Err(format!(
            "{command} with {keys} values of {} bytes exceeds {MOST_VALUES_PER_COMMAND} bytes; \
             reduce `keys_per_command`",
            limits.value_bytes
        ));
    }
    Ok(Step::Keys(command, keys))
}

/// Reads a command that is written in the file.
fn sends(args: &[String], raw: &RawStep, scope: &mut Scope<'_>) -> Result<Step, String> {
    if raw.keys_per_command.is_some() {
        return Err("`keys_per_command` belongs to `command`".into());
    }
    if args.is_empty() || args.len() > MOST_ARGS {
        return Err(format!("`send` has {} arguments; expected 1 to {MOST_ARGS}", args.len()));
    }
    let mut templates = Vec::new();
    let mut longest = 0;
    for text in args {
        let wrong = |why: String| format!("`send`, {text:?}: {why}");
        let template = Template::parse(text, Side::Send, scope).map_err(wrong)?;
        longest += template.longest(Side::Send, scope) + 32;
        templates.push(template);
    }
    if longest > MOST_VALUES_PER_COMMAND {
        return Err(format!(
            "the command can become {longest} bytes long; at most {MOST_VALUES_PER_COMMAND} are permitted"
        ));
    }
    Ok(Step::Sends(templates, reply(raw, Side::Expect { request: longest }, scope)?))
}

fn reply(raw: &RawStep, side: Side, scope: &mut Scope<'_>) -> Result<Reply, String> {
    let RawStep { status, integer, bulk, nil, error, .. } = raw;
    let integer = integer.as_ref().map(|number| match number {
        Number::Is(number) => number.to_string(),
        Number::Template(text) => text.clone(),
    });
    let given =
        [status.is_some(), integer.is_some(), bulk.is_some(), nil.is_some(), error.is_some()];
    if given.into_iter().filter(|is| *is).count() > 1 {
        return Err("it has several of status, integer, bulk, nil and error; use only one".into());
    }
    let mut template = |name: &str, text: &str, is_line: bool| {
        let wrong = |why: String| format!("`{name}` = {text:?}: {why}");
        let template = Template::parse(text, side, scope).map_err(wrong)?;
        let breaks = template.literals("").contains(char::is_control)
            || template.can_hold_controls(side, scope);
        if is_line && breaks {
            return Err(wrong(
                "such a reply must be one line; use `bulk` for arbitrary bytes".into(),
            ));
        }
        Ok(template)
    };
    Ok(match (status, &integer, bulk, nil, error) {
        (Some(text), ..) => Reply::Status(template("status", text, true)?),
        (_, Some(text), ..) => Reply::Integer(template("integer", text, true)?),
        (_, _, Some(text), ..) => Reply::Bulk(template("bulk", text, false)?),
        (.., Some(true), _) => Reply::Nil,
        (.., Some(false), _) => return Err("`nil` is false; remove it".into()),
        (.., Some(text)) if text.contains(char::is_control) => {
            return Err(format!("`error` = {text:?}: an error must be one line"));
        }
        (.., Some(text)) => Reply::Error(text.clone()),
        (.., None) => Reply::Any,
    })
}

#[cfg(test)]
mod tests;
