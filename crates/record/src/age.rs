//! The age of a version.

/// Days from 1970-01-01 to a date written `YYYY-MM-DD`, from 1970 to 9999; `None` for anything
/// else, including dates that do not exist (civil date to days: Hinnant, *chrono-compatible
/// low-level date algorithms*, `days_from_civil`).
pub fn day_of(date: &str) -> Option<u64> {
    let is_well_formed = date.len() == 10
        && date.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !is_well_formed {
        return None;
    }
    let number = |from: usize, to: usize| date[from..to].parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || !(1..=days).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
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
