//! Text for a terminal: wrapping, cutting, padding by display width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Cuts a text to `width` columns, with an ellipsis at the end if it was cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Wraps text at spaces into lines of `width`; all lines except the first are indented. A word that is
/// longer than a line is broken at the end of the line.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let margin = " ".repeat(indent);
    let mut lines = vec![String::new()];
    let mut used = 0;
    let mut fresh = true;
    for word in text.split(' ') {
        let needs = word.width() + usize::from(!fresh);
        if used + needs > width && !fresh {
            lines.push(margin.clone());
            (used, fresh) = (indent, true);
        }
        let line = lines.last_mut().expect("there is always a line");
        if !fresh {
            line.push(' ');
            used += 1;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > width {
                lines.push(margin.clone());
                used = indent;
            }
            lines.last_mut().expect("there is always a line").push(c);
            used += wide;
        }
        fresh = false;
    }
    lines
}

/// The lines of [`wrap`] without spaces at their ends, each with a newline.
pub fn folded(text: &str, width: usize, indent: usize) -> String {
    wrap(text, width, indent).iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Pads a text with spaces to `width` columns, on the left if `right`.
pub fn pad(text: &str, width: usize, right: bool) -> String {
    let blank = " ".repeat(width.saturating_sub(text.width()));
    if right { format!("{blank}{text}") } else { format!("{text}{blank}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_breaks_long_words() {
        assert_eq!(wrap("one two three", 8, 2), ["one two", "  three"]);
        assert_eq!(wrap("abcdefghijkl m", 8, 2), ["abcdefgh", "  ijkl m"]);
        assert_eq!(wrap("", 8, 2), [""]);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(cut("日本語のサーバ", 7), "日本語…");
        assert_eq!(cut("short", 5), "short");
    }
}
