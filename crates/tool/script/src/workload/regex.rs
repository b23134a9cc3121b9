//! Regular expressions written by users.

use regex::bytes::{Regex, RegexBuilder};

/// Compiles a regular expression that matches whole texts only. A user cannot make it slow:
/// matching time is linear in the length of the text for any expression (crate `regex`, "untrusted
/// input").
pub fn regex(text: &str) -> Result<Regex, String> {
    let build = |text: &str| {
        RegexBuilder::new(text).size_limit(1 << 20).dfa_size_limit(1 << 20).build().map_err(
            |error| {
                format!(
                    "{text:?} is not a valid regular expression of the crate `regex`: {error}; \
                     write e.g. '[0-9]+ ms'"
                )
            },
        )
    };
    // First compile the text alone, so that it cannot close the group that anchors it.
    build(text)?;
    build(&format!("{BEGIN}{text}{END}"))
}

const BEGIN: &str = r"\A(?:";
const END: &str = r")\z";

/// Returns a regular expression of [`regex`] as the user wrote it.
pub(crate) fn as_written(regex: &Regex) -> &str {
    let text = regex.as_str();
    text.strip_prefix(BEGIN).and_then(|text| text.strip_suffix(END)).unwrap_or(text)
}
