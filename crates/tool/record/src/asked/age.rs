//! The age of a version.

use chrono::NaiveDate;

/// Days from 1970-01-01 to a date written `YYYY-MM-DD`, from 1970 to 9999; `None` for anything else, including
/// dates that do not exist.
pub fn day_of(date: &str) -> Option<u64> {
    let day = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
    // The parser also accepts other spellings.
    let is_canonical = date.len() == 10 && day.to_string() == date;
    let days = day.signed_duration_since(NaiveDate::default()).num_days();
    days.try_into().ok().filter(|_| is_canonical)
}

/// Days from a date to a moment in seconds since 1970; `None` if it is not a date, or is later than that
/// moment.
pub fn days_since(date: &str, unix_s: u64) -> Option<u64> {
    (unix_s / 86_400).checked_sub(day_of(date)?)
}

/// An age in days, in the largest unit of which it has at least two, or in years from one year on:
/// `12 days old`, `5 months old`, `2.1 years old`. A year has 365.25 days.
pub fn in_words(days: u64) -> String {
    const YEAR: f64 = 365.25;
    let years = days as f64 / YEAR;
    let months = (years * 12.0) as u64;
    match months {
        _ if days == 1 => "1 day old".to_owned(),
        0 | 1 => format!("{days} days old"),
        2..=11 => format!("{months} months old"),
        _ => format!("{years:.1} years old"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_over_leap_years_and_centuries() {
        for (date, day) in [
            ("1970-01-01", 0),
            ("1970-12-31", 364),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-09-21", 20_717),
        ] {
            assert_eq!(day_of(date), Some(day), "{date}");
        }
        for wrong in
            ["2026-02-29", "2100-02-29", "2026-13-01", "2026-04-31", "2026-00-10", "1969-12-31"]
        {
            assert_eq!(day_of(wrong), None, "{wrong}");
        }
        for wrong in ["2026-9-21", "2026/09/21", "21.09.2026", "2026-09-21 ", "", "2026-+9-21"] {
            assert_eq!(day_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_age_refers_to_the_time_of_the_race() {
        let at = 1_790_000_000; // 2026-09-21
        assert_eq!(days_since("2024-08-15", at), Some(767));
        assert_eq!(days_since("2026-09-21", at), Some(0));
        assert_eq!(days_since("2026-09-22", at), None, "in the future");
        assert_eq!(days_since("soon", at), None);
    }

    #[test]
    fn an_age_has_the_unit_that_fits() {
        for (days, words) in [
            (0, "0 days old"),
            (1, "1 day old"),
            (60, "60 days old"),
            (61, "2 months old"),
            (365, "11 months old"),
            (366, "1.0 years old"),
            (767, "2.1 years old"),
        ] {
            assert_eq!(in_words(days), words, "{days}");
        }
    }
}
