//! Suggestions for misspelt names.

/// Returns the most similar of `names`, if one is similar. The distance is the number of letters that
/// were added, left out, replaced or swapped with a neighbour (Damerau, *A technique for computer
/// detection and correction of spelling errors*, Communications of the ACM 7, 1964). It may be at most
/// one for every three letters of `word`, rounded up.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = word.chars().count().div_ceil(3);
    let distances = names.into_iter().map(|name| (strsim::damerau_levenshtein(word, name), name));
    distances.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

/// Returns e.g. `; did you mean `rounds`?`, or an empty string.
pub(crate) fn hint<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// Returns the same hint for the unknown key of a TOML error, among the keys that the error lists as
/// expected.
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
    fn suggests_a_similar_name_but_not_a_different_one() {
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
    fn suggests_the_nearest_expected_key() {
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
        assert_eq!(hint("rounds = 3"), "", "a missing key is not misspelt");
    }
}
