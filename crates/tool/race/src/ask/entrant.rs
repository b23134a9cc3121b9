//! An entrant: a contender in a race, under its name in that race, as stored in `race.toml`.

use crate::{
    ask::heads,
    ask::{host_name::HOST, over},
    contenders::{
        adapter::Adapter,
        find_contenders::{Contender, ContenderError},
        launches::RoleCpus,
        manifest::{Limits, Manifest},
        placeholders::{BackendPorts, Values},
    },
};
use regatta_host::RoleLaunch;
use regatta_record::{Asked, Entry, LoadShape, RunningServer};
use regatta_script::{Canned, Destination, Workload};
use std::{net::IpAddr, path::Path};

/// A contender in a race.
#[derive(Clone, Debug)]
pub(crate) struct Entrant {
    /// Its name in this race. The name of a twin differs from its manifest's.
    pub name: String,
    /// The requests it receives, and the replies expected from it.
    pub speaks: Workload,
    pub contender: Contender,
    /// Its server, if that was already running when the race was prepared.
    pub running: Option<RunningServer>,
}

/// The ports and the folder of one start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartPlace<'a> {
    /// The address that the server must listen on.
    pub host: IpAddr,
    /// Its port.
    pub port: u16,
    /// The ports of its backends.
    pub backends: &'a [BackendPorts],
    /// The folder of the start.
    pub run: &'a Path,
}

/// An error in what a race file or a result directory says about a contender.
#[derive(Debug, thiserror::Error)]
#[error("the contender {name}: {because}")]
pub struct EntrantError {
    name: String,
    because: String,
}

impl Entrant {
    /// Returns the entrants of a race that were not skipped.
    pub fn of_race(asked: &Asked) -> Result<Vec<Entrant>, EntrantError> {
        let taking_part = asked.entries.iter().filter(|entry| entry.skipped.is_none());
        let workload = workload(asked);
        taking_part.map(|entry| Entrant::of_entry(entry, workload.as_ref())).collect()
    }

    fn of_entry(
        entry: &Entry,
        workload: Result<&Workload, &String>,
    ) -> Result<Entrant, EntrantError> {
        let error = |because: String| EntrantError { name: entry.name.clone(), because };
        let manifest = Manifest::parse(&entry.manifest).map_err(error)?;
        let workload = workload.map_err(|because| error(because.clone()))?;
        let speaks = match manifest.adapter {
            Some(adapter) => adapter.asked(workload).map_err(error)?,
            None => workload.clone(),
        };
        let contender = Contender { manifest, dir: entry.dir.clone() };
        let (name, running) = (entry.name.clone(), entry.running.clone());
        Ok(Entrant { name, speaks, contender, running })
    }

    /// Returns its workload under a load with this `n`.
    pub fn speaks_under(&self, n: Option<u32>) -> Workload {
        n.and_then(|n| self.speaks.with_n(n)).unwrap_or_else(|| self.speaks.clone())
    }

    /// Returns the canned reply that it sends under `load`; `None` if its adapter is not `canned`.
    pub fn canned(&self, load: LoadShape) -> Option<Canned> {
        let Manifest { adapter, path, .. } = &self.contender.manifest;
        let place = Destination {
            host: HOST,
            path: path.as_deref(),
            closes: load.drive.churns(),
            timeout: None,
        };
        let (_, canned) =
            self.speaks.canned(place).filter(|_| *adapter == Some(Adapter::Canned))?;
        Some(canned)
    }

    /// Returns, as a sentence, the stated limit that the load exceeds, if any.
    pub fn cannot_hold(&self, load: LoadShape) -> Option<String> {
        let Limits { connections, pipeline } = self.contender.manifest.limits;
        let name = &self.name;
        if let Some(limit) = pipeline.filter(|limit| load.pipeline > *limit) {
            return Some(format!(
                "{name} states a limit of {limit} requests in flight per connection; this load \
                 has {}",
                load.pipeline
            ));
        }
        let limit = connections?;
        let open = load.max_open_connections();
        (open > limit).then(|| {
            let of_those = match (load.idle, load.passing) {
                (0, 0) => String::new(),
                (idle, 0) => format!(" ({} and {idle} idle)", load.connections),
                (0, passing) => format!(" ({} and {passing} passing)", load.connections),
                (idle, passing) => {
                    format!(" ({}, {idle} idle and {passing} passing)", load.connections)
                }
            };
            format!("{name} states a limit of {limit} connections; this load has {open}{of_those}")
        })
    }

    /// Returns its launches under `load` in `place`.
    pub fn launches(
        &self,
        asked: &Asked,
        load: LoadShape,
        binary: &Path,
        place: StartPlace<'_>,
    ) -> Result<Vec<RoleLaunch>, ContenderError> {
        let StartPlace { host, port, backends, run } = place;
        let (server, of_backends) = (asked.cpus.of_server(&load), asked.cpus.of_backends(&load));
        let Manifest { workloads, .. } = &self.contender.manifest;
        let named = workloads.iter().find(|name| **name == asked.workload);
        let values = Values {
            host,
            port,
            workload: named.map_or_else(|| self.speaks.service(), String::as_str),
            cores: server.len(),
            churn: load.drive.churns(),
            request_bytes: self.canned(load).map(|canned| canned.request_bytes),
            dir: &self.contender.dir,
            run,
            home: run,
            regatta: binary,
            instance: None,
            backends,
        };
        let cpus = RoleCpus { server: &server, backends: &of_backends };
        self.contender.launches(&self.name, &values, &cpus)
    }
}

/// Returns the workload of a race: that of its workload file, otherwise the built-in one of its name.
fn workload(asked: &Asked) -> Result<Workload, String> {
    let name = &asked.workload;
    if let Some(text) = &asked.workload_file {
        let workload = Workload::from_text(text, name).map_err(|error| error.to_string())?;
        return over::given(workload, asked);
    }
    let with_heads = |workload| heads::given(workload, asked);
    let workload = Workload::parse(name).map(with_heads).ok_or_else(|| {
        let known: Vec<_> = Workload::built_in().iter().map(|one| one.name().to_owned()).collect();
        let known = known.join(", ");
        format!("there is no built-in workload {name:?}; there are {known}")
    })?;
    over::given(workload, asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::{Burst, Drive};

    fn limited(limit: &str) -> Entrant {
        let text = format!(
            "name = 'few'\nabout = 'x'\nworkloads = ['double']\n\
             start = ['few', '{{port}}']\nlimits = {{ {limit} }}\n"
        );
        let manifest = Manifest::parse(&text).unwrap();
        let contender = Contender { manifest, dir: Default::default() };
        Entrant {
            name: "few".into(),
            speaks: Workload::parse("double").unwrap(),
            contender,
            running: None,
        }
    }

    #[test]
    fn a_stated_limit_of_requests_in_flight_applies_to_each_connection() {
        let entrant = limited("pipeline = 4");
        assert_eq!(entrant.cannot_hold(LoadShape::closed(1000, 4)), None);
        assert_eq!(
            entrant.cannot_hold(LoadShape::closed(1, 5)).unwrap(),
            "few states a limit of 4 requests in flight per connection; this load has 5"
        );
    }

    #[test]
    fn a_stated_limit_of_connections_applies_to_all_that_are_open_at_once() {
        let entrant = limited("connections = 100");
        let reason = |load| entrant.cannot_hold(load);
        let closed = LoadShape::closed(100, 1);
        assert_eq!(reason(closed), None);
        assert_eq!(
            reason(LoadShape { idle: 1, ..closed }).unwrap(),
            "few states a limit of 100 connections; this load has 101 (100 and 1 idle)"
        );
        assert_eq!(
            reason(LoadShape { idle: 1, passing: 5, ..closed }).unwrap(),
            "few states a limit of 100 connections; this load has 106 (100, 1 idle and 5 passing)"
        );
        let drive = Drive::Burst(Burst { instances: 10, requests: 1 });
        assert_eq!(
            reason(LoadShape { drive, ..LoadShape::closed(110, 3) }).unwrap(),
            "few states a limit of 100 connections; this load has 110"
        );
    }
}
