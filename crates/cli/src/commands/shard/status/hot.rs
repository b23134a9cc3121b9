//! The keys that clients of a proxy request most.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// Number of keys that are shown.
const SHOWN: usize = 10;

/// Maximum number of characters that are shown of a key.
const LONGEST: usize = 48;

/// The page `/hot` of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HotKeys {
    sampled_one_in: u64,
    since_unix_s: u64,
    seconds: f64,
    /// Number of keys that were sampled.
    samples: u64,
    /// The most frequent come first.
    keys: Vec<HotKey>,
}

/// A key with the number of its samples, which is at most `error` too high, and not too low.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct HotKey {
    /// Its first bytes, as printable characters.
    key: String,
    length: u64,
    /// Of a key that is not shown whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    samples: u64,
    error: u64,
}

impl HotKeys {
    /// Writes the most frequent keys as a table, each with its share of the samples.
    pub fn write(&self, out: &mut String) -> fmt::Result {
        let (samples, seconds, one_in) = (self.samples, self.seconds, self.sampled_one_in);
        writeln!(out, "\nhot keys of the last {seconds:.0} s: {samples} samples, one in {one_in}")?;
        for key in self.keys.iter().take(SHOWN) {
            writeln!(out, "{:>6}  {}", self.share(key), key.shown())?;
        }
        Ok(())
    }

    /// The part of the samples that have this key: at least.
    fn share(&self, key: &HotKey) -> String {
        let sure = key.samples.saturating_sub(key.error);
        let share =
            |count: u64| format!("{:.1}%", count as f64 * 100.0 / self.samples.max(1) as f64);
        if sure == 0 { format!("<{}", share(key.samples)) } else { share(sure) }
    }
}

impl HotKey {
    /// As much of it as fits into a line.
    fn shown(&self) -> String {
        let whole = self.hash.is_none() && self.key.chars().count() <= LONGEST;
        if whole {
            return self.key.clone();
        }
        let start: String = self.key.chars().take(LONGEST).collect();
        format!("{start}... ({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_keys_are_shown_with_their_shares() {
        let long = "x".repeat(64);
        let page = format!(
            "{{\"sampled_one_in\":64,\"since_unix_s\":1,\"seconds\":12.3,\"samples\":200,\"keys\":[\n\
             {{\"key\":\"a\\\\xff\",\"length\":2,\"samples\":101,\"error\":1}},\n\
             {{\"key\":\"{long}\",\"length\":900,\"hash\":\"00ff\",\"samples\":50,\"error\":0}},\n\
             {{\"key\":\"b\",\"length\":1,\"samples\":2,\"error\":2}}]}}\n"
        );
        let hot: HotKeys = serde_json::from_str(&page).unwrap();
        let mut text = String::new();
        hot.write(&mut text).unwrap();
        let expected = format!(
            "\nhot keys of the last 12 s: 200 samples, one in 64\n 50.0%  a\\xff\n 25.0%  {}... (900 bytes)\n\
             \u{20}<1.0%  b\n",
            "x".repeat(48)
        );
        assert_eq!(text, expected);
        let mut none = String::new();
        HotKeys { seconds: 3.0, sampled_one_in: 64, ..HotKeys::default() }
            .write(&mut none)
            .unwrap();
        assert_eq!(none, "\nhot keys of the last 3 s: 0 samples, one in 64\n");
    }
}
