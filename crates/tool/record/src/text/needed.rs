//! Further starts that would decide something, in words.

/// Formats further starts with their time: `about 4 more lives (12 s)`, `about 3 more rounds (2 min)`.
pub fn more_in_words(starts: u32, seconds: f64, is_duel: bool) -> String {
    let unit = match (is_duel, starts) {
        (true, 1) => "life",
        (true, _) => "lives",
        (false, 1) => "round",
        (false, _) => "rounds",
    };
    let time = match seconds {
        s if s < 1.0 => format!("{s:.1} s"),
        s if s < 100.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    };
    format!("about {starts} more {unit} ({time})")
}

#[cfg(test)]
mod tests {
    use super::more_in_words;

    #[test]
    fn says_how_many_and_how_long() {
        assert_eq!(more_in_words(4, 12.4, true), "about 4 more lives (12 s)");
        assert_eq!(more_in_words(1, 0.43, true), "about 1 more life (0.4 s)");
        assert_eq!(more_in_words(3, 180.0, false), "about 3 more rounds (3 min)");
        assert_eq!(more_in_words(1, 60.0, false), "about 1 more round (60 s)");
    }
}
