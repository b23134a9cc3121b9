//! How much the requests of a load differ.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The heads of the requests of the built-in workloads that have heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heads {
    /// Heads like those of browsers, apps and programs: more than a thousand different ones, of
    /// many sizes, in an order drawn by the seed.
    #[default]
    Varied,
    /// The same short head in every request. It favours servers that cache heads.
    Identical,
}

impl fmt::Display for Heads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Heads::Varied => "varied",
            Heads::Identical => "identical",
        })
    }
}

impl FromStr for Heads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Heads::Varied, Heads::Identical];
        let named = all.into_iter().find(|heads| heads.to_string() == text);
        named.ok_or_else(|| "expected varied or identical".into())
    }
}
