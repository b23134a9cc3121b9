//! Reads a Markdown page: its headings, its links, and its code blocks with what a test does with them.
//!
//! The words after the language of a code block say how it is tested. Readers do not see them.
//!
//! | block | test |
//! |---|---|
//! | `sh` | the commands are run, in one folder for all blocks of a page |
//! | `sh raced` | its races are run, shortened; otherwise a race prints only its plan |
//! | `sh status=1,3` | one of these exit statuses is expected; 0 if absent |
//! | `sh server=PORT` | a server, which runs until the page ends |
//! | `sh skipped: WHY` | not run, only the arguments of its `regatta` commands are checked |
//! | `toml file=NAME` (or another language) | the block is written to this file of the folder |
//! | `text output` | has the shape of the output of the block of commands before it |
//!
//! The comments `<!-- setup: COMMANDS -->` and `<!-- server=PORT: COMMAND -->` have commands that readers
//! do not see.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::{collections::HashMap, fs, path::Path};

/// What a test does with a part of a page.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Runs commands.
    Run { commands: String, raced: bool, statuses: Vec<i32> },
    /// Starts a server and waits until it accepts connections.
    Serve { command: String, port: String },
    /// Checks only the arguments of `regatta` commands. `why` they are not run.
    Check { commands: String, why: String },
    /// Writes a file.
    Write { name: String, text: String },
    /// Compares the output of the last commands.
    Compare { output: String },
}

/// A page.
#[derive(Default)]
pub struct Page {
    /// The steps, each with its line.
    pub steps: Vec<(usize, Step)>,
    /// The targets of links and images, each with its line.
    pub links: Vec<(usize, String)>,
    /// The anchors of the headings.
    pub anchors: Vec<String>,
    /// Code within the text, each with its line.
    pub code: Vec<(usize, String)>,
    /// Code blocks that no test would see, each with its line and the reason.
    pub wrong: Vec<String>,
}

impl Page {
    /// Reads a file. Panics if it cannot be read, or if a code block has words that are not known.
    pub fn read(path: &Path) -> Page {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let page = Page::from_text(&text);
        assert!(page.wrong.is_empty(), "{}:{}", path.display(), page.wrong.join("\n"));
        page
    }

    /// Reads a text.
    pub fn from_text(text: &str) -> Page {
        let mut page = Page::default();
        let (mut block, mut heading) = (None::<(usize, String, String)>, None::<String>);
        let mut comment = String::new();
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            let line = text[..range.start].matches('\n').count() + 1;
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    block = Some((line, info.to_string(), String::new()));
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => {
                    page.wrong
                        .push(format!("{line}: an indented code block; expected a fenced one"));
                    block = Some((line, "text".to_owned(), String::new()));
                }
                Event::End(TagEnd::CodeBlock) => {
                    let (line, info, text) = block.take().expect("the start of the block");
                    match step(&info, text) {
                        Ok(step) => page.steps.extend(step.map(|step| (line, step))),
                        Err(why) => page.wrong.push(format!("{line}: {why}")),
                    }
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    page.anchors.push(anchor(&heading.take().expect("the start of the heading")));
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((line, dest_url.to_string()));
                }
                Event::Start(Tag::HtmlBlock) => comment.clear(),
                Event::Html(html) => comment.push_str(&html),
                Event::End(TagEnd::HtmlBlock) => {
                    page.steps.extend(hidden(&comment).map(|step| (line, step)));
                }
                Event::Text(text) => match (&mut block, &mut heading) {
                    (Some((_, _, block)), _) => block.push_str(&text),
                    (None, Some(heading)) => heading.push_str(&text),
                    (None, None) => {}
                },
                Event::Code(code) => match &mut heading {
                    Some(heading) => heading.push_str(&code),
                    None => page.code.push((line, code.to_string())),
                },
                _ => {}
            }
        }
        number(&mut page.anchors);
        page
    }
}

/// Returns what a test does with a comment, or `None` if it has no commands.
fn hidden(comment: &str) -> Option<Step> {
    let text = comment.trim().strip_prefix("<!-- ")?.strip_suffix("-->")?;
    let (word, commands) = text.split_once(':')?;
    let commands = commands.to_owned();
    match word.strip_prefix("server=") {
        Some(port) => Some(Step::Serve { command: commands, port: port.to_owned() }),
        None if word == "setup" => Some(Step::Run { commands, raced: true, statuses: vec![0] }),
        None => None,
    }
}

/// Returns what a test does with a code block, or `None` if it is only text. Fails with the words that
/// are not known.
fn step(info: &str, text: String) -> Result<Option<Step>, String> {
    let (language, words) = info.split_once(' ').unwrap_or((info, ""));
    if let Some(why) = words.strip_prefix("skipped: ") {
        return Ok(Some(Step::Check { commands: text, why: why.to_owned() }));
    }
    if let Some(name) = words.strip_prefix("file=") {
        return Ok(Some(Step::Write { name: name.to_owned(), text }));
    }
    if let Some(port) = words.strip_prefix("server=") {
        return Ok(Some(Step::Serve { command: text, port: port.to_owned() }));
    }
    match (language, words) {
        ("sh", _) => {
            let (mut raced, mut statuses) = (false, vec![0]);
            for word in words.split_whitespace() {
                if let Some(list) = word.strip_prefix("status=") {
                    let numbers: Result<Vec<i32>, _> = list.split(',').map(str::parse).collect();
                    statuses = numbers.map_err(|error| format!("{word}: {error}"))?;
                } else if word == "raced" {
                    raced = true;
                } else {
                    return Err(format!("expected raced, status= or skipped:, got {word:?}"));
                }
            }
            Ok(Some(Step::Run { commands: text, raced, statuses }))
        }
        ("text", "output") => Ok(Some(Step::Compare { output: text })),
        ("toml" | "yaml", "") => {
            Err(format!("a block of {language} needs `file=NAME` or `skipped: WHY`"))
        }
        ("" | "console" | "bash" | "shell", _) => {
            Err("expected a language: sh for commands, text for output".to_owned())
        }
        (_, "") => Ok(None),
        _ => Err(format!("unknown words after {language}: {words:?}")),
    }
}

/// Returns the anchor that GitHub and mdBook give to a heading.
fn anchor(heading: &str) -> String {
    let mut anchor = String::new();
    for char in heading.trim().chars() {
        match char {
            ' ' => anchor.push('-'),
            '-' | '_' => anchor.push(char),
            _ if char.is_alphanumeric() => anchor.extend(char.to_lowercase()),
            _ => {}
        }
    }
    anchor
}

/// Numbers repeated anchors: `a`, `a-1`, `a-2`.
fn number(anchors: &mut [String]) {
    let mut seen = HashMap::<String, usize>::new();
    for anchor in anchors {
        let count = seen.entry(anchor.clone()).or_insert(0);
        if *count > 0 {
            *anchor = format!("{anchor}-{count}");
        }
        *count += 1;
    }
}
