//! Contenders that cannot be in a duel: those that always listen on the same port, because two of them cannot be alive
//! together; and those with several nodes, because a duel stops processes for seconds while others have their turn.

use crate::{ask::duels::is_raced_in_duels, contenders::manifest::Manifest};
use regatta_record::Asked;

/// Checks that no two contenders of a duel have the same fixed port, and that none has several nodes. The error is a
/// sentence.
pub(crate) fn check(asked: &Asked) -> Result<(), String> {
    if !asked.loads.iter().any(|load| is_raced_in_duels(asked, load)) {
        return Ok(());
    }
    let mut fixed: Vec<(u16, &str)> = Vec::new();
    let twin = asked.twin();
    for entry in asked.entries.iter().filter(|entry| entry.skipped.is_none()) {
        let Ok(manifest) = toml::from_str::<Manifest>(&entry.manifest) else { continue };
        if manifest.has_nodes() {
            return Err(format!(
                "{} has several nodes, and a duel stops them for seconds while others have their turn, so \
                 that they lose their connections to each other; race it in rounds (--schedule rounds)",
                entry.name
            ));
        }
        let Some(port) = manifest.port else { continue };
        if let Some((_, other)) = fixed.iter().find(|(known, _)| *known == port) {
            let rounds =
                "race them in rounds, in which one runs after the other (--schedule rounds)";
            return Err(if twin.as_deref() == Some(&entry.name) {
                format!(
                    "{other} always listens on port {port}, so it and its twin, which shows the noise floor, \
                     cannot be alive together, as duels need; {rounds}, or choose another baseline (--baseline)"
                )
            } else {
                format!(
                    "{other} and {} always listen on port {port}, so they cannot be alive together, as duels \
                     need; {rounds}",
                    entry.name
                )
            });
        }
        fixed.push((port, &entry.name));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use regatta_record::{Entry, LoadShape, Schedule};

    fn asked(ports: &[(&str, Option<u16>)]) -> Asked {
        let entry = |(name, port): &(&str, Option<u16>)| {
            let mut manifest =
                Manifest::from_argument(&format!("{name}=x {{port}}"), "double").unwrap();
            manifest.port = *port;
            let manifest = toml::to_string(&manifest).unwrap();
            Entry { name: (*name).to_owned(), manifest, ..Entry::default() }
        };
        Asked {
            schedule: Schedule::Duels,
            twin_of: None,
            entries: ports.iter().map(entry).collect(),
            loads: vec![LoadShape::closed(8, 1)],
            ..fixtures::asked()
        }
    }

    #[test]
    fn two_contenders_of_one_port_are_not_raced_in_duels() {
        let both = asked(&[("a", Some(8080)), ("b", None), ("c", Some(8080))]);
        let error = check(&both).unwrap_err();
        assert!(error.starts_with("a and c always listen on port 8080, so they cannot"), "{error}");
        assert!(error.ends_with("(--schedule rounds)"), "{error}");
        let in_rounds = Asked { schedule: Schedule::Rounds, ..both.clone() };
        assert_eq!(check(&in_rounds), Ok(()));
        let counted = LoadShape { requests: Some(9), ..LoadShape::closed(8, 1) };
        assert_eq!(check(&Asked { loads: vec![counted], ..both.clone() }), Ok(()));
        let mut skipped = both;
        skipped.entries[2].skipped = Some("it is not built".into());
        assert_eq!(check(&skipped), Ok(()));
    }

    #[test]
    fn a_contender_with_several_nodes_is_raced_in_rounds() {
        let mut asked = asked(&[("a", None), ("b", None)]);
        let node = "[[backend]]\nname = 'n'\nnode = true\nstart = ['x', '{port}']\n";
        asked.entries[1].manifest.push_str(node);
        let error = check(&asked).unwrap_err();
        assert!(error.starts_with("b has several nodes, and a duel stops them"), "{error}");
        let in_rounds = Asked { schedule: Schedule::Rounds, ..asked };
        assert_eq!(check(&in_rounds), Ok(()));
    }

    #[test]
    fn different_ports_race_in_duels_but_not_one_beside_its_twin() {
        assert_eq!(check(&asked(&[("a", Some(8080)), ("b", Some(8081)), ("null", None)])), Ok(()));
        let of =
            Asked { twin_of: Some("a".into()), ..asked(&[("a", Some(80)), ("a-twin", Some(80))]) };
        let error = check(&of).unwrap_err();
        assert!(error.starts_with("a always listens on port 80, so it and its twin"), "{error}");
        assert!(error.ends_with("or choose another baseline (--baseline)"), "{error}");
    }
}
