//! Chooses the contenders that take part and checks their names. Errors are sentences.

use crate::{
    ask::{contest::Contest, over},
    contenders::{adapter::Adapter, find_contenders::Contender, nearest::hint},
};
use regatta_record::{Entry, NULL};
use std::collections::BTreeSet;

/// Checks the contenders that a user's own race file names. Returns an error for the first that is
/// unknown or does not serve the workload: a misspelt name must not silently shrink a race. Bundled
/// races are not checked, because they name peers that are not installed everywhere. `given` are the
/// contenders of the command line, which replace namesakes.
pub(crate) fn check_known(
    contest: &Contest,
    known: &[Contender],
    entries: &[Entry],
    given: &[String],
) -> Result<(), String> {
    if contest.bundled {
        return Ok(());
    }
    let workload = contest.service();
    // Several contenders may share a name, each for other workloads.
    let any = |name: &str, holds: &dyn Fn(&Contender) -> bool| {
        known.iter().any(|c| c.manifest.name == name && holds(c))
    };
    let wrong = contest.contenders.iter().find(|name| {
        let takes_part = entries.iter().any(|entry| entry.name == **name);
        *name != PEERS
            && takes_part
            && !given.contains(name)
            && !any(name, &|one| serves(contest, one))
    });
    let Some(name) = wrong else { return Ok(()) };
    if any(name, &|_| true) {
        let otherwise = any(name, &|one| serves_otherwise(contest, one));
        let adds = match &contest.over {
            Some(over) if otherwise => format!("`over = {{ {over} = {{}} }}`"),
            _ => workload.clone(),
        };
        let remedy = match any(name, &Contender::is_built_in) {
            true => String::new(),
            false => format!(", or add {adds} to its manifest"),
        };
        let lacks = does_not_serve(contest, otherwise);
        return Err(format!(
            "the race file names the contender {name}, which {lacks}; remove it{remedy}"
        ));
    }
    let serving = || known.iter().filter(|c| serves(contest, c)).map(|c| c.manifest.name.as_str());
    Err(format!(
        "the race file names the contender {name}, but there is no manifest of that name{}; use \
         --skip {name} to leave it out; these serve {workload}: {}",
        hint(name, serving()),
        serving().collect::<Vec<_>>().join(", ")
    ))
}

/// Whether a contender serves the workload: its manifest names the service or the workload file. A
/// server with the adapter `echo` serves every workload file whose requests can be echoed; one with the adapter
/// `canned`, every file of a protocol that its manifest names, if one reply can answer all requests. One that has its
/// own protocol (`adapter`) must have a form of the workload in it.
pub(crate) fn serves(contest: &Contest, contender: &Contender) -> bool {
    let is_over = |over: &String| contender.manifest.over.contains_key(over);
    contest.over.as_ref().is_none_or(is_over) && serves_over_any(contest, contender)
}

/// Whether a contender serves the workload, but not over the protocol of the race.
pub(crate) fn serves_otherwise(contest: &Contest, contender: &Contender) -> bool {
    !serves(contest, contender) && serves_over_any(contest, contender)
}

/// Says that a contender does not serve the workload; `otherwise`: not over the protocol of the race.
pub(crate) fn does_not_serve(contest: &Contest, otherwise: bool) -> String {
    let over = contest.over.as_deref().filter(|_| otherwise);
    format!("does not serve {}{}", contest.service(), over::in_words(over))
}

fn serves_over_any(contest: &Contest, contender: &Contender) -> bool {
    let Contender { manifest, .. } = contender;
    let named = |name: &String| manifest.workloads.contains(name);
    let of_file = contest.workload_file.is_some();
    let is_named = named(&contest.service()) || of_file && named(&contest.workload);
    match manifest.adapter {
        Some(Adapter::Echo) if of_file => contest.spoken().is_some_and(|w| w.echoed().is_some()),
        Some(Adapter::Canned) if of_file => contest.spoken().is_some_and(|workload| {
            let protocol = workload.protocol().name.to_owned();
            named(&protocol) && workload.canned(Default::default()).is_some()
        }),
        Some(adapter @ Adapter::Speaks(_)) if !of_file => {
            is_named && contest.spoken().is_none_or(|workload| adapter.asked(&workload).is_ok())
        }
        _ => is_named,
    }
}

/// Checks that no contender was named, with `only`, that serves the workload, but not over the protocol of the race.
pub(crate) fn check_over(
    contest: &Contest,
    known: &[Contender],
    only: &[String],
) -> Result<(), String> {
    let cannot = |name: &&String| {
        let named = || known.iter().filter(|one| one.manifest.name == **name);
        !named().any(|one| serves(contest, one))
            && named().any(|one| serves_otherwise(contest, one))
    };
    let Some(name) = only.iter().find(cannot) else { return Ok(()) };
    let serving = known.iter().filter(|one| serves(contest, one));
    let serving: Vec<&str> = serving.map(|one| one.manifest.name.as_str()).collect();
    Err(format!(
        "the contender {name} {}; these do: {}",
        does_not_serve(contest, true),
        serving.join(", ")
    ))
}

/// The word in a race file for all contenders that are neither built in nor defined in the file.
pub(crate) const PEERS: &str = "peers";

/// Checks that no two contenders share a name: results are identified by the name alone.
pub(crate) fn check_unique(entries: &[Entry]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let twice = entries.iter().find(|entry| !seen.insert(&entry.name));
    twice.map_or(Ok(()), |Entry { name, .. }| {
        Err(format!(
            "two contenders are named {name}; rename one in its manifest or in the race file"
        ))
    })
}

/// Applies `only` and `skip`. Contenders `given` on the command line do not need to be in `only`. Fails
/// if `only` or `skip` names an unknown contender.
pub(crate) fn choose(
    entries: &mut Vec<Entry>,
    given: &[String],
    only: &[String],
    skip: &[String],
) -> Result<(), String> {
    let unknown = only.iter().chain(skip).find(|name| !entries.iter().any(|e| e.name == **name));
    if let Some(name) = unknown {
        let all = names(entries);
        let hint = hint(name, entries.iter().map(|entry| entry.name.as_str()));
        return Err(format!("no contender {name:?} in this race{hint}; expected one of: {all}"));
    }
    let wanted = |name: &String| only.is_empty() || only.contains(name) || given.contains(name);
    entries.retain(|e| wanted(&e.name) && !skip.contains(&e.name));
    Ok(())
}

/// Returns the baseline: the contender `asked_for` on the command line or named in the file, otherwise
/// the first that takes part, except the null server.
pub(crate) fn baseline(
    contest: &Contest,
    asked_for: Option<&String>,
    entries: &[Entry],
) -> Result<String, String> {
    let taking_part: Vec<&Entry> = entries.iter().filter(|e| e.skipped.is_none()).collect();
    let takes_part = |name: &&String| taking_part.iter().any(|e| e.name == **name);
    if let Some(name) = asked_for.filter(|name| !takes_part(name)) {
        let names: Vec<&str> = taking_part.iter().map(|e| e.name.as_str()).collect();
        let names = names.join(", ");
        let because = format!("the baseline {name} does not take part; it must be one of: {names}");
        return Err(because);
    }
    // The baseline of the file may be left out by the command line, or not be installed.
    let asked = asked_for.or(contest.baseline.as_ref()).filter(takes_part);
    let first = || taking_part.iter().map(|e| &e.name).find(|name| *name != NULL);
    asked.or_else(first).cloned().ok_or_else(|| {
        let skipped = entries.iter().filter_map(|e| Some((&e.name, e.skipped.as_ref()?)));
        let skipped: String = skipped.map(|(name, why)| format!("; {name}: {why}")).collect();
        format!("no contender can race; see `regatta peers`{skipped}")
    })
}

fn names(entries: &[Entry]) -> String {
    entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::manifest::Manifest;
    use regatta_script::Workload;

    #[test]
    fn a_contender_that_names_the_service_or_the_workload_file_serves_it() {
        let contest = Contest {
            workload: "mine".into(),
            workload_file: Some("protocol = 'line'".into()),
            file_service: Some("shard".into()),
            ..Contest::parse("", "x").unwrap()
        };
        for (workload, serving) in [("shard", true), ("mine", true), ("hello", false)] {
            let manifest = Manifest::from_argument("a=a {port}", workload).unwrap();
            let contender = Contender { manifest, dir: Default::default() };
            assert_eq!(serves(&contest, &contender), serving, "{workload}");
        }
    }

    #[test]
    fn a_server_that_echoes_serves_a_workload_file_only_if_its_replies_can_equal_its_requests() {
        let null = "name = 'null'\nabout = 'a'\nworkloads = ['double']\nadapter = 'echo'\n\
                    start = ['a', '{port}']";
        let contender =
            Contender { manifest: Manifest::parse(null).unwrap(), dir: Default::default() };
        let files = [
            (include_str!("../../../../../workloads/double.toml"), true),
            (include_str!("../../../../../workloads/shard-set-get.toml"), false),
        ];
        for (text, serving) in files {
            let workload = Workload::from_text(text, "mine").unwrap();
            let mut contest = Contest::parse("", "x").unwrap();
            contest.ask(Ok(workload), "x").unwrap();
            assert_eq!(serves(&contest, &contender), serving, "{text}");
        }
    }

    #[test]
    fn a_server_with_one_reply_serves_the_workload_files_of_its_protocol() {
        let null = |workload: &str| {
            let text = format!(
                "name = 'null'\nabout = 'a'\nworkloads = ['{workload}']\nadapter = 'canned'\n\
                 start = ['a', '{{port}}']"
            );
            Contender { manifest: Manifest::parse(&text).unwrap(), dir: Default::default() }
        };
        let calls = include_str!("../../../../../workloads/grpc.toml");
        let protocol = Workload::from_text(calls, "mine").unwrap().protocol().name;
        // The reply to its most frequent call does not fit.
        let long = calls.replace("0a0748656c6c6f2061", &"00".repeat(5_000));
        let of_hello = Workload::parse("hello").unwrap().protocol().name;
        let get = format!("protocol = '{of_hello}'\n[[request]]\npath = '/'\n");
        for (text, name, of, serving) in [
            (calls, "mine", protocol, true),
            (calls, "mine", "hello", false),
            (&long, protocol, protocol, false),
            // Its name is that of a built-in workload, whose reply would be wrong here.
            (&get, "hello", "hello", false),
        ] {
            let mut contest = Contest::parse("", "x").unwrap();
            contest.ask(Workload::from_text(text, name), "x").unwrap();
            assert_eq!(serves(&contest, &null(of)), serving, "{name}, {of}");
        }
    }

    #[test]
    fn a_contender_whose_protocol_has_no_form_of_the_workload_does_not_serve_it() {
        let text = "name = 'a'\nabout = 'a'\nworkloads = ['hub']\nadapter = 'actioncable'\n\
                    start = ['a', '{port}']";
        let manifest = Manifest::parse(text).unwrap();
        let contender = Contender { manifest, dir: Default::default() };
        for (race, serving) in [("hub", true), ("hub-echo", false)] {
            assert_eq!(serves(&Contest::find(race).unwrap(), &contender), serving, "{race}");
        }
    }
}
