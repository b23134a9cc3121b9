//! Replies that are not known to the byte: the pattern of each, and whether a line matches it. The
//! cursor decides which line belongs to which exchange.

use regex::bytes::Regex;

/// The pattern of a reply. The text it refers to is in the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// The whole text.
    Exact,
    /// A line that starts with the text.
    Prefix,
    /// A line that the regular expression at this index matches; the text is empty.
    Regex(u16),
}

/// The patterns of a script's replies.
#[derive(Debug)]
pub(super) struct Patterns {
    /// The pattern of each exchange.
    expectations: Vec<Expectation>,
    regexes: Vec<Regex>,
    /// The regular expressions as the user wrote them.
    sources: Vec<String>,
    /// Maximum number of bytes of a reply line.
    longest: usize,
}

impl Patterns {
    /// Creates patterns with these regular expressions: each as written, and compiled with anchors at
    /// both ends of the line. A line has at most `longest` bytes.
    pub fn new(regexes: impl IntoIterator<Item = (String, Regex)>, longest: usize) -> Self {
        let (sources, regexes) = regexes.into_iter().unzip();
        Patterns { expectations: Vec::new(), regexes, sources, longest }
    }

    /// Adds the pattern of the next exchange.
    pub fn push(&mut self, due: Expectation) {
        self.expectations.push(due);
    }

    /// Maximum number of bytes of a reply line.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Whether a line, without its newline, matches the pattern of exchange `i` and is not too long.
    #[inline]
    pub fn fits(&self, i: u32, line: &[u8], text: &[u8]) -> bool {
        line.len() <= self.longest
            && match self.due(i) {
                Expectation::Exact => line == text,
                Expectation::Prefix => line.starts_with(text),
                Expectation::Regex(n) => self.regexes[n as usize].is_match(line),
            }
    }

    /// Whether a partial line is not too long and can still match the pattern of exchange `i`.
    pub fn may_fit(&self, i: u32, part: &[u8], text: &[u8]) -> bool {
        let same = part.len().min(text.len());
        part.len() <= self.longest
            && match self.due(i) {
                Expectation::Exact => text.starts_with(part),
                Expectation::Prefix => part[..same] == text[..same],
                Expectation::Regex(_) => true,
            }
    }

    /// Describes the pattern of exchange `i`; `text` is printable.
    pub fn describe(&self, i: u32, text: &str) -> String {
        match self.due(i) {
            Expectation::Exact => format!("{text}\\n"),
            Expectation::Prefix => format!("a line starting with {text}"),
            Expectation::Regex(n) => format!("a line matching {}", self.sources[n as usize]),
        }
    }

    /// The pattern of exchange `i`; the script's tail repeats its start.
    #[inline]
    fn due(&self, i: u32) -> Expectation {
        self.expectations[i as usize % self.expectations.len()]
    }
}
