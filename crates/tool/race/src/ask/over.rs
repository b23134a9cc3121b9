//! The protocol that a race is run over, if it is not the one that its workload usually has: a version of that one.

use regatta_record::Asked;
use regatta_script::{Version, Workload, dialects::versions};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// A key of a race file with the place of its value.
#[derive(Deserialize)]
#[serde(transparent)]
struct Keys(BTreeMap<Spanned<String>, Spanned<Value>>);

/// Takes the key of a version out of the text of a race file. Returns the rest, in which everything else keeps its
/// place, and the name of the protocol.
///
/// # Errors
/// The value is no known version; the error is a sentence.
pub(crate) fn taken_out(text: &str) -> Result<(String, Option<&'static str>), String> {
    // A text that is no TOML is reported where the rest is read.
    let keys = toml::from_str::<Keys>(text).map(|keys| keys.0).unwrap_or_default();
    let is_key = |key: &Spanned<String>| versions().any(|version| version.of == key.get_ref());
    let Some((key, value)) = keys.into_iter().find(|(key, _)| is_key(key)) else {
        return Ok((text.to_owned(), None));
    };
    let number = value.get_ref().as_integer();
    let known: Vec<Version> = versions().filter(|version| version.of == key.get_ref()).collect();
    let mut rest = text.to_owned();
    let taken = key.span().start..value.span().end;
    rest.replace_range(taken.clone(), &" ".repeat(taken.len()));
    if number == Some(1) {
        return Ok((rest, None));
    }
    if let Some(version) = known.iter().find(|version| number == Some(version.number.into())) {
        return Ok((rest, Some(version.protocol)));
    }
    let all: Vec<String> = known.iter().map(|version| version.number.to_string()).collect();
    Err(format!("`{}` must be 1 or {}", key.get_ref(), all.join(" or ")))
}

/// Returns the version of this name.
fn version(over: &str) -> Option<Version> {
    versions().find(|version| version.protocol == over)
}

/// Returns the name for people, after ` over `; empty if the race has none.
pub(crate) fn in_words(over: Option<&str>) -> String {
    let named = over.map(|over| version(over).map_or(over, |version| version.named));
    named.map_or(String::new(), |named| format!(" over {named}"))
}

/// Returns the workload as it is sent. The error is a sentence.
pub(crate) fn adopted(workload: Workload, over: Option<&str>) -> Result<Workload, String> {
    let Some(over) = over else { return Ok(workload) };
    workload.adopted(over, false).map_err(|why| {
        let named = version(over).map_or(over, |version| version.named);
        format!("this race is over {named}, but {why}; choose another workload, e.g. hello")
    })
}

/// Returns the workload of a race as it is sent.
pub(crate) fn given(workload: Workload, asked: &Asked) -> Result<Workload, String> {
    adopted(workload, asked.over.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Version {
        versions().next().unwrap()
    }

    #[test]
    fn the_key_is_taken_out_and_the_rest_keeps_its_place() {
        let Version { protocol, of, number, .. } = key();
        let text =
            format!("rounds = 2\n{of} = {number} # the version\nworkload = 'hello'\n[[load]]\n");
        let (rest, over) = taken_out(&text).unwrap();
        assert_eq!(over, Some(protocol));
        assert_eq!(rest, text.replace(&format!("{of} = {number}"), &" ".repeat(of.len() + 4)));
        let first = text.replace(&number.to_string(), "1").replace("rounds = 1", "rounds = 2");
        assert_eq!(taken_out(&first).unwrap().1, None);
    }

    #[test]
    fn other_texts_are_left_as_they_are() {
        for text in ["rounds = 2\n", "rounds = \n", "[[load]]\nconnections = 1\n"] {
            assert_eq!(taken_out(text).unwrap(), (text.to_owned(), None));
        }
    }

    #[test]
    fn an_unknown_version_is_an_error() {
        for value in ["3", "'2'", "0"] {
            let error = taken_out(&format!("{} = {value}\n", key().of)).unwrap_err();
            assert!(error.contains("must be 1 or 2"), "{error}");
        }
    }

    #[test]
    fn a_workload_of_another_protocol_is_refused_with_the_version() {
        let double = Workload::parse("double").unwrap();
        let error = adopted(double, Some(key().protocol)).unwrap_err();
        assert!(error.contains(key().named) && error.contains("double"), "{error}");
    }
}
