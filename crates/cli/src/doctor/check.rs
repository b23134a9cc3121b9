//! What one check found.

use serde::Serialize;

/// How much it matters, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// As it should be.
    Ok,
    /// To be known when results are read or compared.
    Note,
    /// Some results would be wrong, or not be there.
    Warn,
    /// A race would be refused or meaningless.
    Bad,
}

impl Mark {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Mark::Ok => "ok",
            Mark::Note => "note",
            Mark::Warn => "warn",
            Mark::Bad => "bad",
        }
    }
}

/// One check, as it is printed and written.
#[derive(Debug, Serialize)]
pub struct Check {
    /// What was looked at, in one word.
    pub name: &'static str,
    /// What was found.
    pub found: String,
    /// How much it matters.
    pub mark: Mark,
    /// What it would do to results, in one sentence; `None` only where the mark is ok.
    pub effect: Option<String>,
    /// What to do, in one sentence; `None` only where the mark is ok.
    pub remedy: Option<String>,
}

impl Check {
    /// All is well.
    pub fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, found: found.into(), mark: Mark::Ok, effect: None, remedy: None }
    }

    /// This one with a mark, and what follows from it.
    pub fn but(self, mark: Mark, effect: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { mark, effect: Some(effect.into()), remedy: Some(remedy.into()), ..self }
    }
}

/// A check of this mark whose sentences say these words.
#[cfg(test)]
pub fn assert_says(check: &Check, mark: Mark, effect: &[&str], remedy: &[&str]) {
    assert_eq!(check.mark, mark, "{check:?}");
    for (said, wanted) in [(&check.effect, effect), (&check.remedy, remedy)] {
        let said = said.as_deref().unwrap_or_default();
        assert!(said.ends_with('.'), "no sentence: {said:?}");
        for words in wanted {
            assert!(said.contains(words), "no {words:?} in {said:?}");
        }
    }
}
