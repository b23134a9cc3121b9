//! What cannot hold for servers that ran before their race.

use crate::{Asked, text::joined::joined};
use std::collections::BTreeMap;

impl Asked {
    /// What cannot hold for the servers that ran before the race: one sentence for each cause, with the
    /// names of the contenders.
    pub fn doubts_of_running(&self) -> Vec<String> {
        let twin = self.twin();
        let entries = || self.entries.iter().filter(|entry| entry.skipped.is_none());
        let all = || entries().filter_map(|entry| Some((entry, entry.running.as_ref()?)));
        let running = || all().filter(|(entry, _)| twin.as_deref() != Some(entry.name.as_str()));
        let names: Vec<&str> = running().map(|(entry, _)| entry.name.as_str()).collect();
        if names.is_empty() {
            return Vec::new();
        }
        let one = names.len() == 1;
        let (was, they, it) =
            if one { ("was", "it uses", "it") } else { ("were", "they use", "them") };
        let names = names.join(" and ");
        let mut doubts = vec![
            format!(
                "{names} {was} already running and not restarted between rounds: the intervals do not \
                 contain differences between starts, and memory and warm-up include what happened \
                 before the race; to include all of that, give the command that starts {it}"
            ),
            format!(
                "{names} kept running while other contenders were measured; CPU time that {they} \
                 without requests disturbs them"
            ),
        ];
        if let Some(original) = self.twin_of.as_deref()
            && all().any(|(entry, _)| entry.name == original)
        {
            doubts.push(format!(
                "{original} and its twin are the same process, so the noise floor does not contain \
                 differences between starts; a difference close to it may be one of two starts of the \
                 same program"
            ));
        }
        let server = &self.cpus.server;
        let beyond = |cpus: &[u32]| cpus.iter().any(|cpu| !server.contains(cpu));
        let mut unpinned: BTreeMap<&[u32], Vec<(&str, u32)>> = BTreeMap::new();
        for (entry, one) in running().filter(|(_, one)| beyond(&one.cpus)) {
            let pids = one.processes.iter().map(|process| (entry.name.as_str(), process.pid));
            unpinned.entry(&one.cpus).or_default().extend(pids);
        }
        for (cpus, found) in unpinned {
            let mut names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
            names.dedup();
            let pin =
                |(_, pid): &(&str, u32)| format!("`taskset -acp {} {pid}`", joined(server, ","));
            let pins: Vec<String> = found.iter().map(pin).collect();
            doubts.push(format!(
                "{} may run on CPUs {}, and the servers of this race have {}: a server on more CPUs may \
                 take CPU time from the load, and is not compared on equal terms; before the race, {}",
                names.join(" and "),
                joined(cpus, ","),
                joined(server, ","),
                pins.join(" and ")
            ));
        }
        doubts
    }
}
