//! One `[[request]]` of a workload file at a time: from its keys to templates, with everything that
//! can be wrong.

use super::{
    draw::Kind,
    file::{Conversation, Expect, Step},
    lists::NamedLists,
    template::{Scope, Side, Template},
};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

/// Most bytes of a request line.
const LONGEST_REQUEST: usize = 65_536;
/// Most steps of a conversation.
const MOST_STEPS: usize = 1_000;
const GREATEST_WEIGHT: u32 = 1_000_000;

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
    pub fn conversation(&mut self, request: Request) -> Result<Conversation, String> {
        let Request { weight, steps, send, exact, prefix, regex } = request;
        let weight = weight.unwrap_or(1);
        if !(1..=GREATEST_WEIGHT).contains(&weight) {
            return Err(format!(
                ": `weight` is {weight}; expected 1 to {GREATEST_WEIGHT}, as weight = 3"
            ));
        }
        let mut captures = Vec::new();
        let one = RawStep { send, exact, prefix, regex };
        let Some(raw) = steps else {
            let step = self.step(one, &mut captures).map_err(|why| format!(": {why}"))?;
            return Ok(Conversation { weight, steps: vec![step] });
        };
        if one.send.is_some() || !one.expectations().is_empty() {
            return Err(
                ": it has `steps`, and `send` or an expectation beside them; put those into a \
                 step"
                    .into(),
            );
        }
        if raw.is_empty() || raw.len() > MOST_STEPS {
            return Err(format!(
                ": it has {} steps; expected 1 to {MOST_STEPS}, as steps = [{{ send = \"hello\", \
                 exact = \"name?\" }}]",
                raw.len()
            ));
        }
        let mut steps = Vec::new();
        for (i, step) in raw.into_iter().enumerate() {
            let place = |why| format!(", step {}: {why}", i + 1);
            steps.push(self.step(step, &mut captures).map_err(place)?);
        }
        Ok(Conversation { weight, steps })
    }

    fn step(&mut self, step: RawStep, captures: &mut Vec<(String, Kind)>) -> Result<Step, String> {
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
        let mut scope = Scope { captures: std::mem::take(captures), lists: &mut self.lists };
        let side = Side::Send;
        let send = template("send", send, side, LONGEST_REQUEST, &mut scope)?;
        let side = Side::Expect { request: send.longest(side, &scope) };
        let expect = match key {
            "exact" => Expect::Exact(template(key, text, side, self.longest_reply, &mut scope)?),
            "prefix" => Expect::Prefix(template(key, text, side, self.longest_reply, &mut scope)?),
            _ => {
                let regex = regex(text)?;
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
        *captures = scope.captures;
        Ok(Step { send, expect })
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

/// Matches whole lines only. What a user wrote cannot make it slow: the time of this engine grows
/// with the length of the line, whatever the expression (crate `regex`, "untrusted input").
fn regex(text: &str) -> Result<Regex, String> {
    let build = |text: &str| {
        RegexBuilder::new(text).size_limit(1 << 20).dfa_size_limit(1 << 20).build().map_err(
            |error| {
                format!(
                    "`regex` = {text:?} is no regular expression of the crate `regex`: {error}; \
                     one is written as '[0-9]+ ms'"
                )
            },
        )
    };
    // First alone, so that it cannot close the group that anchors it.
    build(text)?;
    build(&format!(r"\A(?:{text})\z"))
}
