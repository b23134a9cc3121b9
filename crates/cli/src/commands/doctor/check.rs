//! The result of one check.

use serde::Serialize;

/// The severity of a finding, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// As it should be.
    Ok,
    /// Worth knowing when results are read or compared.
    Note,
    /// Some results would be wrong or missing.
    Warn,
    /// A race would be refused or meaningless.
    Bad,
}

impl Mark {
    /// The printed name.
    pub fn name(self) -> &'static str {
        match self {
            Mark::Ok => "ok",
            Mark::Note => "note",
            Mark::Warn => "warn",
            Mark::Bad => "bad",
        }
    }
}

/// The result of one check, as it is printed and written to JSON.
#[derive(Debug, Serialize)]
pub struct Check {
    /// What was checked, in one word.
    pub name: &'static str,
    /// What was found.
    pub found: String,
    /// The severity.
    pub mark: Mark,
    /// Its effect on results, in one sentence or two; `None` only if the mark is ok.
    pub effect: Option<String>,
    /// What to do, in one sentence; `None` only if the mark is ok.
    pub remedy: Option<String>,
}

impl Check {
    /// Makes a check that found no problem.
    pub fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, found: found.into(), mark: Mark::Ok, effect: None, remedy: None }
    }

    /// Adds a mark, an effect and a remedy to this check.
    pub fn marked(self, mark: Mark, effect: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { mark, effect: Some(effect.into()), remedy: Some(remedy.into()), ..self }
    }
}

/// Asserts that a check has this mark, and that its sentences contain these words.
#[cfg(test)]
pub fn assert_says(check: &Check, mark: Mark, effect: &[&str], remedy: &[&str]) {
    assert_eq!(check.mark, mark, "{check:?}");
    for (text, wanted) in [(&check.effect, effect), (&check.remedy, remedy)] {
        let text = text.as_deref().unwrap_or_default();
        assert!(text.ends_with('.'), "not a sentence: {text:?}");
        for words in wanted {
            assert!(text.contains(words), "no {words:?} in {text:?}");
        }
    }
}
