//! One `[[request]]` of a workload file for lines at a time: from its keys to templates, with
//! everything that can be wrong.

use super::{
    conversation::{Captures, Conversation, Raw},
    lists::NamedLists,
    template::{Scope, Side, Template},
};
use crate::http::rules;
use regex::bytes::Regex;
use serde::Deserialize;

/// Most bytes of a request line.
const LONGEST_REQUEST: usize = 65_536;

/// The requests of a file with `protocol = "line"`.
#[derive(Debug)]
pub(super) struct Lines {
    pub conversations: Vec<Conversation<Step>>,
    pub regexes: Vec<(String, Regex)>,
    pub longest_reply: usize,
}

/// A request line, and what must come back.
#[derive(Debug)]
pub(super) struct Step {
    pub send: Template,
    pub expect: Expect,
}

/// What must come back.
#[derive(Debug)]
pub(super) enum Expect {
    Exact(Template),
    Prefix(Template),
    /// The regular expression in this place.
    Regex(u16),
}

/// A request, or a conversation of several.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    weight: Option<u32>,
    steps: Option<Vec<RawStep>>,
    send: Option<String>,
    exact: Option<String>,
    prefix: Option<String>,
    regex: Option<String>,
}

/// A request, and one of the three ways to say what must come back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    send: Option<String>,
    exact: Option<String>,
    prefix: Option<String>,
    regex: Option<String>,
}

/// What is read while the requests are.
pub(super) struct Reader {
    pub lists: NamedLists,
    pub regexes: Vec<(String, Regex)>,
    pub longest_reply: usize,
}

impl Reader {
    /// Reads a `[[request]]`. What is wrong begins with its place: `: …` or `, step 2: …`.
    pub fn conversation(&mut self, request: Request) -> Result<Conversation<Step>, String> {
        let Request { weight, steps, send, exact, prefix, regex } = request;
        let one = RawStep { send, exact, prefix, regex };
        Conversation::read(weight, steps, one, |step, captures| self.step(step, captures))
    }

    fn step(&mut self, step: RawStep, captures: &mut Captures) -> Result<Step, String> {
        let Some(send) = &step.send else {
            return Err("it has no `send`; write: send = \"{n=int:1..1000}\"".into());
        };
        let [(key, text)] = step.expectations()[..] else {
            let found: Vec<&str> = step.expectations().iter().map(|(key, _)| *key).collect();
            let found = if found.is_empty() { "nothing".into() } else { found.join(" and ") };
            return Err(format!(
                "it says of the reply: {found}; expected one of exact = \"{{n*2}}\", prefix = \
                 \"OK \" and regex = \"[0-9]+ ms\""
            ));
        };
        let mut scope = Scope { captures, lists: &mut self.lists };
        let side = Side::Send;
        let send = template("send", send, side, LONGEST_REQUEST, &mut scope)?;
        let side = Side::Expect { request: send.longest(side, &scope) };
        let expect = match key {
            "exact" => Expect::Exact(template(key, text, side, self.longest_reply, &mut scope)?),
            "prefix" => Expect::Prefix(template(key, text, side, self.longest_reply, &mut scope)?),
            _ => {
                let regex = rules::regex(text).map_err(|why| format!("`regex` = {why}"))?;
                let known = self.regexes.iter().position(|(source, _)| source == text);
                let at = known.unwrap_or(self.regexes.len());
                if known.is_none() {
                    self.regexes.push((text.into(), regex));
                }
                Expect::Regex(u16::try_from(at).map_err(|_| {
                    "there are more than 65,536 different regular expressions".to_string()
                })?)
            }
        };
        Ok(Step { send, expect })
    }
}

impl Raw for RawStep {
    type Step = Step;
    const KEYS: &str = "`send` or an expectation";
    const EXAMPLE: &str = "{ send = \"hello\", exact = \"name?\" }";

    fn is_empty(&self) -> bool {
        self.send.is_none() && self.expectations().is_empty()
    }
}

impl RawStep {
    fn expectations(&self) -> Vec<(&'static str, &str)> {
        let all = [("exact", &self.exact), ("prefix", &self.prefix), ("regex", &self.regex)];
        all.into_iter().filter_map(|(key, text)| Some((key, text.as_deref()?))).collect()
    }
}

fn template(
    key: &str,
    text: &str,
    side: Side,
    most: usize,
    scope: &mut Scope<'_>,
) -> Result<Template, String> {
    if text.contains('\n') {
        return Err(format!(
            "`{key}` = {text:?}: a newline ends a line, and is added to each: leave it out, or write \
             several requests as steps"
        ));
    }
    let template =
        Template::parse(text, side, scope).map_err(|why| format!("`{key}` = {text:?}: {why}"))?;
    let longest = template.longest(side, scope);
    if longest > most {
        return Err(format!(
            "`{key}` = {text:?}: a line can become {longest} bytes long; at most {most} are \
             permitted"
        ));
    }
    Ok(template)
}
