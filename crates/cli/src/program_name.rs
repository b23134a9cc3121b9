//! Commands in messages. Messages name commands as `regatta …`; if that is not on PATH, the terminal shows
//! the path with which this program was called, so that the command can be copied. Stored results and
//! files keep `regatta`.

use regatta_host::find_on_path;
use regatta_record::Summary;
use std::{borrow::Cow, env, ffi::OsStr, fs, path::Path, sync::OnceLock};

/// The name of the program in messages.
const NAME: &str = "regatta";

/// Returns a text for the terminal with its commands as they can be called here. JSON and Markdown, which
/// start with `{` and `#`, are returned as they are.
pub fn as_called(text: &str) -> Cow<'_, str> {
    match called() {
        Some(program) if !text.starts_with(['{', '#']) => with_program(text, program),
        _ => Cow::Borrowed(text),
    }
}

/// Returns a summary with its commands as they can be called here, so that its texts are wrapped with
/// them; `None` if that is how they are written.
pub fn summary_as_called(summary: &Summary) -> Option<Summary> {
    let program = called()?;
    let text = serde_json::to_string(summary).ok()?;
    serde_json::from_str(&with_program(&text, program)).ok()
}

/// Returns how a shell calls this program, unless it is on PATH.
fn called() -> Option<&'static str> {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    Some(PROGRAM.get_or_init(program).as_str()).filter(|program| *program != NAME)
}

/// Replaces the program of each command in backticks.
fn with_program<'t>(text: &'t str, program: &str) -> Cow<'t, str> {
    let command = format!("`{NAME} ");
    match text.contains(&command) {
        true => Cow::Owned(text.replace(&command, &format!("`{program} "))),
        false => Cow::Borrowed(text),
    }
}

/// Returns how a shell calls this program.
fn program() -> String {
    let on_path = find_on_path(NAME).and_then(|path| fs::canonicalize(path).ok());
    let own = env::current_exe().and_then(fs::canonicalize).ok();
    if own.is_some() && on_path == own {
        return NAME.to_owned();
    }
    let here = env::current_dir().unwrap_or_default();
    shortened(env::args_os().next().as_deref(), &here)
}

/// Returns the first argument of the process, relative to the folder `here` if it is below that; the name
/// of the program if a shell would need quotes for it.
fn shortened(called: Option<&OsStr>, here: &Path) -> String {
    let called = Path::new(called.unwrap_or_default());
    let path = match called.strip_prefix(here) {
        Ok(below) if below.components().count() > 1 => below.to_owned(),
        Ok(below) => Path::new(".").join(below),
        Err(_) => called.to_owned(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.+".contains(c);
    let path = path.to_str().filter(|path| !path.is_empty() && path.chars().all(is_plain));
    path.unwrap_or(NAME).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_backticks_get_the_path_of_the_program() {
        let text = "run `regatta peers install go`, see `regatta doctor`; regatta stays";
        let expected = "run `bin/r peers install go`, see `bin/r doctor`; regatta stays";
        assert_eq!(with_program(text, "bin/r"), expected);
        assert!(matches!(with_program("no command", "bin/r"), Cow::Borrowed("no command")));
    }

    #[test]
    fn the_path_is_relative_where_it_can_be() {
        for (called, expected) in [
            ("target/release/regatta", "target/release/regatta"),
            ("/w/target/release/regatta", "target/release/regatta"),
            ("/w/regatta", "./regatta"),
            ("./regatta", "./regatta"),
            ("/opt/regatta", "/opt/regatta"),
            ("/a b/regatta", "regatta"),
            ("/x/`id`\u{1b}", "regatta"),
            ("", "regatta"),
        ] {
            assert_eq!(shortened(Some(called.as_ref()), Path::new("/w")), expected, "{called}");
        }
    }
}
