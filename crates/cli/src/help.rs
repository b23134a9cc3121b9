//! The definition of the command line, with texts that fit every width.

use crate::args::Args;
use clap::{Command, CommandFactory};

/// Returns the definition of the command line. The texts after the options are wrapped in the source; here
/// each paragraph becomes one line, which clap wraps to the width of the terminal.
pub fn command() -> Command {
    Args::command().mut_subcommands(|command| {
        let text = command.get_after_help().map(ToString::to_string);
        match text {
            Some(text) => command.after_help(unwrapped(&text)),
            None => command,
        }
    })
}

/// Joins the lines of each paragraph. Indented lines, such as examples and tables, and the lines before
/// them stay as they are.
fn unwrapped(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        let Some(next) = lines.peek() else { break };
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let joins = is_prose(line) && is_prose(next) && !line.ends_with(':');
        out.push(if joins { ' ' } else { '\n' });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let text = "Examples:\n  a\n  b \\\n    c\n\nOne two\nthree.\n\nExit status: 0\nor 1.";
        let expected = "Examples:\n  a\n  b \\\n    c\n\nOne two three.\n\nExit status: 0 or 1.";
        assert_eq!(unwrapped(text), expected);
    }

    /// The help of each command in 80 columns.
    fn helps() -> Vec<(String, String)> {
        let names: Vec<String> = command().get_subcommands().map(|c| c.get_name().into()).collect();
        let of = |name: String| {
            let mut all = command().term_width(80);
            all.build();
            let command = all.find_subcommand_mut(&name).expect("it is listed");
            (name, command.render_help().to_string())
        };
        names.into_iter().map(of).collect()
    }

    /// The library writes a new line in place of `{n}`, the placeholder for the number of a message.
    #[test]
    fn placeholders_are_shown_as_they_are_written() {
        let (_, load) = helps().into_iter().find(|(name, _)| name == "load").expect("load");
        assert!(load.contains(r#"--expect '{"number": {n-1}}' \"#), "{load}");
    }

    #[test]
    fn prose_fills_its_lines_and_examples_are_not_wrapped() {
        let helps = helps();
        assert!(helps.len() > 10);
        for (name, help) in helps {
            let Some(at) = help.find("\nExamples:\n") else { continue };
            let lines: Vec<&str> = help[at + 1..].lines().collect();
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            for pair in lines.windows(2) {
                let [line, next] = pair else { unreachable!("pairs") };
                assert!(line.chars().count() <= 80, "{name}: {line}");
                let word = next.split(' ').next().unwrap_or_default();
                let fits = line.chars().count() + 1 + word.chars().count() <= 80;
                let joins = is_prose(line) && is_prose(next) && !line.ends_with(':');
                assert!(!joins || !fits, "{name}: wrapped twice:\n{line}\n{next}");
            }
            let text = command().find_subcommand(&name).and_then(|c| c.get_after_help().cloned());
            for example in
                text.unwrap_or_default().to_string().lines().filter(|l| l.starts_with(' '))
            {
                assert!(
                    help.lines().any(|line| line == example),
                    "{name}: an example is wrapped:\n{example}"
                );
            }
        }
    }
}
