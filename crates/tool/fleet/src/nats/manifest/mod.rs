//! Manifests that start the agents of a fleet where machines are given out by a scheduler.
//!
//! - `kubernetes`: an Indexed Job with a pod for each agent, and the Secret with their files (pure).
//! - `slurm`: a batch script with a node for each agent (pure).
//!
//! Names of agents and of the fleet are words (`config::is_name`), because [`Members::read`] refuses others. All else
//! that comes from files and options is quoted, for YAML as JSON, for the shell by `shell_words`.

mod kubernetes;
mod slurm;

pub use kubernetes::{Kubernetes, Memory};
pub use slurm::Slurm;

use super::{
    config::{Config, File, cannot, host_and_port, is_loopback},
    targets::Targets,
};
use crate::error::Error;
use std::{fs, num::NonZeroU32, path::Path, time::Duration};

/// The name of an agent's file, where it is written anew.
const FILE: &str = "agent.toml";
/// The name of an agent's key there.
const KEY: &str = "agent.nk";
/// The name of the CA's certificate there.
const CA: &str = "ca.pem";

/// What the agents of a manifest do, as options of `regatta agent`.
#[derive(Clone, Debug)]
pub struct Limits {
    /// What they may load.
    pub targets: Vec<Targets>,
    /// Most requests per second of each.
    pub max_rate: Option<NonZeroU32>,
    /// Most connections of each.
    pub max_connections: Option<u64>,
    /// Longest session.
    pub max_session: Option<Duration>,
}

impl Limits {
    /// The options, without the agent's file.
    fn options(&self) -> Vec<String> {
        let targets: Vec<String> = self.targets.iter().map(Targets::to_string).collect();
        let mut options = vec![format!("--targets={}", targets.join(","))];
        options.extend(self.max_rate.map(|rate| format!("--max-rate={rate}/s")));
        options.extend(self.max_connections.map(|most| format!("--max-connections={most}")));
        options.extend(
            self.max_session.map(|most| format!("--max-session={}ms", most.as_millis().max(1))),
        );
        options
    }
}

/// The agents that a manifest starts, with the content of their files.
#[derive(Clone, Debug)]
pub struct Members {
    /// The word of the fleet.
    fleet: String,
    /// At least one, in the order of the leader's file.
    agents: Vec<Member>,
    /// The certificate of the CA, in PEM; `None` without TLS.
    ca: Option<String>,
    /// Whether the broker is on the machine of each agent.
    is_local: bool,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    /// Its file, with the names [`KEY`] and [`CA`] in it.
    file: String,
    seed: String,
}

impl Members {
    /// Reads the files of a fleet in the folder that [`init`](super::init()) has written. Without `only` it takes all
    /// agents of the leader's file.
    ///
    /// # Errors
    /// [`Error::Nats`]: what is wrong with a file, or which of `only` the leader does not know.
    pub fn read(folder: &Path, only: &[String]) -> Result<Members, Error> {
        let leader = Config::of_leader(&folder.join("leader.toml"))?;
        let names = chosen(&leader.agents, only)?;
        let mut agents = Vec::new();
        for name in names {
            let path = folder.join(format!("{name}.toml"));
            let agent = Config::of_agent(&path)?;
            if (&agent.name, agent.fleet(), &agent.broker) != (name, leader.fleet(), &leader.broker)
            {
                let path = path.display();
                return Err(Error::Nats(format!(
                    "{path} is not that of the agent {name} in the fleet of leader.toml"
                )));
            }
            let file = File {
                fleet: agent.fleet().to_owned(),
                broker: agent.broker,
                name: agent.name,
                key: KEY.into(),
                ca: leader.ca.is_some().then(|| CA.into()),
                agents: None,
            };
            let file = toml::to_string(&file);
            let file =
                file.map_err(|error| Error::Nats(format!("cannot encode {name}: {error}")))?;
            agents.push(Member { name: name.clone(), file, seed: agent.seed });
        }
        let ca = leader
            .ca
            .as_deref()
            .map(|path| fs::read_to_string(path).map_err(|error| cannot("read", path, &error)));
        let is_local = host_and_port(&leader.broker).is_ok_and(|(host, _)| is_loopback(&host));
        Ok(Members { fleet: leader.fleet().to_owned(), agents, ca: ca.transpose()?, is_local })
    }

    /// The name of what a manifest creates. Ends in no hyphen, and is at most 55 characters long.
    fn title(&self) -> String {
        format!("regatta-{}-agents", self.fleet)
    }
}

/// The agents `only`, or all, each once.
fn chosen<'a>(all: &'a [String], only: &'a [String]) -> Result<&'a [String], Error> {
    let names = if only.is_empty() { all } else { only };
    if names.is_empty() {
        return Err(Error::Nats("leader.toml lists no agents".into()));
    }
    for (number, name) in names.iter().enumerate() {
        if !all.contains(name) {
            let all = all.join(", ");
            return Err(Error::Nats(format!(
                "there is no agent {name:?}; leader.toml lists {all}"
            )));
        }
        if names[..number].contains(name) {
            return Err(Error::Nats(format!("the agent {name} is listed twice")));
        }
    }
    Ok(names)
}

/// The time as whole units of this many seconds, rounded up, at least one.
fn units(time: Duration, unit_s: u64) -> u64 {
    let unit = u128::from(unit_s) * 1_000_000_000;
    time.as_nanos().div_ceil(unit).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::{super::init, *};
    use std::path::PathBuf;
    use tempfile::TempDir;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// A fleet with the agents gen1 and gen2, whose broker is elsewhere.
    fn fleet() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet");
        init(&path, "10.0.0.9", &names(&["gen1", "gen2"])).unwrap();
        (folder, path)
    }

    #[track_caller]
    fn refused(path: &Path, only: &[&str]) -> String {
        let error = Members::read(path, &names(only)).unwrap_err().to_string();
        error.replace(&format!("{}/", path.display()), "")
    }

    #[test]
    fn members_are_those_of_the_leader_or_the_chosen_ones() {
        let (_folder, path) = fleet();
        let all = Members::read(&path, &[]).unwrap();
        let of = |members: &Members| -> Vec<String> {
            members.agents.iter().map(|agent| agent.name.clone()).collect()
        };
        assert_eq!(of(&all), ["gen1", "gen2"]);
        assert!(all.ca.unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        assert_eq!(of(&Members::read(&path, &names(&["gen2"])).unwrap()), ["gen2"]);
        assert_eq!(
            refused(&path, &["gen3"]),
            "there is no agent \"gen3\"; leader.toml lists gen1, gen2"
        );
        assert_eq!(refused(&path, &["gen1", "gen1"]), "the agent gen1 is listed twice");
    }

    #[test]
    fn a_file_of_another_agent_or_fleet_is_refused() {
        let (_folder, path) = fleet();
        let gen1 = fs::read_to_string(path.join("gen1.toml")).unwrap();
        fs::write(path.join("gen2.toml"), &gen1).unwrap();
        let expected = "gen2.toml is not that of the agent gen2 in the fleet of leader.toml";
        assert_eq!(refused(&path, &[]), expected);
        let other = gen1.replace("fleet = \"", "fleet = \"f");
        fs::write(path.join("gen1.toml"), other).unwrap();
        assert_eq!(refused(&path, &[]), expected.replace("gen2", "gen1"));
    }

    #[test]
    fn a_name_that_could_break_out_is_refused() {
        let (_folder, path) = fleet();
        let leader = fs::read_to_string(path.join("leader.toml")).unwrap();
        for name in ["gen1'; id; '", "gen1\\\"", "$(id)", "../gen1", "a\\nb: c"] {
            let agents = leader.replace("\"gen2\"", &format!("\"{name}\""));
            fs::write(path.join("leader.toml"), agents).unwrap();
            let error = refused(&path, &[]);
            assert!(error.starts_with("leader.toml has the name "), "{error}");
        }
    }

    #[test]
    fn limits_are_options_of_an_agent() {
        let targets = ["10.0.0.0/24:8000-8999", "[fd00::1]:80"].map(|text| text.parse().unwrap());
        let mut limits = Limits {
            targets: targets.to_vec(),
            max_rate: NonZeroU32::new(500_000),
            max_connections: Some(9),
            max_session: Some(Duration::from_secs(90)),
        };
        let expected = [
            "--targets=10.0.0.0/24:8000-8999,[fd00::1]:80",
            "--max-rate=500000/s",
            "--max-connections=9",
            "--max-session=90000ms",
        ];
        assert_eq!(limits.options(), expected);
        (limits.max_rate, limits.max_connections, limits.max_session) = (None, None, None);
        assert_eq!(limits.options(), expected[..1]);
    }

    #[test]
    fn a_time_is_rounded_up_to_whole_units() {
        let of = |ms: u64, unit_s| units(Duration::from_millis(ms), unit_s);
        assert_eq!([of(1, 1), of(1_000, 1), of(1_001, 1)], [1, 1, 2]);
        assert_eq!([of(60_000, 60), of(60_001, 60), of(86_400_000, 60)], [1, 2, 1_440]);
    }
}
