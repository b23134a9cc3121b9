//! What a misspelt name may have meant.

/// Returns the most similar of `names`, if one is similar. The distance is the number of letters that
/// were added, left out, replaced or swapped with a neighbour (Damerau, *A technique for computer
/// detection and correction of spelling errors*, Communications of the ACM 7, 1964); at most one per
/// three letters of `word`.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = word.chars().count().div_ceil(3);
    let distances = names.into_iter().map(|name| (strsim::damerau_levenshtein(word, name), name));
    distances.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

/// `; did you mean `rounds`?`, or nothing.
pub(crate) fn hint<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// The same for the unknown key of a TOML error, among the keys that the error says were expected.
pub(crate) fn hint_of_key(error: &toml::de::Error) -> String {
    let mut words = error.message().split('`').skip(1).step_by(2);
    match words.next() {
        Some(word) if error.message().starts_with("unknown ") => hint(word, words),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let names = ["epoll", "poll", "uring", "green", "null"];
        for (word, meant) in [
            ("epol", Some("epoll")),
            ("eppoll", Some("epoll")),
            ("urnig", Some("uring")),
            ("pole", Some("poll")),
            ("nginx", None),
            ("e", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), meant, "{word}");
        }
    }

    #[test]
    fn a_key_is_taken_for_the_nearest_that_is_expected() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[allow(dead_code)]
            rounds: u32,
            #[allow(dead_code)]
            window: u32,
        }
        let hint = |text| hint_of_key(&toml::from_str::<File>(text).unwrap_err());
        assert_eq!(hint("roundz = 3"), "; did you mean `rounds`?");
        assert_eq!(hint("colour = 3"), "");
        assert_eq!(hint("rounds = 'many'"), "");
        assert_eq!(hint("rounds = 3"), "", "a missing key is no misspelt one");
    }
}
