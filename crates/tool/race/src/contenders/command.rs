//! A contender as a command: `./server --port {port}`, `PORT={port} ./server`, `image:NAME ./server
//! {port}`. Parses it, and derives a short name for each of several.

use std::collections::{BTreeMap, BTreeSet};

/// Starts the name of a container image in a command.
const IMAGE: &str = "image:";

/// Maximum number of characters that a derived name has after the name of the program.
const LONGEST_LABEL: usize = 24;

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// The variables assigned at its start.
    pub env: BTreeMap<String, String>,
    /// The image of the container that runs it.
    pub image: Option<String>,
    /// Program and arguments. May be empty if there is an image.
    pub start: Vec<String>,
}

impl Command {
    /// Splits a command as a shell would. The error says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Command, String> {
        let words = shell_words::split(text).map_err(|error| format!("{text:?} has a {error}"))?;
        let mut words = words.into_iter().peekable();
        let mut command = Command::default();
        while let Some((name, value)) = words.peek().and_then(|word| assignment(word)) {
            command.env.insert(name.to_owned(), value.to_owned());
            words.next();
        }
        if let Some(image) = words.peek().and_then(|word| word.strip_prefix(IMAGE)) {
            command.image = Some(image.to_owned());
            words.next();
        }
        command.start = words.collect();
        Ok(command)
    }

    /// Whether `{port}` is somewhere in it.
    pub fn has_port(&self) -> bool {
        self.start.iter().chain(self.env.values()).any(|word| word.contains("{port}"))
    }

    /// Returns the name of its program or image, without folders.
    fn program(&self) -> String {
        let path = match &self.image {
            Some(image) => image.split('@').next().unwrap_or_default().to_owned(),
            None => program_of(&self.start),
        };
        let name = last_part(&path);
        if name.is_empty() { "server".to_owned() } else { name }
    }

    /// Returns the words in which it may differ from another command of the same program, each with a
    /// label for names. An option that precedes a value labels it.
    fn words(&self) -> Vec<(String, String)> {
        let folders = self.start.first().map_or("", String::as_str).rsplit_once('/');
        let folders = folders.map_or("", |(folders, _)| folders).split('/');
        let mut words: Vec<(String, String)> = folders
            .filter(|folder| !folder.is_empty() && *folder != ".")
            .map(|folder| (folder.to_owned(), folder.to_owned()))
            .collect();
        words.extend(self.image.iter().map(|image| (image.clone(), image.clone())));
        for (name, value) in &self.env {
            words.push((format!("{name}={value}"), format!("{name}={value}")));
        }
        let mut option = "";
        for word in self.start.iter().skip(1) {
            let is_option = word.starts_with('-');
            let label = if is_option { word.clone() } else { format!("{option} {word}") };
            words.push((word.clone(), label));
            option = if is_option { word } else { "" };
        }
        words
    }
}

/// Returns the name and the value of a word like `PORT=80`. Names are in capitals, so that a word such as
/// `old=./old` is not one.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_good = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let starts_well = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    (starts_well && name.chars().all(is_good)).then_some((name, value))
}

/// Returns the program that a command runs, which is inside the script of a shell.
fn program_of(start: &[String]) -> String {
    let program = start.first().map_or("", String::as_str);
    let is_shell = ["sh", "bash", "dash"].contains(&last_part(program).as_str());
    let script = start.get(1).filter(|word| is_shell && *word == "-c").and(start.get(2));
    let in_script = script.and_then(|script| {
        let words = shell_words::split(script).ok()?;
        words.into_iter().find(|word| word != "exec" && assignment(word).is_none())
    });
    // A variable, or a word of the shell's language, names no program.
    let is_program = |word: &String| word != "cd" && !word.contains(['$', ';', '(', '{', '&']);
    in_script.filter(is_program).unwrap_or_else(|| program.to_owned())
}

/// Returns the part of a path after its last slash, with the characters that a name may have.
fn last_part(path: &str) -> String {
    sanitised(path.rsplit('/').next().unwrap_or_default())
}

/// Replaces each sequence of characters that a name may not have by a hyphen.
fn sanitised(text: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let parts = text.split(|c: char| !is_good(c)).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").trim_matches('-').to_owned()
}

/// Returns a distinct name for each command: that of its program and, if several run the same program,
/// what differs. Avoids the names in `taken`, and names that a twin of another may get.
pub(crate) fn names(commands: &[Command], taken: &[&str]) -> Vec<String> {
    let programs: Vec<String> = commands.iter().map(Command::program).collect();
    let words: Vec<Vec<(String, String)>> = commands.iter().map(Command::words).collect();
    let mut names: Vec<String> = Vec::new();
    for (i, program) in programs.iter().enumerate() {
        let others = || (0..commands.len()).filter(|&j| j != i && programs[j] == *program);
        let sets: Vec<BTreeSet<&String>> =
            others().map(|j| words[j].iter().map(|(word, _)| word).collect()).collect();
        let differs = |word: &String| sets.iter().any(|set| !set.contains(word));
        let labels = words[i].iter().filter(|(word, _)| differs(word));
        let labels: Vec<String> = labels.map(|(_, label)| sanitised(label)).collect();
        let label: String = labels.join("-").chars().take(LONGEST_LABEL).collect();
        let name = match label.trim_matches('-') {
            "" => program.clone(),
            label => format!("{program}-{label}"),
        };
        let is_free = |name: &String| {
            let clashes = |other: &str| {
                other == name
                    || *name == regatta_record::twin_name(other)
                    || other == regatta_record::twin_name(name)
            };
            !taken.iter().any(|other| clashes(other)) && !names.iter().any(|other| clashes(other))
        };
        let numbered = (2..).map(|n| format!("{name}-{n}"));
        let free = [name.clone()].into_iter().chain(numbered).find(is_free);
        names.extend(free);
    }
    names
}

#[cfg(test)]
mod tests;
