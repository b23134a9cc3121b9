//! Properties of a contender's replies, apart from being correct.

use serde::{Deserialize, Serialize};

/// A reply of a contender to one request outside the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplySeen {
    /// Its length, head and content, in bytes.
    pub bytes: u64,
    /// Whether it has a Date field (RFC 9110, 6.6.1, requires it of servers with a clock).
    pub has_date: bool,
    /// Its content, if the workload accepts any. Absent: the workload checks the content of replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentSeen>,
}

/// A content that nothing checks, described so that those of several contenders can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentSeen {
    /// Its length, in bytes.
    pub bytes: u64,
    /// The first 32 bits of its SHA-256, with each run of digits as a single 0, so that times and
    /// counters do not matter. `None`: two requests had different ones.
    pub digest: Option<u32>,
}

impl ContentSeen {
    /// Whether two contents may be replies to the same question: they differ in at most a tenth of their
    /// length or 16 bytes, and in nothing but digits unless they vary by themselves.
    pub fn is_like(&self, other: &ContentSeen) -> bool {
        let (short, long) = (self.bytes.min(other.bytes), self.bytes.max(other.bytes));
        let alike = match (self.digest, other.digest) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        alike && long - short <= (long / 10).max(16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(bytes: u64, digest: Option<u32>) -> ContentSeen {
        ContentSeen { bytes, digest }
    }

    #[test]
    fn contents_differ_by_their_digest_or_by_a_tenth_of_their_length() {
        let one = content(1_000, Some(7));
        for (other, is_like) in [
            (content(1_000, Some(7)), true),
            (content(1_000, Some(8)), false),
            (content(1_000, None), true),
            (content(1_111, Some(7)), true),
            (content(1_113, Some(7)), false),
            (content(900, None), true),
            (content(899, None), false),
        ] {
            assert_eq!(one.is_like(&other), is_like, "{other:?}");
            assert_eq!(other.is_like(&one), is_like, "{other:?}");
        }
        assert!(content(0, None).is_like(&content(16, None)));
        assert!(!content(0, None).is_like(&content(17, None)));
    }
}
