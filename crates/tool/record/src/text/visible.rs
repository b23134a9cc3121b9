//! Texts of others, made harmless.

/// Makes control characters, invisible characters, and those that change the writing direction, visible.
pub fn visible(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn makes_hidden_characters_visible() {
        assert_eq!(visible("a\u{1b}[31mb\n\u{202e}c µ–"), "a\\u{1b}[31mb\\n\\u{202e}c µ–");
    }
}
