//! Placeholders for the number of a message in its stream, counted from 1: `{n}`, `{n-1}` and `{n+K}`.

use std::fmt::Write;

/// Maximum number of placeholders of a message.
const MOST: usize = 16;

/// Checks the number of placeholders of a message.
pub(super) fn check_count(placeholders: usize) -> Result<(), String> {
    match placeholders {
        0..=MOST => Ok(()),
        _ => Err(format!("{placeholders} placeholders; expected at most {MOST}")),
    }
}

/// Parses the inside of a placeholder, `n`, `n-1` or `n+K`. Returns what is added to the number.
pub(super) fn plus(text: &str) -> Option<i64> {
    let plus = match text.strip_prefix('n')? {
        "" => 0,
        plus if plus.starts_with(['+', '-']) => plus.parse().ok()?,
        _ => return None,
    };
    (-1..=i64::from(u32::MAX)).contains(&plus).then_some(plus)
}

/// JSON with placeholders, or a part of it.
#[derive(Debug)]
pub(super) struct Text<'t> {
    /// The text before each placeholder, and what is added to the number in its place.
    pub pieces: Vec<(&'t str, i64)>,
    /// The text behind the last one.
    pub last: &'t str,
}

impl<'t> Text<'t> {
    /// Finds the placeholders. What begins otherwise than with `{n}`, `{n-`, `{n+` or `{n:` is text.
    ///
    /// # Errors
    /// A placeholder that is unknown, or too many.
    pub fn parse(text: &'t str) -> Result<Text<'t>, String> {
        let (mut pieces, mut last, mut from) = (Vec::new(), text, 0);
        while let Some(found) = last[from..].find("{n") {
            let at = from + found;
            from = at + 2;
            if !last[from..].starts_with(['}', '-', '+', ':']) {
                continue;
            }
            let unknown = |placeholder: &str| {
                format!(
                    "{placeholder} is unknown; expected {{n}}, the number of the message in its stream, counted from 1, \
                     {{n-1}}, or {{n+K}} with a number K up to {}; write \\u007b for a brace",
                    u32::MAX
                )
            };
            let Some((inside, behind)) = last[at + 1..].split_once('}') else {
                return Err(unknown(last[at..].lines().next().unwrap_or_default()));
            };
            let plus = plus(inside).ok_or_else(|| unknown(&format!("{{{inside}}}")))?;
            pieces.push((&last[..at], plus));
            (last, from) = (behind, 0);
        }
        check_count(pieces.len())?;
        Ok(Text { pieces, last })
    }

    /// Whether there is no placeholder.
    pub fn is_constant(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The text of the message with this number.
    pub fn filled(&self, number: u64) -> String {
        self.with(|text, _, plus| {
            let _ = write!(text, "{}", number.saturating_add_signed(plus));
        })
    }

    /// The same JSON with a text in place of each placeholder that is a value, so that it can be read.
    pub fn quoted(&self) -> String {
        let (mut is_text, mut is_escaped) = (false, false);
        self.with(|json, before, plus| {
            for char in before.chars() {
                match char {
                    _ if is_escaped => is_escaped = false,
                    '\\' => is_escaped = is_text,
                    '"' => is_text = !is_text,
                    _ => {}
                }
            }
            let quote = if is_text { "" } else { "\"" };
            let _ = match plus {
                0 => write!(json, "{quote}{{n}}{quote}"),
                plus => write!(json, "{quote}{{n{plus:+}}}{quote}"),
            };
        })
    }

    /// The text with what `write` appends in place of each placeholder. It gets the text before that, too.
    fn with(&self, mut write: impl FnMut(&mut String, &str, i64)) -> String {
        let mut text = String::new();
        for (before, plus) in &self.pieces {
            text.push_str(before);
            write(&mut text, before, *plus);
        }
        text + self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_and_replaced() {
        for (text, filled, quoted) in [
            ("", "", ""),
            ("{n}", "7", r#""{n}""#),
            (
                r#"{"a": {n}, "b": "x{n-1}y{n+10}"}"#,
                r#"{"a": 7, "b": "x6y17"}"#,
                r#"{"a": "{n}", "b": "x{n-1}y{n+10}"}"#,
            ),
            (r#"["\"", {n}, "\\", {n}]"#, r#"["\"", 7, "\\", 7]"#, r#"["\"", "{n}", "\\", "{n}"]"#),
            // None of these is a placeholder.
            (r#"{"a": "{name} {N} {} \u007bn}"}"#, r#"{"a": "{name} {N} {} \u007bn}"}"#, ""),
        ] {
            let parsed = Text::parse(text).unwrap();
            assert_eq!(parsed.filled(7), filled);
            assert_eq!(parsed.quoted(), if quoted.is_empty() { text } else { quoted });
        }
    }

    #[test]
    fn unknown_placeholders_are_refused() {
        for (text, part) in [
            ("{n-2}", "{n-2} is unknown; expected {n}, the number"),
            ("a {n:02} b", "{n:02} is unknown"),
            ("{n+4294967296}", "{n+4294967296} is unknown"),
            ("{n+}", "{n+} is unknown"),
            ("{n+1", "{n+1 is unknown"),
        ] {
            let why = Text::parse(text).unwrap_err();
            assert!(why.contains(part) && why.contains("\\u007b"), "{text}: {why}");
        }
        assert!(Text::parse(&"{n}".repeat(16)).is_ok());
        let many = Text::parse(&"{n}".repeat(17)).unwrap_err();
        assert_eq!(many, "17 placeholders; expected at most 16");
    }
}
