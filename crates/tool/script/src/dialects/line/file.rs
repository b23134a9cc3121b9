//! A workload file of lines: parses and validates its keys and templates.

use crate::workload::{
    conversation::{Captures, Conversation, Raw},
    file::{FileText, Kept, WorkloadFile, conversations},
    files::FileContent,
    lists::NamedLists,
    regex::regex,
    template::{Scope, Side, Template},
};
use regex::bytes::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum number of bytes of a request line.
const LONGEST_REQUEST: usize = 65_536;
/// Maximum number of bytes of a reply line if the file does not set one.
const LONGEST_REPLY: usize = 65_536;
/// Maximum value of `longest_reply`.
const MAX_LONGEST_REPLY: usize = 1 << 20;

/// A file with `protocol = "line"`.
#[derive(Debug)]
pub struct LineFile {
    pub(super) kept: Kept,
    pub(super) conversations: Vec<Conversation<Step>>,
    pub(super) regexes: Vec<(String, Regex)>,
    pub(super) longest_reply: usize,
}

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: Option<String>,
    #[serde(rename = "protocol")]
    _protocol: String,
    longest_reply: Option<usize>,
    #[serde(default)]
    request: Vec<Request>,
    #[serde(default)]
    lines: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    files: BTreeMap<String, FileContent>,
}

impl WorkloadFile for LineFile {
    fn read(file: FileText<'_>) -> Result<LineFile, String> {
        let raw: RawFile = file.parse()?;
        let longest_reply = longest_reply(raw.longest_reply)?;
        if !raw.files.is_empty() {
            return Err(
                "the line protocol has no `body_file`, so [files] has no effect; remove it".into(),
            );
        }
        let lists = file.lists(raw.lines, raw.files);
        let mut reader = Reader { lists, regexes: Vec::new(), longest_reply };
        let example = "send = \"{n=int:1..1000}\" and exact = \"{n*2}\"";
        let conversations =
            conversations(raw.request, example, |request| reader.conversation(request))?;
        let Reader { lists, regexes, .. } = reader;
        let kept = file.keep(raw.name, lists)?;
        Ok(LineFile { kept, conversations, regexes, longest_reply })
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

fn longest_reply(given: Option<usize>) -> Result<usize, String> {
    let longest = given.unwrap_or(LONGEST_REPLY);
    if !(1..=MAX_LONGEST_REPLY).contains(&longest) {
        return Err(format!(
            "`longest_reply` is {longest}; expected 1 to {MAX_LONGEST_REPLY} bytes, e.g. \
             longest_reply = 65536"
        ));
    }
    Ok(longest)
}

/// A request line and the expected reply.
#[derive(Debug)]
pub(super) struct Step {
    pub send: Template,
    pub expect: Expect,
}

/// The expected reply.
#[derive(Debug)]
pub(super) enum Expect {
    Exact(Template),
    Prefix(Template),
    /// The regular expression at this index.
    Regex(u16),
}

/// A request, or a conversation of several, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    weight: Option<u32>,
    steps: Option<Vec<RawStep>>,
    send: Option<String>,
    exact: Option<String>,
    prefix: Option<String>,
    regex: Option<String>,
}

/// A request and one of the three keys of an expected reply, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    send: Option<String>,
    exact: Option<String>,
    prefix: Option<String>,
    regex: Option<String>,
}

/// State of reading the requests.
struct Reader {
    lists: NamedLists,
    regexes: Vec<(String, Regex)>,
    longest_reply: usize,
}

impl Reader {
    /// Reads a `[[request]]`. An error starts with its place: `: …` or `, step 2: …`.
    fn conversation(&mut self, request: Request) -> Result<Conversation<Step>, String> {
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
                "expected one of exact = \"{{n*2}}\", prefix = \"OK \" and regex = \"[0-9]+ ms\" for \
                 the reply, found {found}"
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
                let regex = regex(text).map_err(|why| format!("`regex` = {why}"))?;
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
            "`{key}` = {text:?}: a newline is added to each line automatically; remove it, or write \
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
