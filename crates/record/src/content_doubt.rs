//! Whether the contenders of a race answer with different contents that nothing checks.

use crate::{Asked, Cell, ContentSeen};

impl Asked {
    /// Reports contenders whose contents differ from those of the first one, if the workload accepts any
    /// content: the race may compare different work.
    pub fn doubt_of_contents(&self, cells: &[Cell]) -> Option<String> {
        let entries = self.entries.iter().filter(|entry| !self.is_reference(&entry.name));
        let seen = entries.map(|entry| {
            let mut of = cells.iter().filter(|cell| cell.contender == entry.name);
            (entry.name.as_str(), of.find_map(|cell| cell.reply).and_then(|reply| reply.content))
        });
        let seen: Vec<(&str, ContentSeen)> =
            seen.filter_map(|(name, content)| Some((name, content?))).collect();
        different_contents(&seen)
    }
}

fn different_contents(seen: &[(&str, ContentSeen)]) -> Option<String> {
    let (_, first) = seen.first()?;
    if seen.iter().all(|(_, content)| content.is_like(first)) {
        return None;
    }
    let each = seen.iter().map(|(name, content)| format!("{name} ({} bytes)", content.bytes));
    Some(format!(
        "the contents of the replies differ, and nothing checks them, so the contenders may do \
         different work: {}; request one of each (`curl`) to see how, and write a workload file that \
         says which content is right",
        each.collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(bytes: u64, digest: Option<u32>) -> ContentSeen {
        ContentSeen { bytes, digest }
    }

    #[test]
    fn all_contenders_are_named_with_their_lengths_if_one_differs() {
        assert_eq!(different_contents(&[]), None);
        let same = [("old", content(9, Some(1))), ("new", content(9, Some(1)))];
        assert_eq!(different_contents(&same), None);
        let other = [same[0], same[1], ("third", content(9, Some(2)))];
        let doubt = different_contents(&other).unwrap();
        assert!(doubt.contains("old (9 bytes), new (9 bytes), third (9 bytes);"), "{doubt}");
    }
}
