//! Values that a placeholder can draw: counters, integers, random letters and digits, lines of a
//! list. The seed decides all of them.

use super::expression::{Bounds, number};
use rand::{Rng, rngs::StdRng};
use std::ops::RangeInclusive;

/// A value that a placeholder draws for every request.
#[derive(Debug, PartialEq)]
pub(crate) enum Draw {
    /// The next number of the workload's only counter, plus this offset.
    Counter(i128),
    /// An integer in this range, uniformly distributed.
    Integer(RangeInclusive<i128>),
    /// A string of these characters, uniformly distributed, with a length in this range.
    Characters(&'static [u8], RangeInclusive<usize>),
    /// A line of this list.
    Line { list: usize, in_turn: bool },
}

/// A drawn or captured value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Integer(i128),
    Text(Vec<u8>),
}

/// The possible values of a placeholder, known before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer(Bounds),
    Text(Text),
}

/// The possible texts of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// Maximum number of bytes.
    pub longest: usize,
    /// Whether it can contain control characters.
    pub controls: bool,
}

impl Kind {
    /// Returns what its written form is like.
    pub fn text(self) -> Text {
        match self {
            Kind::Integer(Bounds { low, high }) => {
                let longest = low.to_string().len().max(high.to_string().len());
                Text { longest, controls: false }
            }
            Kind::Text(text) => text,
        }
    }
}

const HEX: &[u8] = b"0123456789abcdef";
const ALNUM: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Maximum number of characters of one random string.
const MOST_CHARACTERS: i128 = 65_536;
/// No script draws more numbers than this from the counter.
const MOST_COUNTED: i128 = 1 << 40;

impl Draw {
    /// Parses `word:argument`; returns `None` if `word` is not known. `list` returns the index of
    /// the list of this name.
    pub fn parse(
        word: &str,
        argument: Option<&str>,
        list: impl FnOnce(&str) -> Result<usize, String>,
    ) -> Option<Result<Draw, String>> {
        let needed = |example: &str| {
            argument.ok_or_else(|| format!("{word} needs an argument, e.g. {{{word}:{example}}}"))
        };
        Some(match word {
            "counter" => argument.map_or(Ok(0), number).map(Draw::Counter),
            "int" => needed("1..1000").and_then(|argument| {
                let range = range(argument, "{int:1..1000}")?;
                Ok(Draw::Integer(range))
            }),
            "hex" => needed("16").and_then(|length| characters(word, HEX, length)),
            "alnum" => needed("8").and_then(|length| characters(word, ALNUM, length)),
            "line" => {
                needed("words.txt").and_then(list).map(|list| Draw::Line { list, in_turn: true })
            }
            "random_line" => {
                needed("words.txt").and_then(list).map(|list| Draw::Line { list, in_turn: false })
            }
            _ => return None,
        })
    }

    /// Returns what it can draw; `lines` describes the lines of a list.
    pub fn kind(&self, lines: impl FnOnce(usize) -> Text) -> Kind {
        match self {
            Draw::Counter(from) => Kind::Integer(Bounds { low: *from, high: from + MOST_COUNTED }),
            Draw::Integer(range) => {
                Kind::Integer(Bounds { low: *range.start(), high: *range.end() })
            }
            Draw::Characters(_, lengths) => {
                Kind::Text(Text { longest: *lengths.end(), controls: false })
            }
            Draw::Line { list, .. } => Kind::Text(lines(*list)),
        }
    }
}

/// State of drawing: the seeded generator, the counter, and the position in each list.
pub(crate) struct Drawer<'f> {
    random: StdRng,
    counted: i128,
    lists: &'f [Vec<Vec<u8>>],
    turns: Vec<usize>,
}

impl<'f> Drawer<'f> {
    pub fn new(random: StdRng, lists: &'f [Vec<Vec<u8>>]) -> Self {
        Drawer { random, counted: 0, lists, turns: vec![0; lists.len()] }
    }

    pub fn draw(&mut self, draw: &Draw) -> Value {
        match draw {
            Draw::Counter(from) => {
                self.counted += 1;
                Value::Integer(from + self.counted - 1)
            }
            Draw::Integer(range) => Value::Integer(self.random.random_range(range.clone())),
            Draw::Characters(of, lengths) => {
                let length = self.random.random_range(lengths.clone());
                let one = |_| of[self.random.random_range(0..of.len())];
                Value::Text((0..length).map(one).collect())
            }
            Draw::Line { list, in_turn } => {
                let lines = &self.lists[*list];
                let at = match in_turn {
                    true => {
                        self.turns[*list] += 1;
                        (self.turns[*list] - 1) % lines.len()
                    }
                    false => self.random.random_range(0..lines.len()),
                };
                Value::Text(lines[at].clone())
            }
        }
    }

    /// Draws a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.random.random_range(0..end)
    }
}

fn characters(word: &str, of: &'static [u8], lengths: &str) -> Result<Draw, String> {
    let example = format!("{{{word}:8}} or {{{word}:3..10}}");
    let lengths = match lengths.contains("..") {
        true => range(lengths, &example)?,
        false => {
            let length = number(lengths)
                .map_err(|_| format!("expected a length, e.g. {example}, found {lengths:?}"))?;
            length..=length
        }
    };
    if *lengths.start() < 0 || *lengths.end() > MOST_CHARACTERS {
        return Err(format!("expected lengths from 0 to {MOST_CHARACTERS}, e.g. {example}"));
    }
    Ok(Draw::Characters(of, *lengths.start() as usize..=*lengths.end() as usize))
}

/// Parses `A..B`, both ends included.
fn range(text: &str, example: &str) -> Result<RangeInclusive<i128>, String> {
    let wrong = || {
        format!(
            "expected a range, e.g. {example}, of integers between -2^64 and 2^64, found {text:?}"
        )
    };
    let (low, high) = text.split_once("..").ok_or_else(wrong)?;
    let (low, high) = (number(low).map_err(|_| wrong())?, number(high).map_err(|_| wrong())?);
    if low > high {
        return Err(format!("the range {text} is empty: write the smaller number first"));
    }
    Ok(low..=high)
}
