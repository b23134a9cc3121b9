//! Whether the contenders of a race answer with different contents that nothing checks.

use crate::{Asked, Cell, ContentSeen};

impl Asked {
    /// Reports contenders whose contents differ from those of the first one, or could not be seen, if the
    /// workload accepts any content: the race may compare different work.
    pub fn doubts_of_contents(&self, cells: &[Cell]) -> Vec<String> {
        let entries = self.entries.iter().filter(|entry| !self.is_reference(&entry.name));
        let (mut seen, mut unseen) = (Vec::new(), Vec::new());
        for name in entries.map(|entry| entry.name.as_str()) {
            let of = || cells.iter().filter(|cell| cell.contender == name && cell.requests > 0);
            match of().find_map(|cell| cell.reply) {
                Some(reply) => seen.extend(reply.content.map(|content| (name, content))),
                None if of().next().is_some() => unseen.push(name),
                None => {}
            }
        }
        different_contents(&seen).into_iter().chain(not_compared(&seen, &unseen)).collect()
    }
}

fn not_compared(seen: &[(&str, ContentSeen)], unseen: &[&str]) -> Option<String> {
    (!seen.is_empty() && !unseen.is_empty()).then(|| {
        format!(
            "the contents of the replies of {} were not compared with those of the others, because they \
             are larger than 1 MiB or took longer than a second",
            unseen.join(" and ")
        )
    })
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

    #[test]
    fn a_content_that_was_not_seen_is_said_if_others_were() {
        let one = [("old", content(9, Some(1)))];
        assert_eq!(not_compared(&one, &[]), None);
        assert_eq!(not_compared(&[], &["new"]), None, "the workload checks contents, or none came");
        assert!(not_compared(&one, &["new", "third"]).unwrap().contains("of new and third were"));
    }
}
