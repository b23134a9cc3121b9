//! Merges remarks on several contenders or cells that are equal except for their figures.

/// Merges similar remarks: `(subject, text)` in, `(subjects, text)` out, in the order of their
/// first subjects. Texts are similar if they are equal except for their numbers. Where numbers
/// differ, the range is shown: `0.12–0.15`, with a sign `-3…+4`. A number that follows a letter is
/// part of a name (`p99`) and must be equal.
pub fn alike<S: PartialEq>(
    remarks: impl IntoIterator<Item = (S, String)>,
) -> Vec<(Vec<S>, String)> {
    let mut groups: Vec<(Vec<S>, Vec<String>)> = Vec::new();
    for (subject, text) in remarks {
        match groups.iter_mut().find(|(_, texts)| are_similar(&texts[0], &text)) {
            Some((subjects, texts)) => {
                // Two findings on the same cell may be similar.
                if !subjects.contains(&subject) {
                    subjects.push(subject);
                }
                texts.push(text);
            }
            None => groups.push((vec![subject], vec![text])),
        }
    }
    groups.into_iter().map(|(subjects, texts)| (subjects, merged(&texts))).collect()
}

/// Whether two texts are equal except for their numbers.
pub fn are_similar(a: &str, b: &str) -> bool {
    let (a, b) = (pieces(a), pieces(b));
    let alike = |(a, b): (&Piece<'_>, &Piece<'_>)| match (a, b) {
        (Piece::Text(a), Piece::Text(b)) => a == b,
        (Piece::Number(_), Piece::Number(_)) => true,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(&b).all(alike)
}

/// Merges several similar texts into one.
fn merged(texts: &[String]) -> String {
    let all: Vec<Vec<Piece<'_>>> = texts.iter().map(|text| pieces(text)).collect();
    let piece = |(nth, piece): (usize, &Piece<'_>)| match piece {
        Piece::Text(text) => (*text).to_owned(),
        Piece::Number(_) => range(all.iter().filter_map(|pieces| match pieces[nth] {
            Piece::Number(number) => Some(number),
            Piece::Text(_) => None,
        })),
    };
    all[0].iter().enumerate().map(piece).collect()
}

/// The lowest and the highest of several numbers, e.g. `3–7`; one number if they are equal.
fn range<'a>(numbers: impl Iterator<Item = &'a str>) -> String {
    let mut numbers: Vec<&str> = numbers.collect();
    numbers.sort_by(|a, b| value(a).total_cmp(&value(b)));
    match (numbers.first(), numbers.last()) {
        (Some(least), Some(most)) if least != most => {
            let signed = [least, most].iter().any(|n| n.starts_with(['+', '-']));
            format!("{least}{}{most}", if signed { "…" } else { "–" })
        }
        (only, _) => only.copied().unwrap_or_default().to_owned(),
    }
}

fn value(number: &str) -> f64 {
    number.replace(',', "").parse().unwrap_or(f64::NAN)
}

#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    Number(&'a str),
}

/// Splits a text into numbers and the text between them.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < text.len() {
        let length = number(&text[..at], &text[at..]);
        if length == 0 {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        if from < at {
            pieces.push(Piece::Text(&text[from..at]));
        }
        pieces.push(Piece::Number(&text[at..at + length]));
        at += length;
        from = at;
    }
    if from < text.len() {
        pieces.push(Piece::Text(&text[from..]));
    }
    pieces
}

/// Length in bytes of the number at the start of `text`; 0: none. `before` is the text before it.
fn number(before: &str, text: &str) -> usize {
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let last = before.chars().next_back();
    let sign = usize::from(text.starts_with(['+', '-']) && last.is_none_or(|c| " [(".contains(c)));
    let in_a_word = last.is_some_and(|c| c.is_alphanumeric() || "_-".contains(c));
    if !is_digit(sign) || in_a_word {
        return 0;
    }
    let digits = |from: usize| (from..).take_while(|at| is_digit(*at)).count();
    let mut end = sign + digits(sign);
    // Thousands separators; a list such as `0,1` is two numbers.
    while text[end..].starts_with(',') && digits(end + 1) == 3 {
        end += 4;
    }
    if text[end..].starts_with('.') && is_digit(end + 1) {
        end += 1 + digits(end + 1);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(remarks: &[(&str, &str)]) -> Vec<String> {
        let remarks = remarks.iter().map(|(s, t)| ((*s).to_owned(), (*t).to_owned()));
        let line =
            |(subjects, text): (Vec<String>, String)| format!("{}: {text}", subjects.join(", "));
        alike(remarks).into_iter().map(line).collect()
    }

    #[test]
    fn merges_texts_that_differ_only_in_figures_into_ranges() {
        let remarks = [
            ("a", "two modes, 9,100/s in 40% of the slices, p99 void"),
            ("b", "drifts by +6% [-2 to +9]"),
            ("c", "two modes, 12,000/s in 35% of the slices, p99 void"),
            ("d", "drifts by -1% [-4 to +1]"),
            ("e", "two modes, 10,000/s in 40% of the slices, p90 void"),
        ];
        assert_eq!(
            merge(&remarks),
            [
                "a, c: two modes, 9,100–12,000/s in 35–40% of the slices, p99 void",
                "b, d: drifts by -1…+6% [-4…-2 to +1…+9]",
                "e: two modes, 10,000/s in 40% of the slices, p90 void",
            ]
        );
    }

    #[test]
    fn keeps_equal_figures_and_names_each_subject_once() {
        let remarks = [("a", "busy 0.50."), ("b", "busy 0.50."), ("a", "busy 0.70.")];
        assert_eq!(merge(&remarks), ["a, b: busy 0.50–0.70."]);
        assert_eq!(merge(&remarks[..2]), ["a, b: busy 0.50."]);
        assert!(merge(&[]).is_empty());
    }

    #[test]
    fn numbers_in_names_are_not_figures() {
        for (a, b) in [
            ("mine-1 died", "mine-2 died"),
            ("v1 died", "v2 died"),
            ("7 died", "seven died"),
            ("on CPU 0,1", "on CPU 0"),
            ("é1", "é2"),
        ] {
            assert!(!are_similar(a, b), "{a} {b}");
        }
        assert!(are_similar("±1.5%", "±20%") && are_similar("", ""));
    }
}
