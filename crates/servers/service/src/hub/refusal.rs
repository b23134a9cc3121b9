//! Lines about clients that were refused, for those who operate the hub.

use super::{census::Census, settings::Settings};
use regatta_engine::Now;

/// Maximum length of what a client names in a line, in characters.
const LONGEST: usize = 200;

/// What was refused, and why.
pub(super) struct RefusedClient<'a> {
    /// What was refused, e.g. `join`.
    pub what: &'static str,
    /// The reason: one word, which never changes.
    pub reason: &'static str,
    /// The path of the room, or the method of the API.
    pub of: &'a str,
}

impl RefusedClient<'_> {
    /// Writes the line, at most once per second and reason. Nothing of a token or key is in it.
    pub fn log(&self, settings: &Settings, census: &Census, now: Now) {
        let RefusedClient { what, reason, of } = self;
        if let Some(burst) = census.refusals.admits(*reason, now.instant) {
            let suppressed = burst.count - 1;
            let of: String = of.chars().take(LONGEST).collect();
            (settings.log)(&format!(
                "regatta: {what} refused: reason={reason} of={of:?} suppressed={suppressed}"
            ));
        }
    }
}
