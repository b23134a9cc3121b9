//! The contenders of a race whose load runs on another machine: what an agent does for it here.

use crate::{
    ask::{
        entrant::Entrant,
        fingerprint::{Unchanged, fingerprint_of_contenders},
    },
    site::{
        boot::boot,
        held::Held,
        start::{Start, StartHere, start},
        wire::{FromSite, ToSite},
    },
};
use regatta_fleet::Site;
use regatta_host::{MachineMeter, Settings, read_setup};
use regatta_record::{Asked, LoadShape};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    env,
    net::{IpAddr, TcpListener},
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

/// The variable in which sshd leaves the addresses of a connection (ssh(1)).
const CONNECTION: &str = "SSH_CONNECTION";

/// The contenders that an agent runs. Dropping it kills them.
pub struct AgentSite {
    /// This program, for supervisors and built-in contenders.
    binary: PathBuf,
    /// Its version and revision.
    version: (&'static str, Option<&'static str>),
    stop: Arc<AtomicBool>,
    race: Option<Entered>,
    contenders: BTreeMap<u32, Held>,
    /// How many were started.
    started: u32,
    machine: MachineMeter,
}

/// A race that was entered.
struct Entered {
    asked: Asked,
    entrants: Vec<Entrant>,
    /// The address that `{host}` stands for.
    host: IpAddr,
    files: Unchanged,
    /// Of the machine, when they were last asked for.
    settings: Settings,
}

impl AgentSite {
    /// Without contenders. `binary` is this program, and `version` its version and revision. `stop` ends a start.
    pub fn new(
        binary: PathBuf,
        version: (&'static str, Option<&'static str>),
        stop: Arc<AtomicBool>,
    ) -> AgentSite {
        let (contenders, machine) = (BTreeMap::new(), MachineMeter::default());
        AgentSite { binary, version, stop, race: None, contenders, started: 0, machine }
    }

    fn carry_out(&mut self, ask: ToSite) -> Result<FromSite, String> {
        match ask {
            ToSite::Describe => self.describe(),
            ToSite::Enter(asked) => self.enter(*asked),
            ToSite::Look => self.look(),
            ToSite::Settings => self.settings(),
            ToSite::Machine => Ok(FromSite::Machine { used: self.machine.lap() }),
            ToSite::Start { entrant, load } => self.start(&entrant, load),
            ToSite::Of { contender, asks } => {
                let held = self.contenders.get_mut(&contender);
                let held = held.ok_or_else(|| format!("has no contender {contender}"))?;
                let answers: Vec<_> = asks.into_iter().map(|ask| held.answer(ask)).collect();
                if held.is_stopped() {
                    self.contenders.remove(&contender);
                }
                Ok(FromSite::Of(answers))
            }
        }
    }

    fn describe(&self) -> Result<FromSite, String> {
        let dir = env::current_dir()
            .map_err(|error| format!("cannot determine its working directory: {error}"))?;
        let (version, revision) = self.version;
        let setup = Box::new(read_setup(version, revision, Vec::new()));
        let address = env::var(CONNECTION).ok().and_then(|line| reached_at(&line));
        Ok(FromSite::Described { setup, dir, address, boot: boot() })
    }

    fn enter(&mut self, asked: Asked) -> Result<FromSite, String> {
        let server =
            asked.server.as_ref().ok_or("was asked for a race without a server machine")?;
        let host = server.address;
        check_address(host, server.one_machine)?;
        let entrants = Entrant::of_race(&asked).map_err(|error| error.to_string())?;
        for Entrant { name, contender, .. } in &entrants {
            if let Some(why) = contender.missing() {
                return Err(format!("cannot start {name}: {why}"));
            }
        }
        let fingerprint = fingerprint_of_contenders(&asked, &self.binary);
        let fingerprint = fingerprint.map_err(|error| format!("cannot run this race: {error}"))?;
        let files = Unchanged::since(&fingerprint, &self.binary);
        let files = files.map_err(|error| format!("cannot run this race: {error}"))?;
        self.contenders.clear();
        self.race = Some(Entered { asked, entrants, host, files, settings: Settings::read() });
        Ok(FromSite::Entered(Box::new(fingerprint)))
    }

    fn look(&mut self) -> Result<FromSite, String> {
        let race = self.race.as_mut().ok_or("has no race")?;
        let changed = |error| format!("has other programs than before: {error}");
        race.files.look().map_err(changed)?;
        Ok(FromSite::Unchanged)
    }

    fn settings(&mut self) -> Result<FromSite, String> {
        let race = self.race.as_mut().ok_or("has no race")?;
        let now = Settings::read();
        let changed = now.changed_since(&race.settings);
        race.settings = now;
        Ok(FromSite::Settings { changed })
    }

    fn start(&mut self, name: &str, load: LoadShape) -> Result<FromSite, String> {
        let Entered { asked, entrants, host, .. } = self.race.as_ref().ok_or("has no race")?;
        let entrant = entrants.iter().find(|entrant| entrant.name == name);
        let entrant = entrant.ok_or_else(|| format!("has no contender {name} in its race"))?;
        let how = StartHere { asked, binary: &self.binary, stop: &self.stop, host: *host };
        let started = start(how, entrant, load).map_err(|error| error.to_string())?;
        Ok(match started {
            Start::Ready(started) => {
                self.started += 1;
                let (port, nodes) = (started.port, started.nodes.clone());
                let held = Held::new(name, *started).reached_at(*host);
                self.contenders.insert(self.started, held);
                FromSite::Started { contender: self.started, port, nodes }
            }
            Start::Failed { because } => FromSite::NotStarted { because },
            Start::Interrupted => FromSite::Interrupted,
        })
    }
}

impl Site for AgentSite {
    fn answer(&mut self, ask: Value) -> Result<Value, String> {
        let wrong = |error: serde_json::Error| format!("was asked something unknown: {error}");
        let answer = self.carry_out(serde_json::from_value(ask).map_err(wrong)?)?;
        serde_json::to_value(answer).map_err(|error| format!("cannot write its answer: {error}"))
    }
}

/// The address by which a client reached this machine, from the line `CLIENT PORT ADDRESS PORT` of sshd.
fn reached_at(connection: &str) -> Option<IpAddr> {
    connection.split_whitespace().nth(2)?.parse().ok()
}

/// Checks that contenders which listen on `host` do so on this machine, and that the load does not look for them on
/// its own. The error is the rest of a sentence.
fn check_address(host: IpAddr, one_machine: bool) -> Result<(), String> {
    if host.is_loopback() && !one_machine {
        return Err(format!(
            "cannot be reached at {host}, by which every machine reaches itself: choose one of its own with \
             --server-address"
        ));
    }
    TcpListener::bind((host, 0)).map(drop).map_err(|error| {
        format!(
            "has no address {host} to listen on ({error}): choose one of its own with --server-address"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_of_this_machine_serves() {
        let check = |host: &str, one| check_address(host.parse().unwrap(), one);
        assert_eq!(check("127.0.0.1", true), Ok(()));
        assert!(check("127.0.0.1", false).unwrap_err().contains("cannot be reached at 127.0.0.1"));
        // Addresses for documentation (RFC 5737) belong to no machine.
        let error = check("192.0.2.9", true).unwrap_err();
        assert!(error.starts_with("has no address 192.0.2.9 to listen on ("), "{error}");
        assert!(error.ends_with("choose one of its own with --server-address"), "{error}");
    }

    #[test]
    fn sshd_says_by_which_address_the_machine_was_reached() {
        let of = |line| reached_at(line).map(|address| address.to_string());
        assert_eq!(of("10.0.0.1 50022 10.0.0.5 22").as_deref(), Some("10.0.0.5"));
        assert_eq!(of("fe80::1 50022 fe80::5 22").as_deref(), Some("fe80::5"));
        assert_eq!(of(""), None);
        assert_eq!(of("UNKNOWN 65535 UNKNOWN 65535"), None);
    }

    #[test]
    fn a_site_without_a_race_starts_nothing() {
        let mut site = AgentSite::new("/nowhere".into(), ("1", None), Arc::default());
        let start = ToSite::Start { entrant: "x".into(), load: LoadShape::closed(1, 1) };
        let mut ask = |ask: &ToSite| site.answer(serde_json::to_value(ask).unwrap());
        assert_eq!(ask(&start).unwrap_err(), "has no race");
        let of = ToSite::Of { contender: 1, asks: vec![] };
        assert_eq!(ask(&of).unwrap_err(), "has no contender 1");
        assert!(ask(&ToSite::Describe).unwrap()["described"]["dir"].is_string());
        assert!(site.answer("sail".into()).unwrap_err().contains("unknown variant `sail`"));
    }
}
