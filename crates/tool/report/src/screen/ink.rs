//! The lines of a terminal output, with or without colours.

use crate::{screen::text::wrap, table::Tone};

/// A style of a terminal (ECMA-48, SGR).
pub const BOLD: &str = "1";
/// Less important.
pub const DIM: &str = "2";
/// Wrong.
pub const RED: &str = "31";
/// Cheaper.
pub const GREEN: &str = "32";
/// A warning.
pub const YELLOW: &str = "33";

/// Lines that are collected for a terminal.
pub struct Ink {
    /// The lines so far.
    pub text: String,
    colour: bool,
}

impl Ink {
    /// No lines yet; with colours if `colour`.
    pub fn new(colour: bool) -> Ink {
        Ink { text: String::new(), colour }
    }

    /// Appends a line without trailing spaces.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// The text in a style; empty: none.
    pub fn styled(&self, text: &str, style: &str) -> String {
        if self.colour && !style.is_empty() && !text.trim().is_empty() {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Appends a wrapped paragraph; all lines except the first are indented. Returns the number of lines.
    pub fn paragraph(&mut self, text: &str, width: usize, indent: usize, style: &str) -> usize {
        let lines = wrap(text, width, indent);
        for line in &lines {
            let margin = line.len() - line.trim_start().len();
            let styled = self.styled(&line[margin..], style);
            self.line(&format!("{}{styled}", &line[..margin]));
        }
        lines.len()
    }
}

/// The style of a tone.
pub fn style(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Void => DIM,
        Tone::Good => GREEN,
        Tone::Warn => YELLOW,
        Tone::Bad => RED,
    }
}
