//! The number of rounds for more precision, in words.

/// Formats a number of rounds: `about 34 rounds, perhaps 51 (27 s each: 15 min)`. `likely` and
/// `at_most` are total numbers of rounds; `pass_s` is the time of one round of all cells in
/// seconds, if known.
pub fn rounds_in_words(likely: u32, at_most: Option<u32>, pass_s: Option<f64>) -> String {
    let perhaps =
        at_most.filter(|n| *n > likely).map_or(String::new(), |n| format!(", perhaps {n}"));
    let takes = pass_s.map_or(String::new(), |pass_s| {
        format!(" ({} each: {})", time(pass_s), time(pass_s * f64::from(likely)))
    });
    format!("about {likely} rounds{perhaps}{takes}")
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{s:.1} s"),
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6_000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::rounds_in_words;

    #[test]
    fn rounds_times_for_readers() {
        assert_eq!(
            rounds_in_words(34, Some(51), Some(27.0)),
            "about 34 rounds, perhaps 51 (27 s each: 15 min)"
        );
        assert_eq!(
            rounds_in_words(340, None, Some(120.0)),
            "about 340 rounds (2 min each: 11.3 h)"
        );
        assert_eq!(rounds_in_words(6, Some(6), None), "about 6 rounds");
    }
}
