//! An entry: its `meta.json`, and whether its image can be built from its `Dockerfile`.

use super::{
    checkout::{self, Checkout, is_file, is_folder},
    text::shown,
};
use serde::Deserialize;

/// Maximum length of a `meta.json`, in bytes.
const LONGEST_META: u64 = 64 << 10;
/// Maximum length of the name of an entry. It becomes a part of the name of an image, which has at most 255 characters.
const LONGEST_NAME: usize = 60;
/// Maximum number of profiles of an entry. HttpArena has about 30.
const MOST_TESTS: usize = 100;

/// An entry whose image can be built.
#[derive(Debug)]
pub struct Entry {
    /// The name of its folder.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// The profiles that it takes part in.
    pub tests: Vec<String>,
}

/// `meta.json`. Other keys are for HttpArena's pages.
#[derive(Debug, Deserialize)]
struct Meta {
    display_name: Option<String>,
    language: Option<String>,
    engine: Option<String>,
    #[serde(rename = "type")]
    tier: Option<String>,
    mode: Option<String>,
    enabled: Option<bool>,
    #[serde(default)]
    tests: Vec<String>,
}

impl Entry {
    /// Reads an entry. The error says why it is left out.
    pub fn read(checkout: &Checkout, name: &str) -> Result<Entry, String> {
        if !is_good_name(name) {
            return Err(format!(
                "its name cannot be that of an image: expected at most {LONGEST_NAME} lower-case letters and \
                 digits, with single '.', '_' and '-' between them"
            ));
        }
        let folder = checkout.entry(name);
        if !is_folder(&folder) {
            return Err("it is not a folder but a symbolic link".into());
        }
        let meta = checkout::read(&folder.join("meta.json"), LONGEST_META)
            .map_err(|why| format!("its meta.json {why}"))?;
        let meta: Meta = serde_json::from_slice(&meta).map_err(|error| {
            format!("its meta.json cannot be understood: {}", shown(&error.to_string(), 200))
        })?;
        if meta.enabled == Some(false) {
            return Err("it is disabled in its meta.json".into());
        }
        if meta.tests.is_empty() || meta.tests.len() > MOST_TESTS {
            let n = meta.tests.len();
            return Err(format!("its meta.json has {n} tests; expected 1 to {MOST_TESTS}"));
        }
        // HttpArena runs it in place of the Dockerfile.
        if folder.join("build.sh").exists() {
            return Err(
                "its image is built by a program of its own, build.sh, which is not run".into()
            );
        }
        if !is_file(&folder.join("Dockerfile")) {
            return Err("it has no Dockerfile, so it is not a single container".into());
        }
        Ok(Entry { name: name.to_owned(), about: about(name, &meta), tests: meta.tests })
    }

    /// The name of its contender.
    pub fn contender(&self) -> String {
        format!("arena-{}", self.name)
    }

    /// Whether it takes part in a profile.
    pub fn has(&self, profile: &str) -> bool {
        self.tests.iter().any(|test| test == profile)
    }
}

/// Whether a name can be a part of the name of an image
/// (<https://github.com/distribution/reference>, `path-component`), and so of a path.
fn is_good_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= LONGEST_NAME && name.split(['.', '_', '-']).all(is_part)
}

fn about(name: &str, meta: &Meta) -> String {
    let Meta { display_name, language, engine, tier, mode, .. } = meta;
    let display_name = display_name.as_deref().map(|text| shown(text, 60)).unwrap_or_default();
    let display_name = if display_name.is_empty() { name } else { &display_name };
    let parts = [language, engine, tier, mode].into_iter().flatten().map(|text| shown(text, 40));
    let mut parts: Vec<String> = parts.filter(|text| !text.is_empty()).collect();
    parts.insert(0, format!("HttpArena's {display_name}"));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_parts_of_paths_and_commands_are_plain() {
        for good in ["actix", "h2o-mruby", "aspnet-minimal_nginx", "v1.2", "9"] {
            assert!(is_good_name(good), "{good}");
        }
        let long = "x".repeat(61);
        for wrong in [
            "", ".", "..", "a/b", "../a", "-a", "a-", "a--b", "A", "a b", "a;b", "a\n", "$(a)",
            "é", &long,
        ] {
            assert!(!is_good_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_description_is_one_line_of_what_is_known() {
        let of = |text: &str| about("x", &serde_json::from_str(text).unwrap());
        let all = r#"{"display_name": "X!", "language": "Rust", "type": "flagship", "engine": "hyper",
                      "mode": "tuned", "repo": "https://x.example"}"#;
        assert_eq!(of(all), "HttpArena's X!, Rust, hyper, flagship, tuned");
        assert_eq!(of(r#"{"display_name": "\u001b", "language": "a\nb"}"#), "HttpArena's x, a b");
    }
}
