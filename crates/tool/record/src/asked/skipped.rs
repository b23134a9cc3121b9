//! Contenders that do not take part, with their reasons.

use crate::Asked;

impl Asked {
    /// Whether a contender does not take part.
    pub fn is_skipped(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name && entry.skipped.is_some())
    }

    /// The contenders that do not take part: names, and the reason with what to do. Contenders share a
    /// reason if theirs differ only in the name after `peers install`, which is then `NAME…`.
    pub fn skipped(&self) -> Vec<(Vec<String>, String)> {
        let mut groups: Vec<(Vec<String>, &str, String)> = Vec::new();
        for entry in &self.entries {
            let Some(why) = entry.skipped.as_deref() else { continue };
            let shared =
                why.replace(&format!("peers install {}`", entry.name), "peers install NAME…`");
            match groups.iter_mut().find(|(.., other)| *other == shared) {
                Some((names, ..)) => names.push(entry.name.clone()),
                None => groups.push((vec![entry.name.clone()], why, shared)),
            }
        }
        let reason = |(names, why, shared): (Vec<String>, &str, String)| match names.len() {
            1 => (names, why.to_owned()),
            _ => (names, shared),
        };
        groups.into_iter().map(reason).collect()
    }
}
