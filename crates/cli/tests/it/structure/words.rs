//! Phrases that puzzle readers (`scripts/words.txt`) are in no text file of the repository, except lock
//! files and JSON.

use regex::{Regex, RegexBuilder};
use std::{fs, process::Command};

/// The file with the phrases, below the checkout.
const LIST: &str = "scripts/words.txt";

/// A phrase that is not permitted, and what to write instead.
struct Phrase {
    pattern: Regex,
    advice: String,
}

/// The list: phrases, and the texts that are exceptions.
struct List {
    phrases: Vec<Phrase>,
    /// Any of the phrases.
    any: Regex,
    allowed: Regex,
}

impl List {
    /// Reads a list. Fails with the line or the expression that is not valid, or if the line `allow` is
    /// missing.
    fn read(text: &str) -> Result<List, String> {
        let (mut phrases, mut allowed, mut all) = (Vec::new(), None, Vec::new());
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let (pattern, advice) =
                line.split_once('\t').ok_or_else(|| format!("expected a tab in {line:?}"))?;
            if pattern == "allow" {
                allowed = Some(Regex::new(advice).map_err(|error| error.to_string())?);
                continue;
            }
            // A word ends at an underscore, too: names are checked.
            let whole = format!("(?:^|[^a-z])({})(?:$|[^a-z])", pattern.replace(' ', "[ _]"));
            let pattern = RegexBuilder::new(&whole)
                .case_insensitive(true)
                .build()
                .map_err(|error| format!("{line:?}: {error}"))?;
            phrases.push(Phrase { pattern, advice: advice.to_owned() });
            all.push(whole);
        }
        let allowed = allowed.ok_or("expected a line `allow`")?;
        let mut any = RegexBuilder::new(&all.join("|"));
        let any = any.case_insensitive(true).size_limit(1 << 26).build();
        let any = any.map_err(|error| error.to_string())?;
        Ok(List { phrases, any, allowed })
    }

    /// Returns each phrase in `text`, with its line and the advice.
    fn found_in(&self, path: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        // Most files have none. The end of a line is the end of a word, too.
        if !self.any.is_match(text) {
            return found;
        }
        for (n, line) in text.lines().enumerate() {
            let line = self.allowed.replace_all(line, "…");
            // One expression for all phrases is quicker than all of them.
            if !self.any.is_match(&line) {
                continue;
            }
            for phrase in &self.phrases {
                if let Some(what) = phrase.pattern.captures(&line) {
                    let (what, advice) = (&what[1], &phrase.advice);
                    found.push(format!("{path}:{}: {what:?}: write: {advice}", n + 1));
                }
            }
        }
        found
    }
}

#[test]
fn no_text_has_a_phrase_that_puzzles_readers() {
    let root = super::workspace();
    let list = List::read(&fs::read_to_string(root.join(LIST)).expect(LIST)).expect(LIST);
    let files = Command::new("git").args(["ls-files", "-z"]).current_dir(&root).output();
    let files = files.expect("git lists the files of the checkout");
    assert!(files.status.success(), "{files:?}");
    let files = String::from_utf8(files.stdout).expect("paths are UTF-8");
    let (mut found, mut read) = (Vec::new(), 0);
    for path in files.split_terminator('\0') {
        // Lock files have no prose, and stored results have that of their version.
        let is_data = path.ends_with(".lock") || path.ends_with(".json");
        let is_list = path == LIST || path.ends_with("structure/words.rs");
        if is_data || is_list {
            continue;
        }
        // A file that was deleted and is not committed yet is still listed.
        let Ok(bytes) = fs::read(root.join(path)) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        read += 1;
        found.extend(list.found_in(path, &text));
    }
    assert!(read > 500, "only {read} files were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_phrase_is_found_in_prose_in_names_and_at_the_ends_of_lines() {
    let list = List::read("allow\t\"dearer\"\ndearer\tcostlier\nput off\tpostponed\n").unwrap();
    let count = |text: &str| list.found_in("a.rs", text).len();
    assert_eq!(count("// Dearer"), 1);
    assert_eq!(count("fn is_dearer_by() {}"), 1);
    assert_eq!(count("fn put_off() {} // it is put off"), 1, "once a line is enough");
    assert_eq!(count("dearer\nfine\nput off"), 2);
    assert_eq!(count("endearer, put office, #[serde(rename = \"dearer\")]"), 0);
    let found = list.found_in("a.rs", "fine\ndearer");
    assert_eq!(found, ["a.rs:2: \"dearer\": write: costlier"]);
}

#[test]
fn a_list_that_cannot_be_read_is_an_error() {
    assert!(List::read("allow\ta\nno tab").is_err());
    assert!(List::read("allow\ta\n(\tadvice").is_err());
    assert!(List::read("dearer\tcostlier").is_err(), "without exceptions");
}
