//! Counts lines of code: lines that are neither blank nor comments.

use std::{fs, io, path::Path};

/// The comments of a language: to the end of the line, and between two marks.
struct Comments {
    line: &'static [&'static str],
    block: Option<(&'static str, &'static str)>,
}

const C: Comments = Comments { line: &["//"], block: Some(("/*", "*/")) };
const PHP: Comments = Comments { line: &["//", "#"], block: Some(("/*", "*/")) };
const HASH: Comments = Comments { line: &["#"], block: None };
const HASKELL: Comments = Comments { line: &["--"], block: Some(("{-", "-}")) };
const DASHES: Comments = Comments { line: &["--"], block: None };
const SEMICOLON: Comments = Comments { line: &[";"], block: None };
const PERCENT: Comments = Comments { line: &["%"], block: None };
const NO_COMMENTS: Comments = Comments { line: &[], block: None };

/// Counts the lines of code of the file at `path`. The file name extension determines the comment
/// syntax.
pub fn lines_of_code(path: &Path) -> io::Result<u32> {
    let text = fs::read_to_string(path).map_err(|error| {
        io::Error::new(error.kind(), format!("{} cannot be counted: {error}", path.display()))
    })?;
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    Ok(count(&text, comments_of(ending)))
}

fn comments_of(ending: &str) -> &'static Comments {
    match ending {
        "c" | "h" | "cc" | "cpp" | "hpp" | "cs" | "go" | "java" | "js" | "mjs" | "cjs" | "ts"
        | "kt" | "rs" | "scala" | "swift" | "zig" => &C,
        "php" => &PHP,
        "py" | "rb" | "ru" | "sh" | "ex" | "exs" | "pl" | "toml" | "yml" | "yaml" | "conf"
        | "in" => &HASH,
        "hs" => &HASKELL,
        "lua" | "sql" => &DASHES,
        "clj" | "lisp" | "scm" => &SEMICOLON,
        "erl" => &PERCENT,
        _ => &NO_COMMENTS,
    }
}

/// Counts lines of code. A block comment counts only where it starts a line. A comment mark after
/// code is taken as code, because it may be part of a string (`"*/*"`).
fn count(text: &str, comments: &Comments) -> u32 {
    let mut in_block = false;
    text.lines().filter(|line| is_code(line, comments, &mut in_block)).count() as u32
}

fn is_code(line: &str, comments: &Comments, in_block: &mut bool) -> bool {
    let mut rest = line.trim();
    if let Some((open, close)) = comments.block {
        while *in_block || rest.starts_with(open) {
            let inside = if *in_block { rest } else { &rest[open.len()..] };
            let end = inside.find(close);
            *in_block = end.is_none();
            let Some(end) = end else { return false };
            rest = inside[end + close.len()..].trim();
        }
    }
    !rest.is_empty() && !comments.line.iter().any(|mark| rest.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_as(ending: &str, text: &str) -> u32 {
        count(text, comments_of(ending))
    }

    #[test]
    fn c_like() {
        let text = "#include <x>\n\n// no\n/* no\n no\n*/ yes();\n/* a */ /* b */\nyes /* c\n\
                    accept(\"*/*\");\n";
        assert_eq!(count_as("c", text), 4);
        assert_eq!(count_as("js", "  // a\n\t\nlet x = 1 // b\n"), 1);
    }

    #[test]
    fn haskell() {
        assert_eq!(count_as("hs", "{-# LANGUAGE X #-}\n-- no\nmain = y -- z\n{-\nno\n-}\n"), 1);
    }

    #[test]
    fn hash_and_others() {
        assert_eq!(count_as("py", "#!/bin/python\nimport x\n  # no\nx = '# yes'\n"), 2);
        assert_eq!(count_as("erl", "% no\nyes.\n"), 1);
        assert_eq!(count_as("", "# all\n\nlines\n"), 2);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = lines_of_code(Path::new("/no/such.rs")).unwrap_err().to_string();
        assert!(error.starts_with("/no/such.rs cannot be counted"), "{error}");
    }
}
