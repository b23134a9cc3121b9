//! A workload file for memcached: parses and validates its keys and templates, and compiles them into
//! the exchanges of a run.

use super::step::{Command, Exchanges, Expectation};
use crate::{
    script::Script,
    workload::{
        compose::{converse, lengths},
        conversation::{Captures, Conversation, Raw},
        draw::{Drawer, Value},
        file::{FileText, Kept, WorkloadFile, conversations},
        lists::NamedLists,
        template::{Scope, Side, Template},
    },
};
use rand::{SeedableRng, rngs::StdRng};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum number of bytes of a key.
const LONGEST_KEY: usize = 250;
/// Maximum number of bytes of a value: a server with default settings accepts items of up to 1 MiB.
const LONGEST_VALUE: usize = 1_000_000;
/// Maximum number of exchanges in a script: fewer than for lines, because each is longer.
const EXCHANGES: usize = 1 << 16;

/// A file with `protocol = "memcached"`.
#[derive(Debug)]
pub struct CacheFile {
    pub(super) kept: Kept,
    conversations: Vec<Conversation<Step>>,
}

/// A command and the expected reply.
#[derive(Debug)]
struct Step {
    key: Template,
    does: Does,
}

#[derive(Debug)]
enum Does {
    Set(Template),
    /// With the expected value, if it is known.
    Get(Option<Template>),
    GetNothing,
    Delete,
    DeleteNothing,
}

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: Option<String>,
    #[serde(rename = "protocol")]
    _protocol: String,
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
    set: Option<String>,
    value: Option<String>,
    get: Option<String>,
    hit: Option<String>,
    delete: Option<String>,
    miss: Option<bool>,
}

/// A command and the expected reply, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    set: Option<String>,
    value: Option<String>,
    get: Option<String>,
    hit: Option<String>,
    delete: Option<String>,
    miss: Option<bool>,
}

impl Raw for RawStep {
    type Step = Step;
    const KEYS: &str = "a command or an expectation";
    const EXAMPLE: &str = "{ set = \"a\", value = \"1\" }, { get = \"a\", hit = \"1\" }";

    fn is_empty(&self) -> bool {
        let RawStep { set, value, get, hit, delete, miss } = self;
        [set, value, get, hit, delete].iter().all(|text| text.is_none()) && miss.is_none()
    }
}

impl WorkloadFile for CacheFile {
    fn read(file: FileText<'_>) -> Result<CacheFile, String> {
        let raw: RawFile = file.parse()?;
        let mut lists = file.lists(raw.lines, BTreeMap::new());
        let example = "set = \"key:{n=int:1..1000}\" and value = \"{alnum:100}\"";
        let conversations = conversations(raw.request, example, |request| {
            let Request { weight, steps, set, value, get, hit, delete, miss } = request;
            let one = RawStep { set, value, get, hit, delete, miss };
            Conversation::read(weight, steps, one, |raw, captures| step(raw, captures, &mut lists))
        })?;
        Ok(CacheFile { kept: file.keep(raw.name, lists)?, conversations })
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

impl CacheFile {
    /// Returns seeded exchanges in whole conversations. Not closed.
    pub(super) fn compose(&self, seed: u64) -> Exchanges {
        let mut drawer = Drawer::new(StdRng::seed_from_u64(seed), &self.kept.lists);
        let (mut script, mut expectations) =
            (Script::new(lengths(&self.conversations)), Vec::new());
        converse(
            &self.conversations,
            EXCHANGES,
            &mut script,
            &mut drawer,
            |step, script, captures, drawer| {
                let mut key = Vec::new();
                step.key.fill_with(&mut key, &[], captures, drawer, write_encoded);
                let mut filled = |template: &Template| {
                    let mut value = Vec::new();
                    template.fill(&mut value, &key, captures, drawer);
                    value
                };
                let command = match &step.does {
                    Does::Set(value) => Command::Set { value: filled(value) },
                    Does::Get(hit) => Command::Get { hit: hit.as_ref().map(filled) },
                    Does::GetNothing => Command::GetNothing,
                    Does::Delete => Command::Delete,
                    Does::DeleteNothing => Command::DeleteNothing,
                };
                let (request, reply, due) = command.bytes(&key);
                script.push(&request, &reply);
                expectations.push(due);
            },
        );
        let all_exact = expectations.iter().all(|due| *due == Expectation::Exact);
        Exchanges { script, expectations: (!all_exact).then_some(expectations) }
    }
}

fn step(raw: RawStep, captures: &mut Captures, lists: &mut NamedLists) -> Result<Step, String> {
    let commands = [("set", &raw.set), ("get", &raw.get), ("delete", &raw.delete)];
    let given: Vec<_> =
        commands.iter().filter_map(|(name, key)| Some((*name, key.as_deref()?))).collect();
    let [(command, key)] = given[..] else {
        let found: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
        let found = if found.is_empty() { "no command".into() } else { found.join(" and ") };
        return Err(format!(
            "it has {found}; expected one of set = \"key:{{n=counter}}\", get and delete"
        ));
    };
    let mut scope = Scope { captures, lists };
    let key = key_template(command, key, &mut scope)?;
    let key_bytes = longest_key(&key, &scope);
    let nothing = raw.miss == Some(true);
    let does = match (command, &raw.value, &raw.hit) {
        ("set", Some(value), None) if raw.miss.is_none() => {
            Does::Set(value_template("value", value, Side::Send, &mut scope)?)
        }
        ("set", None, _) => {
            return Err("`set` needs a value; write: value = \"{alnum:100}\"".into());
        }
        ("get", None, Some(hit)) if raw.miss.is_none() => {
            let side = Side::Expect { request: key_bytes };
            Does::Get(Some(value_template("hit", hit, side, &mut scope)?))
        }
        ("get", None, None) if nothing => Does::GetNothing,
        ("get", None, None) if raw.miss.is_none() => Does::Get(None),
        ("delete", None, None) if nothing => Does::DeleteNothing,
        ("delete", None, None) if raw.miss.is_none() => Does::Delete,
        _ => {
            return Err(format!(
                "`{command}` cannot be combined with its other keys: `value` belongs to set, `hit` to \
                 get, and `miss = true` to get or delete, alone"
            ));
        }
    };
    Ok(Step { key, does })
}

fn key_template(name: &str, text: &str, scope: &mut Scope<'_>) -> Result<Template, String> {
    let wrong = |why: String| format!("`{name}` = {text:?}: {why}");
    let key = Template::parse(text, Side::Send, scope).map_err(wrong)?;
    let own = key.literals("");
    if own.is_empty() {
        return Err(wrong("a key needs some literal text, e.g. key:{n=counter}".into()));
    }
    if let Some(bad) = own.chars().find(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong(format!("a key cannot contain {bad:?}; use another character")));
    }
    let longest = longest_key(&key, scope);
    if longest > LONGEST_KEY {
        return Err(wrong(format!(
            "the key can become {longest} bytes long; at most {LONGEST_KEY} are permitted"
        )));
    }
    Ok(key)
}

/// Maximum number of bytes of a key: a byte of a value takes up to three bytes.
fn longest_key(key: &Template, scope: &Scope<'_>) -> usize {
    let own = key.literals("").len();
    own + 3 * (key.longest(Side::Send, scope) - own)
}

fn value_template(
    name: &str,
    text: &str,
    side: Side,
    scope: &mut Scope<'_>,
) -> Result<Template, String> {
    let wrong = |why: String| format!("`{name}` = {text:?}: {why}");
    let template = Template::parse(text, side, scope).map_err(wrong)?;
    let longest = template.longest(side, scope);
    if longest > LONGEST_VALUE {
        return Err(wrong(format!(
            "the value can become {longest} bytes long; at most {LONGEST_VALUE} are permitted"
        )));
    }
    Ok(template)
}

/// Appends a value to a key. Percent-encodes `%` and all bytes except visible ASCII.
fn write_encoded(value: &Value, key: &mut Vec<u8>) {
    let mut plain = Vec::new();
    value.write(&mut plain);
    for byte in plain {
        match byte.is_ascii_graphic() && byte != b'%' {
            true => key.push(byte),
            false => key.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CacheFile, String> {
        let text = format!("protocol = 'memcached'\n{text}");
        CacheFile::read(FileText::alone(&text, "mine"))
    }

    /// The first `n` exchanges: each request, and its expected reply or the key of any value.
    fn first(n: u32, text: &str) -> Vec<(String, String)> {
        let mut script = read(text).unwrap().compose(3).script;
        script.close(1).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (0..n).map(|i| (text(script.request(i)), text(script.reply(i)))).collect()
    }

    #[test]
    fn writes_commands_and_replies_byte_for_byte() {
        let lines = "[lines]\nwords = ['a b%é']";
        let text = format!(
            "[[request]]\nsteps = [\n\
             {{ set = 'k:{{w=line:words}}', value = '<{{n=int:7..7}}>' }},\n\
             {{ get = 'k:{{w}}', hit = '<{{n}}>' }},\n\
             {{ get = 'k:{{w}}' }},\n\
             {{ delete = 'k:{{w}}' }},\n\
             {{ delete = 'k:{{w}}', miss = true }},\n\
             {{ get = 'k:{{w}}', miss = true }} ]\n{lines}"
        );
        let key = "k:a%20b%25%C3%A9";
        let expected = [
            (format!("set {key} 0 0 3\r\n<7>\r\n"), "STORED\r\n".into()),
            (format!("get {key}\r\n"), format!("VALUE {key} 0 3\r\n<7>\r\nEND\r\n")),
            (format!("get {key}\r\n"), key.into()),
            (format!("delete {key}\r\n"), "DELETED\r\n".into()),
            (format!("delete {key}\r\n"), "NOT_FOUND\r\n".into()),
            (format!("get {key}\r\n"), "END\r\n".into()),
        ];
        assert_eq!(first(6, &text), expected);
        let expectations = read(&text).unwrap().compose(1).expectations.unwrap();
        assert_eq!(
            expectations[..3],
            [Expectation::Exact, Expectation::Exact, Expectation::Either]
        );
    }

    #[test]
    fn replies_known_to_the_byte_are_compared_as_memory() {
        let known = "[[request]]\nset = 'a'\nvalue = 'b'\n[[request]]\nget = 'a'\nhit = 'b'";
        assert!(read(known).unwrap().compose(1).expectations.is_none());
    }

    #[test]
    fn reports_mistakes_with_what_was_expected() {
        let long = "x".repeat(LONGEST_KEY + 1);
        for (request, said) in [
            ("", "request 1: it has no command; expected one of set"),
            ("set = 'a'", "`set` needs a value; write: value ="),
            ("set = 'a'\nget = 'a'", "it has set and get; expected one of"),
            ("set = 'a'\nvalue = 'b'\nhit = 'b'", "`set` cannot be combined"),
            ("get = 'a'\nvalue = 'b'", "`value` belongs to set, `hit` to get"),
            ("get = 'a'\nhit = 'b'\nmiss = true", "`miss = true` to get or delete, alone"),
            ("get = 'a'\nmiss = false", "`get` cannot be combined"),
            ("delete = 'a'\nhit = 'b'", "`delete` cannot be combined"),
            ("get = ''", "a key needs some literal text"),
            ("get = '{n=counter}'", "a key needs some literal text"),
            ("get = 'a b'", "a key cannot contain ' '"),
            ("get = \"a\\u0001\"", "a key cannot contain"),
            ("get = 'k:{hex:90}'", "the key can become 272 bytes long; at most 250"),
            (&format!("get = '{long}'"), "the key can become 251 bytes long"),
            ("set = 'a'\nvalue = '{m}'", "no such placeholder or capture: \"m\""),
            ("set = 'a'\nvalue = '{hex:65536}{hex:65536}'\nweight = 0", "`weight` is 0"),
            ("get = 'a'\nhit = '{hex:3}'", "cannot draw a new value"),
            ("get = 'a'\nexact = 'b'", "unknown field `exact`"),
            ("steps = [{ get = 'a' }, {}]", "request 1, step 2: it has no command"),
            ("get = 'a'\nsteps = []", "and also a command or an expectation"),
        ] {
            let error = read(&format!("[[request]]\n{request}")).unwrap_err();
            assert!(error.contains(said), "{request}: {error}");
        }
        let values = "{hex:65536}".repeat(16);
        let error = read(&format!("[[request]]\nset = 'a'\nvalue = '{values}'")).unwrap_err();
        assert!(error.contains("the value can become 1048576 bytes long"), "{error}");
    }
}
