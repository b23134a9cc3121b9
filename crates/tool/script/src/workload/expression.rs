//! Sums and products of captured integers, e.g. `n*2+1`. Their bounds are known before a run, so
//! nothing can overflow 128 bits during one.

/// The minimum and maximum of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub low: i128,
    pub high: i128,
}

/// A sum of products; `*` binds tighter than `+` and `-`.
#[derive(Debug, PartialEq)]
pub(crate) struct Expression {
    terms: Vec<Term>,
}

#[derive(Debug, PartialEq)]
struct Term {
    subtracted: bool,
    factors: Vec<Factor>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Factor {
    Number(i128),
    /// The capture at this index.
    Capture(usize),
}

/// Limit of numbers in a workload file, positive or negative: 2⁶⁴.
const LARGEST: i128 = 1 << 64;

impl Expression {
    /// Parses an expression. `capture` returns the index of a capture by its name, or why it cannot
    /// be used.
    pub fn parse(
        text: &str,
        capture: impl Fn(&str) -> Result<usize, String>,
    ) -> Result<Expression, String> {
        let mut terms = Vec::new();
        let (mut rest, mut subtracted) = (text, false);
        loop {
            let mut factors = Vec::new();
            let operator = loop {
                let (factor, after) = operand(rest)?;
                factors.push(match factor {
                    Operand::Number(number) => Factor::Number(number),
                    Operand::Name(name) => Factor::Capture(capture(name)?),
                });
                let after = after.trim_start();
                let operator = after.chars().next();
                rest = &after[operator.map_or(0, char::len_utf8)..];
                if operator != Some('*') {
                    break operator;
                }
            };
            terms.push(Term { subtracted, factors });
            match operator {
                None => return Ok(Expression { terms }),
                Some('+') => subtracted = false,
                Some('-') => subtracted = true,
                Some(other) => {
                    return Err(format!(
                        "expected +, - or *, found {other:?}; write e.g. {{n*2+1}}"
                    ));
                }
            }
        }
    }

    /// Returns its bounds, given those of the captures; `None` if it can exceed 128 bits.
    pub fn bounds(&self, of: impl Fn(usize) -> Bounds) -> Option<Bounds> {
        let zero = Bounds { low: 0, high: 0 };
        self.terms.iter().try_fold(zero, |sum, term| {
            let one = Bounds { low: 1, high: 1 };
            let product = term.factors.iter().try_fold(one, |product, factor| {
                let factor = match *factor {
                    Factor::Number(n) => Bounds { low: n, high: n },
                    Factor::Capture(place) => of(place),
                };
                times(product, factor)
            })?;
            Some(match term.subtracted {
                false => Bounds {
                    low: sum.low.checked_add(product.low)?,
                    high: sum.high.checked_add(product.high)?,
                },
                true => Bounds {
                    low: sum.low.checked_sub(product.high)?,
                    high: sum.high.checked_sub(product.low)?,
                },
            })
        })
    }

    /// Returns its value, given those of the captures, which must be within the bounds that were
    /// checked.
    pub fn value(&self, of: impl Fn(usize) -> i128) -> i128 {
        let factor = |factor: &Factor| match *factor {
            Factor::Number(n) => n,
            Factor::Capture(place) => of(place),
        };
        self.terms.iter().fold(0, |sum, term| {
            let product: i128 = term.factors.iter().map(factor).product();
            if term.subtracted { sum - product } else { sum + product }
        })
    }
}

fn times(a: Bounds, b: Bounds) -> Option<Bounds> {
    let corners = [
        a.low.checked_mul(b.low)?,
        a.low.checked_mul(b.high)?,
        a.high.checked_mul(b.low)?,
        a.high.checked_mul(b.high)?,
    ];
    let low = corners.into_iter().min()?;
    let high = corners.into_iter().max()?;
    Some(Bounds { low, high })
}

enum Operand<'a> {
    Number(i128),
    Name(&'a str),
}

/// Splits off the first operand; returns it and the remaining text.
fn operand(text: &str) -> Result<(Operand<'_>, &str), String> {
    let text = text.trim_start();
    let end = text
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_alphanumeric() || c == '_' || (at == 0 && c == '-')))
        .map_or(text.len(), |(at, _)| at);
    let (operand, rest) = text.split_at(end);
    if is_name(operand) {
        return Ok((Operand::Name(operand), rest));
    }
    Ok((Operand::Number(number(operand)?), rest))
}

/// Parses a number of a workload file.
pub(crate) fn number(text: &str) -> Result<i128, String> {
    let number = text.trim().parse::<i128>().ok();
    number.filter(|n| (-LARGEST..=LARGEST).contains(n)).ok_or_else(|| {
        format!("expected an integer between -2^64 and 2^64 or a captured name, found {text:?}")
    })
}

/// Whether `text` is a name: a letter followed by letters, digits and `_`.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` is capture 0, `m` capture 1.
    fn parse(text: &str) -> Result<Expression, String> {
        Expression::parse(text, |name| match name {
            "n" => Ok(0),
            "m" => Ok(1),
            other => Err(format!("no {other}")),
        })
    }

    #[test]
    fn multiplies_before_adding_and_accepts_signed_numbers() {
        for (text, value) in [
            ("n*2", 14),
            ("n + 1", 8),
            ("2*n-m*3+1", 24),
            ("n-1-1", 5),
            ("-3*n", -21),
            ("n*-1", -7),
            ("m", -3),
            ("18446744073709551616*n", 7 << 64),
        ] {
            let value_of = |place: usize| [7, -3][place];
            assert_eq!(parse(text).unwrap().value(value_of), value, "{text}");
        }
    }

    #[test]
    fn rejects_invalid_expressions_with_a_reason() {
        for (text, said) in [
            ("n/2", "expected +, - or *, found '/'"),
            ("n 2", "expected +, - or *, found '2'"),
            ("n*", "found \"\""),
            ("k+1", "no k"),
            ("18446744073709551617", "between -2^64 and 2^64"),
            ("2n", "found \"2n\""),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn computes_bounds_and_detects_overflow_before_a_run() {
        let of = |place: usize| [Bounds { low: -5, high: 3 }, Bounds { low: -2, high: 4 }][place];
        let bounds = |text: &str| parse(text).unwrap().bounds(of).map(|b| (b.low, b.high));
        assert_eq!(bounds("n*m"), Some((-20, 12)));
        assert_eq!(bounds("n-m"), Some((-9, 5)));
        assert_eq!(bounds("18446744073709551616*18446744073709551616*n"), None);
        assert_eq!(bounds("9223372036854775808*18446744073709551615*m"), None);
    }
}
