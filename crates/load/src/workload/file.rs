//! A workload file: what it says, in TOML, with everything that can be wrong told before a run. The
//! lines that it names are read with it, so that its text and nothing else can be kept. How a script
//! is made of it is in `compose`.

use super::template::{Lists, Scope, Side, Template};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// A workload of the user's own: `workloads/*.toml`.
#[derive(Debug)]
pub struct WorkloadFile {
    pub(super) name: String,
    /// Its text; with the lines of the files that it names, where it names any.
    text: String,
    pub(super) conversations: Vec<Conversation>,
    pub(super) regexes: Vec<(String, Regex)>,
    pub(super) lists: Vec<Vec<Vec<u8>>>,
    pub(super) longest_reply: usize,
}

/// Requests that follow each other on one connection.
#[derive(Debug)]
pub(super) struct Conversation {
    /// How often it is chosen, relative to the others.
    pub weight: u32,
    pub steps: Vec<Step>,
}

/// A request, and what must come back.
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

/// A workload file cannot be used: what is wrong, and how it is written rightly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the workload {origin}: {because}")]
pub struct WorkloadError {
    origin: String,
    because: String,
}

/// Most bytes of a workload file, and of each file of lines.
const MOST_BYTES: u64 = 4 << 20;
/// Most bytes of a request line.
const LONGEST_REQUEST: usize = 65_536;
/// Most bytes of a reply line, where the file says nothing.
const LONGEST_REPLY: usize = 65_536;
/// More than that `longest_reply` cannot be.
const LONGEST_LONGEST_REPLY: usize = 1 << 20;
/// Most requests, and most steps of one.
const MOST: usize = 1_000;
const GREATEST_WEIGHT: u32 = 1_000_000;

/// What every workload file has, whatever its protocol.
#[derive(Deserialize)]
struct Head {
    protocol: Option<String>,
}

/// A workload file with `protocol = "line"`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineFile {
    name: Option<String>,
    #[serde(rename = "protocol")]
    _protocol: String,
    longest_reply: Option<usize>,
    #[serde(default)]
    request: Vec<Request>,
    #[serde(default)]
    lines: BTreeMap<String, Vec<String>>,
}

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    send: Option<String>,
    exact: Option<String>,
    prefix: Option<String>,
    regex: Option<String>,
}

impl WorkloadFile {
    /// Reads a workload file, and the files of lines that it names, relative to it.
    pub fn read(path: &Path) -> Result<WorkloadFile, WorkloadError> {
        let origin = path.display().to_string();
        let error = |because| WorkloadError { origin: origin.clone(), because };
        let text = read(path).map_err(error)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&text, &stem, Some(folder.into())).map_err(error)
    }

    /// The workload of a text that [`WorkloadFile::text`] gave; it needs no other file. `name` is
    /// its name where the text has none.
    pub fn from_text(text: &str, name: &str) -> Result<WorkloadFile, WorkloadError> {
        Self::parse(text, name, None)
            .map_err(|because| WorkloadError { origin: name.into(), because })
    }

    /// Its name: that of the file's `name`, or else of the file without its ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A text that says all of it, without any other file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// `folder` is where files of lines are; `None` if they must stand in the text.
    fn parse(text: &str, stem: &str, folder: Option<PathBuf>) -> Result<WorkloadFile, String> {
        let head: Head = toml::from_str(text).map_err(|error| error.to_string())?;
        match head.protocol.as_deref() {
            Some("line") => {}
            None => return Err("it does not say its protocol; write: protocol = \"line\"".into()),
            Some(other) => {
                return Err(format!(
                    "the protocol {other:?} is not spoken; write: protocol = \"line\""
                ));
            }
        }
        let file: LineFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let name = file.name.unwrap_or_else(|| stem.into());
        check_name(&name)?;
        let longest_reply = file.longest_reply.unwrap_or(LONGEST_REPLY);
        if !(1..=LONGEST_LONGEST_REPLY).contains(&longest_reply) {
            return Err(format!(
                "`longest_reply` is {longest_reply}; expected bytes from 1 to \
                 {LONGEST_LONGEST_REPLY}, as longest_reply = 65536"
            ));
        }
        if file.request.is_empty() || file.request.len() > MOST {
            return Err(format!(
                "it has {} requests; expected 1 to {MOST}, each as [[request]] with send = \
                 \"{{n=int:1..1000}}\" and exact = \"{{n*2}}\"",
                file.request.len()
            ));
        }
        let mut reader = Reader {
            lists: NamedLists { inline: file.lines, folder, names: vec![], lists: vec![] },
            regexes: Vec::new(),
            longest_reply,
        };
        let mut conversations = Vec::new();
        for (i, request) in file.request.into_iter().enumerate() {
            let place = |why| format!("request {}{why}", i + 1);
            conversations.push(reader.conversation(request).map_err(place)?);
        }
        let Reader { lists, regexes, .. } = reader;
        Ok(WorkloadFile {
            name,
            text: lists.put_into(text)?,
            conversations,
            regexes,
            lists: lists.lists,
            longest_reply,
        })
    }
}

/// What is read while the requests are.
struct Reader {
    lists: NamedLists,
    regexes: Vec<(String, Regex)>,
    longest_reply: usize,
}

impl Reader {
    fn conversation(&mut self, request: Request) -> Result<Conversation, String> {
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
                ": it has `steps`, and `send` or an expectation beside them; put those into \
                        a step"
                    .into(),
            );
        }
        if raw.is_empty() || raw.len() > MOST {
            return Err(format!(
                ": it has {} steps; expected 1 to {MOST}, as steps = [{{ send = \"hello\", exact = \
                 \"name?\" }}]",
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

    fn step(
        &mut self,
        step: RawStep,
        captures: &mut Vec<(String, super::draw::Kind)>,
    ) -> Result<Step, String> {
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

fn check_name(name: &str) -> Result<(), String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_good = name.chars().all(is_good) && !name.ends_with(".toml");
    if name.is_empty() || name.len() > 100 || !is_good {
        return Err(format!(
            "the name {name:?} cannot be used: a name has letters, digits, '-', '_' and '.', and \
             does not end in .toml; write: name = \"mine\""
        ));
    }
    Ok(())
}

/// The lists of lines that the placeholders of a file name.
struct NamedLists {
    /// Those of the file itself.
    inline: BTreeMap<String, Vec<String>>,
    folder: Option<PathBuf>,
    /// Those that were asked for, in the order of `lists`.
    names: Vec<String>,
    lists: Vec<Vec<Vec<u8>>>,
}

impl Lists for NamedLists {
    fn find(&mut self, name: &str) -> Result<usize, String> {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            return Ok(at);
        }
        let lines: Vec<String> = match (self.inline.get(name), &self.folder) {
            (Some(lines), _) => lines.clone(),
            (None, Some(folder)) => read(&folder.join(name))?.lines().map(str::to_owned).collect(),
            (None, None) => return Err(format!("its lines {name:?} are not in [lines]")),
        };
        if lines.is_empty() {
            return Err(format!("{name} has no lines; write one a line"));
        }
        if lines.iter().any(|line| line.contains('\n')) {
            return Err(format!("a line of {name} has a newline in it; write one a line"));
        }
        self.names.push(name.into());
        self.lists.push(lines.into_iter().map(String::into_bytes).collect());
        Ok(self.lists.len() - 1)
    }

    fn longest(&self, list: usize) -> usize {
        self.lists[list].iter().map(Vec::len).max().unwrap_or(0)
    }
}

impl NamedLists {
    /// The text of the file, with the lines that came from elsewhere in it.
    fn put_into(&self, text: &str) -> Result<String, String> {
        let from_elsewhere = |(name, _): &(&String, _)| !self.inline.contains_key(*name);
        let mut lists = self.names.iter().zip(&self.lists).filter(from_elsewhere).peekable();
        if lists.peek().is_none() {
            return Ok(text.into());
        }
        let mut file: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let table = file.entry("lines").or_insert_with(|| toml::Table::new().into());
        for (name, list) in lists {
            let lines = list.iter().map(|line| String::from_utf8_lossy(line).into_owned());
            let lines: Vec<toml::Value> = lines.map(toml::Value::from).collect();
            if let Some(table) = table.as_table_mut() {
                table.insert(name.clone(), lines.into());
            }
        }
        toml::to_string(&file).map_err(|error| error.to_string())
    }
}

/// The text of a file that is not too large.
fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    let cannot = |error: std::io::Error| format!("cannot read {name}: {error}");
    let about = fs::metadata(path).map_err(cannot)?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(format!(
            "cannot read {name}: expected a file of at most {} MiB",
            MOST_BYTES >> 20
        ));
    }
    fs::read_to_string(path).map_err(cannot)
}
