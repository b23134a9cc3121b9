//! Regular expressions as users write them.

use regex::bytes::{Regex, RegexBuilder};

/// A regular expression that matches whole texts only. What a user wrote cannot make it slow: the
/// time of this engine grows with the length of the text, whatever the expression (crate `regex`,
/// "untrusted input").
pub fn regex(text: &str) -> Result<Regex, String> {
    let build = |text: &str| {
        RegexBuilder::new(text).size_limit(1 << 20).dfa_size_limit(1 << 20).build().map_err(
            |error| {
                format!(
                    "{text:?} is no regular expression of the crate `regex`: {error}; one is \
                     written as '[0-9]+ ms'"
                )
            },
        )
    };
    // First alone, so that it cannot close the group that anchors it.
    build(text)?;
    build(&format!("{BEGIN}{text}{END}"))
}

const BEGIN: &str = r"\A(?:";
const END: &str = r")\z";

/// A regular expression of [`regex`] as it was written.
pub(crate) fn as_written(regex: &Regex) -> &str {
    let text = regex.as_str();
    text.strip_prefix(BEGIN).and_then(|text| text.strip_suffix(END)).unwrap_or(text)
}
