//! A workload file: what it says, in TOML, with everything that can be wrong told before a run. The
//! files that it names are read with it, so that its text and nothing else need be kept. Its requests
//! are read in `line` and `http_file`; how a script is made of it is in `compose`.

use super::{
    conversation::Conversation,
    files::{FileContent, Files},
    http_file::{self, Http},
    line::{self, Lines},
    lists::{self, NamedLists},
};
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// A workload of the user's own: `workloads/*.toml`.
#[derive(Debug)]
pub struct WorkloadFile {
    pub(super) name: String,
    /// Its text; with what the files have that it names, where it names any.
    text: String,
    pub(super) requests: Requests,
    pub(super) lists: Vec<Vec<Vec<u8>>>,
}

/// What is sent and expected, in its protocol.
#[derive(Debug)]
pub(super) enum Requests {
    Lines(Lines),
    Http(Http),
}

/// A workload file cannot be used: what is wrong, and how it is written rightly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the workload {origin}: {because}")]
pub struct WorkloadError {
    origin: String,
    because: String,
}

/// Most bytes of a reply line, where the file says nothing.
const LONGEST_REPLY: usize = 65_536;
/// More than that `longest_reply` cannot be.
const LONGEST_LONGEST_REPLY: usize = 1 << 20;
/// Most `[[request]]` of a file.
const MOST_REQUESTS: usize = 1_000;

/// What every workload file has, whatever its protocol.
#[derive(Deserialize)]
struct Head {
    protocol: Option<String>,
}

/// A workload file with requests of a protocol.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<R> {
    name: Option<String>,
    #[serde(rename = "protocol")]
    _protocol: String,
    longest_reply: Option<usize>,
    #[serde(default = "Vec::new")]
    request: Vec<R>,
    #[serde(default)]
    lines: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    files: BTreeMap<String, FileContent>,
}

impl WorkloadFile {
    /// Reads a workload file, and the files of lines that it names, relative to it.
    pub fn read(path: &Path) -> Result<WorkloadFile, WorkloadError> {
        let origin = path.display().to_string();
        let error = |because| WorkloadError { origin: origin.clone(), because };
        let text = lists::read(path).map_err(error)?;
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

    /// Whether its requests are HTTP.
    pub fn is_http(&self) -> bool {
        matches!(self.requests, Requests::Http(_))
    }

    /// `folder` is where the files are that it names; `None` if all must stand in the text.
    fn parse(text: &str, stem: &str, folder: Option<PathBuf>) -> Result<WorkloadFile, String> {
        let head: Head = toml::from_str(text).map_err(|error| error.to_string())?;
        match head.protocol.as_deref() {
            Some("line") => Self::of_lines(text, stem, folder),
            Some("http") => Self::of_http(text, stem, folder),
            None => {
                Err("it does not say its protocol; write: protocol = \"line\", or \"http\"".into())
            }
            Some(other) => Err(format!(
                "the protocol {other:?} is not spoken; write: protocol = \"line\", or \"http\""
            )),
        }
    }

    fn of_lines(text: &str, stem: &str, folder: Option<PathBuf>) -> Result<WorkloadFile, String> {
        let file: File<line::Request> = read(text)?;
        let longest_reply = file.longest_reply()?;
        if !file.files.is_empty() {
            return Err("lines have no `body_file`, so [files] says nothing: leave it out".into());
        }
        let name = file.name(stem)?;
        let lists = NamedLists::new(file.lines, Files::new(file.files), folder);
        let mut reader = line::Reader { lists, regexes: Vec::new(), longest_reply };
        let example = "send = \"{n=int:1..1000}\" and exact = \"{n*2}\"";
        let conversations =
            conversations(file.request, example, |request| reader.conversation(request))?;
        let line::Reader { lists, regexes, .. } = reader;
        let requests = Requests::Lines(Lines { conversations, regexes, longest_reply });
        Ok(WorkloadFile { name, text: lists.put_into(text)?, requests, lists: lists.lists })
    }

    fn of_http(text: &str, stem: &str, folder: Option<PathBuf>) -> Result<WorkloadFile, String> {
        let file: File<http_file::Request> = read(text)?;
        if file.longest_reply.is_some() {
            return Err(
                "`longest_reply` is for lines; a content in HTTP that is looked at may have \
                        16 MiB: leave it out"
                    .into(),
            );
        }
        let name = file.name(stem)?;
        let lists = NamedLists::new(file.lines, Files::new(file.files), folder);
        let mut reader = http_file::Reader::new(lists);
        let conversations =
            conversations(file.request, "path = \"/\"", |request| reader.conversation(request))?;
        let http_file::Reader { lists, kinds, .. } = reader;
        let requests = Requests::Http(Http { conversations, kinds });
        Ok(WorkloadFile { name, text: lists.put_into(text)?, requests, lists: lists.lists })
    }
}

fn read<R: DeserializeOwned>(text: &str) -> Result<File<R>, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

impl<R> File<R> {
    fn name(&self, stem: &str) -> Result<String, String> {
        let name = self.name.as_deref().unwrap_or(stem);
        check_name(name)?;
        Ok(name.into())
    }

    fn longest_reply(&self) -> Result<usize, String> {
        let longest = self.longest_reply.unwrap_or(LONGEST_REPLY);
        if !(1..=LONGEST_LONGEST_REPLY).contains(&longest) {
            return Err(format!(
                "`longest_reply` is {longest}; expected bytes from 1 to {LONGEST_LONGEST_REPLY}, as \
                 longest_reply = 65536"
            ));
        }
        Ok(longest)
    }
}

/// Reads each `[[request]]`; `example` is what one has at least.
fn conversations<R, S>(
    requests: Vec<R>,
    example: &str,
    mut read: impl FnMut(R) -> Result<Conversation<S>, String>,
) -> Result<Vec<Conversation<S>>, String> {
    if requests.is_empty() || requests.len() > MOST_REQUESTS {
        return Err(format!(
            "it has {} requests; expected 1 to {MOST_REQUESTS}, each as [[request]] with {example}",
            requests.len()
        ));
    }
    let numbered = requests.into_iter().enumerate();
    numbered
        .map(|(i, request)| read(request).map_err(|why| format!("request {}{why}", i + 1)))
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "protocol = 'line'\n";

    proptest! {
        #[test]
        fn whatever_stands_in_a_template_is_read_or_told(
            send in prop::collection::vec(fragment(), 0..12),
            exact in prop::collection::vec(fragment(), 0..12),
        ) {
            let (send, exact) = (send.concat(), exact.concat());
            let text = format!("{HEAD}[[request]]\nsend='{send}'\nexact='{exact}'");
            if let Err(error) = WorkloadFile::from_text(&text, "mine") {
                prop_assert!(error.to_string().contains("request 1: `"), "{}", error);
            }
        }
    }

    fn fragment() -> impl Strategy<Value = String> {
        let parts = [
            "{",
            "}",
            "{{",
            "}}",
            "=",
            ":",
            "..",
            "*",
            "+",
            "-",
            " ",
            "n",
            "s",
            "int",
            "hex",
            "len",
            "request",
            "1",
            "99999999999999999999",
            "{n=int:1..9}",
            "{s=hex:3}",
            "{counter}",
            "{n}",
        ];
        prop_oneof![
            4 => prop::sample::select(parts.to_vec()).prop_map(str::to_owned),
            1 => "[^'\\p{Cc}]{1,3}",
        ]
    }

    #[test]
    fn the_examples_of_the_readme_are_right() {
        let readme = include_str!("../../../../README.md");
        let blocks = readme.split("```toml\n").skip(1).filter_map(|part| part.split_once("```"));
        let mut files = blocks.map(|(block, _)| block).filter(|text| text.starts_with("protocol"));
        let text = format!("{}\n[lines]\n'passwords.txt' = ['x']", files.next().unwrap());
        let lines = WorkloadFile::from_text(&text, "mine").unwrap();
        assert!(matches!(lines.requests, Requests::Lines(lines) if lines.conversations.len() == 2));
        let http = WorkloadFile::from_text(files.next().unwrap(), "mine").unwrap();
        assert!(matches!(http.requests, Requests::Http(http) if http.conversations.len() == 2));
        assert!(files.next().is_none(), "another one is not tried");
    }

    fn error(text: &str) -> String {
        match WorkloadFile::from_text(text, "mine") {
            Ok(_) => panic!("no error in {text:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn mistakes_in_the_file_are_told_with_what_was_expected() {
        let request = "[[request]]\nsend='a'\nexact='b'\n";
        let with = |more: &str| format!("{HEAD}{more}");
        for (text, said) in [
            (with("[[request]\n"), "line 2"),
            (request.into(), "write: protocol = \"line\""),
            (format!("protocol='smtp'\n{request}"), "the protocol \"smtp\" is not spoken"),
            (HEAD.into(), "it has 0 requests; expected 1 to 1000, each as [[request]]"),
            (with(&format!("nmae='x'\n{request}")), "unknown field `nmae`"),
            (with(&format!("{request}weigth=2")), "unknown field `weigth`"),
            (with(&format!("name='a b'\n{request}")), "the name \"a b\" cannot be used"),
            (with(&format!("name='a.toml'\n{request}")), "does not end in .toml"),
            (with(&format!("longest_reply=0\n{request}")), "`longest_reply` is 0; expected"),
            (with(&format!("{request}weight=0")), "request 1: `weight` is 0; expected 1 to"),
            (with(&format!("{request}[[request]]\nexact='b'")), "request 2: it has no `send`"),
            (with("[[request]]\nsend='a'"), "says of the reply: nothing; expected one of exact"),
            (with(&format!("{request}prefix='b'")), "says of the reply: exact and prefix"),
            (with(&format!("{request}steps=[]")), "it has `steps`, and `send` or"),
            (with("[[request]]\nsteps=[]"), "it has 0 steps; expected 1 to"),
            (with("[[request]]\nsteps=[{send='a',exact='b'},{send='c'}]"), "request 1, step 2:"),
            (with("[[request]]\nsteps=[{send='a',exact='b',weight=1}]"), "unknown field `weight`"),
            (with("[[request]]\nsend='a'\nregex='a('"), "is no regular expression"),
            (with("[[request]]\nsend='a'\nregex='a)|(b'"), "is no regular expression"),
            (with("[[request]]\nsend='a'\nregex='(\\w{100}){1000}'"), "size limit"),
            (with("[[request]]\nsend=\"a\\nb\"\nexact='c'"), "a newline ends a line"),
            (with("[[request]]\nsend='{line:x}'\nexact='c'\n[lines]\nx=[]"), "x has no lines"),
            (with("[[request]]\nsend='{line:x}'\nexact='c'"), "\"x\" are not in [lines]"),
            (
                with("[[request]]\nsend='{line:x}'\nexact='c'\n[lines]\nx=[\"a\\nb\"]"),
                "has a newline in it",
            ),
            (with("[[request]]\nsend='{hex:65536}!'\nexact=''"), "can become 65537 bytes long"),
            (
                with("longest_reply=9\n[[request]]\nsend='{s=hex:9}'\nexact='>{s}'"),
                "`exact` = \">{s}\": a line can become 10 bytes long; at most 9",
            ),
        ] {
            let error = error(&text);
            assert!(error.contains(said) && error.starts_with("the workload mine: "), "{error}");
        }
    }

    #[test]
    fn mistakes_in_templates_are_told_with_an_example() {
        for (send, exact, said) in [
            ("{", "", "a single {; a placeholder is written {int:1..9}"),
            ("a}b", "", "a single }; "),
            ("{n", "", "a single {"),
            ("{}", "", "{}: expected an integer"),
            ("{foo}", "", "no placeholder and no capture \"foo\"; nothing is captured so far"),
            ("{foo:3}", "", "no placeholder \"foo\"; there are {counter}"),
            ("{n=int:1..2}", "{m}", "captured so far: n; there are"),
            ("{int}", "", "int needs more, as {int:1..1000}"),
            ("{int:5}", "", "expected a range as {int:1..1000}"),
            ("{int:1..x}", "", "found \"1..x\""),
            ("{int:9..1}", "", "the range 9..1 is empty"),
            ("{int:0..99999999999999999999}", "", "between -2^64 and 2^64"),
            ("{hex:-1}", "", "expected lengths from 0 to 65536"),
            ("{hex:x}", "", "expected a length as {hex:8} or {hex:3..10}"),
            ("{alnum}", "", "alnum needs more, as {alnum:8}"),
            ("{counter:x}", "", "expected an integer"),
            ("{int=int:1..2}", "", "\"int\" cannot be a name"),
            ("{1=int:1..2}", "", "\"1\" cannot be a name"),
            ("{n=int:1..2}{n=int:1..2}", "", "n is captured already"),
            ("a", "{int:1..2}", "what must come back cannot be drawn anew"),
            ("{n=int:1..2}", "{m=n}", "only what is sent can be captured"),
            ("{request}", "", "the request is known only where a reply is expected"),
            ("{s=hex:2}", "{s+1}", "s is text; only integers"),
            ("{n=int:1..2}", "{n/2}", "expected +, - or *, found '/'"),
            ("{n=int:0..18446744073709551616}", "{n*n}", "this can exceed 128 bits"),
            ("a", "{upper:}", "upper needs the name of a capture, as {upper:name}"),
        ] {
            let error = error(&format!("{HEAD}[[request]]\nsend='{send}'\nexact='{exact}'"));
            assert!(error.contains(said), "{send} {exact}: {error}");
            assert!(error.contains("request 1: `"), "{error}");
        }
    }

    #[test]
    fn files_that_cannot_be_read_are_told_by_their_path() {
        let folder = std::env::temp_dir().join(format!("regatta-workload-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("mine.toml");
        let told = |text: &str, words: &[u8]| {
            std::fs::write(&path, text).unwrap();
            std::fs::write(folder.join("words"), words).unwrap();
            WorkloadFile::read(&path).map(|_| ()).map_err(|error| error.to_string())
        };
        let text = |words: &str| format!("{HEAD}[[request]]\nsend='{{line:{words}}}'\nexact=''");
        let results = [
            told(&text("words"), b"a\r\nb\n"),
            told(&text("words"), b""),
            told(&text("words"), b"\xff\n"),
            told(&text("words"), &vec![b'\n'; (4 << 20) + 1]),
            told(&text("missing"), b""),
            told(&text("."), b""),
        ];
        std::fs::remove_dir_all(&folder).unwrap();
        let said = [
            "words has no lines",
            "valid UTF-8",
            "at most 4 MiB",
            "/missing: No such",
            "expected a file",
        ];
        assert_eq!(results[0], Ok(()));
        for (result, said) in results[1..].iter().zip(said) {
            let error = result.as_ref().unwrap_err();
            assert!(error.contains(said) && error.contains("mine.toml"), "{error}");
        }
    }
}
