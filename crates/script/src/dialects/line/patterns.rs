//! Replies that are not known to the byte: what each must be like, and whether a line is. Which
//! line belongs to which exchange is the cursor's business.

use regex::bytes::Regex;

/// What a reply is to be like. The text that it speaks of lies in the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The text, whole.
    Exact,
    /// A line that begins with the text.
    Prefix,
    /// A line that this one of the regular expressions matches; the text is empty.
    Regex(u16),
}

/// What the replies of a script are to be like.
#[derive(Debug)]
pub(super) struct Patterns {
    /// Of each exchange.
    dues: Vec<Due>,
    regexes: Vec<Regex>,
    /// As they were written.
    sources: Vec<String>,
    /// Most bytes of a reply line.
    longest: usize,
}

impl Patterns {
    /// With these regular expressions, each anchored at both ends of the line, as they were written
    /// and compiled; lines of at most `longest` bytes.
    pub fn new(regexes: impl IntoIterator<Item = (String, Regex)>, longest: usize) -> Self {
        let (sources, regexes) = regexes.into_iter().unzip();
        Patterns { dues: Vec::new(), regexes, sources, longest }
    }

    /// Of one exchange more.
    pub fn push(&mut self, due: Due) {
        self.dues.push(due);
    }

    /// Most bytes of a reply line.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Whether a line, without its newline, is what exchange `i` is due.
    #[inline]
    pub fn fits(&self, i: u32, line: &[u8], text: &[u8]) -> bool {
        line.len() <= self.longest
            && match self.due(i) {
                Due::Exact => line == text,
                Due::Prefix => line.starts_with(text),
                Due::Regex(n) => self.regexes[n as usize].is_match(line),
            }
    }

    /// Whether what came of a line so far can still become what exchange `i` is due.
    pub fn may_fit(&self, i: u32, part: &[u8], text: &[u8]) -> bool {
        let same = part.len().min(text.len());
        part.len() <= self.longest
            && match self.due(i) {
                Due::Exact => text.starts_with(part),
                Due::Prefix => part[..same] == text[..same],
                Due::Regex(_) => true,
            }
    }

    /// What exchange `i` is due, in words; `text` is printable.
    pub fn describe(&self, i: u32, text: &str) -> String {
        match self.due(i) {
            Due::Exact => format!("{text}\\n"),
            Due::Prefix => format!("a line beginning with {text}"),
            Due::Regex(n) => format!("a line matching {}", self.sources[n as usize]),
        }
    }

    /// The script's tail repeats its beginning.
    #[inline]
    fn due(&self, i: u32) -> Due {
        self.dues[i as usize % self.dues.len()]
    }
}
