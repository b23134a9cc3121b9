//! Texts of others, for messages and for commands.

/// Returns a text in one line without control characters and characters that change the direction of writing, cut
/// after `most` characters.
pub fn shown(text: &str, most: usize) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let plain: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = line.chars().take(most).collect();
    if cut.len() < line.len() {
        cut.push('…');
    }
    cut
}

/// Returns a text as one word of a shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_text_is_one_plain_line() {
        assert_eq!(shown("a\n b\u{1b}[31m\u{202e}c\r\n", 80), "a b [31m c");
        assert_eq!(shown("äöü", 2), "äö…");
        assert_eq!(shown("äöü", 3), "äöü");
    }

    #[test]
    fn a_quoted_text_is_one_word() {
        assert_eq!(quoted("/a b/$(x)`y`"), "'/a b/$(x)`y`'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
