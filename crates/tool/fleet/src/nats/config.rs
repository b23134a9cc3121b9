//! The files of a standing fleet: who a program is in it, and how to reach the broker.

use crate::error::Error;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, Permissions},
    io,
    net::IpAddr,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The port of a NATS server, unless the address has one.
const PORT: u16 = 4222;

/// `NAME.toml` and `leader.toml`. Paths are relative to the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The fleet, a word that no other fleet has.
    pub fleet: String,
    /// The broker, `HOST:PORT`.
    pub broker: String,
    /// Who this is: an agent, or `leader`.
    pub name: String,
    /// The file with the seed of its nkey.
    pub key: PathBuf,
    /// The file with the certificate that signed the broker's. Absent: no TLS, which is possible only for a broker
    /// on the same machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// All agents, for the leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
}

/// A place in a fleet.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// Who this is.
    pub name: String,
    /// The broker, `HOST:PORT`.
    pub broker: String,
    /// The seed of its nkey.
    pub seed: String,
    /// The file with the certificate of the CA.
    pub ca: Option<PathBuf>,
    /// All agents; empty for an agent.
    pub agents: Vec<String>,
    /// The first two words of all subjects.
    prefix: String,
}

impl Config {
    /// Reads the file of an agent.
    ///
    /// # Errors
    /// [`Error::Nats`]: what is wrong with the file, or the files that it names.
    pub fn of_agent(path: &Path) -> Result<Config, Error> {
        let file = read(path)?;
        match file.agents {
            None => Config::new(path, file),
            Some(_) => Err(wrong(path, "is that of a leader: an agent needs its own, NAME.toml")),
        }
    }

    /// Reads the file of a leader.
    ///
    /// # Errors
    /// As [`Config::of_agent`].
    pub fn of_leader(path: &Path) -> Result<Config, Error> {
        let file = read(path)?;
        match &file.agents {
            Some(_) => Config::new(path, file),
            None => Err(wrong(path, "is that of an agent: a load needs leader.toml")),
        }
    }

    fn new(path: &Path, file: File) -> Result<Config, Error> {
        let File { fleet, broker, name, key, ca, agents } = file;
        let agents = agents.unwrap_or_default();
        if let Some(name) = agents.iter().chain([&fleet, &name]).find(|name| !is_name(name)) {
            return Err(wrong(path, &format!("has the name {name:?}: {NAME}")));
        }
        let (host, _) = host_and_port(&broker).map_err(|what| wrong(path, &what))?;
        if ca.is_none() && !is_loopback(&host) {
            let what = format!("has no `ca`, but the broker {broker} is not on this machine");
            return Err(wrong(path, &what));
        }
        let beside = |file: &Path| path.parent().unwrap_or(Path::new("")).join(file);
        let seed = secret(&beside(&key))?;
        let ca = ca.map(|file| beside(&file));
        if let Some(ca) = &ca {
            fs::read(ca).map_err(|error| cannot("read", ca, &error))?;
        }
        Ok(Config { name, broker, seed, ca, agents, prefix: prefix(&fleet) })
    }

    /// The word of the fleet.
    pub fn fleet(&self) -> &str {
        self.prefix.strip_prefix(PREFIX).unwrap_or(&self.prefix)
    }

    /// What a leader sends to all processes with the name of an agent in a session. With the word of one of them after
    /// it, what only that one takes.
    pub fn down(&self, agent: &str, session: &str) -> String {
        format!("{}.a.{agent}.{session}", self.prefix)
    }

    /// What an agent sends in a session, or in answer to a question. `instance` is the word of its process, `*` for
    /// any.
    pub fn up(&self, agent: &str, session: &str, instance: &str) -> String {
        format!("{}.up.{agent}.{session}.{instance}", self.prefix)
    }

    /// The leader's question who is there.
    pub fn all(&self) -> String {
        format!("{}.all", self.prefix)
    }
}

/// What all subjects begin with.
const PREFIX: &str = "rg.";

/// The first two words of the subjects of a fleet.
pub(super) fn prefix(fleet: &str) -> String {
    format!("{PREFIX}{fleet}")
}

/// What a name is.
pub(super) const NAME: &str = "expected up to 40 lower-case letters, digits and hyphens, e.g. gen1";

/// Whether this is a name of an agent or a fleet. It is a word of a subject, and a part of file names.
pub(super) fn is_name(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=40).contains(&name.len()) && name.chars().all(is_good) && !name.starts_with('-')
}

/// Returns a word that nobody can guess: 64 random bits.
pub(super) fn token() -> Result<String, Error> {
    let mut bytes = [0; 8];
    let random = SystemRandom::new().fill(&mut bytes);
    random.map_err(|_| Error::Nats("the system has no random numbers".into()))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

/// Splits the address of a broker. Its port is optional.
///
/// # Errors
/// What was expected, as a clause.
pub(super) fn host_and_port(address: &str) -> Result<(String, u16), String> {
    let wrong = || {
        format!(
            "expected the address of a broker, e.g. 10.0.0.9 or broker.example:4222, got {address:?}"
        )
    };
    if let Ok(ip) = address.parse::<IpAddr>() {
        if ip.is_unspecified() {
            return Err(wrong());
        }
        return Ok((ip.to_string(), PORT));
    }
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
        None => (address, PORT),
    };
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_v6 = bracketed.is_some_and(|inner| inner.parse::<IpAddr>().is_ok());
    let is_unspecified = |host: &str| host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
    let is_host = is_v6 || is_v4_or_name(host);
    match is_host && port != 0 && !is_unspecified(bracketed.unwrap_or(host)) {
        true => Ok((bracketed.unwrap_or(host).to_owned(), port)),
        false => Err(wrong()),
    }
}

/// Whether this is an IPv4 address or the name of a host, whose last label is no number.
fn is_v4_or_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let has_hyphen = label.starts_with('-') || label.ends_with('-');
        !label.is_empty() && label.chars().all(is_good) && !has_hyphen
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.chars().all(|c| c.is_ascii_digit());
    match is_number {
        true => host.parse::<std::net::Ipv4Addr>().is_ok(),
        false => host.split('.').all(is_label),
    }
}

/// Whether a host is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

fn read(path: &Path) -> Result<File, Error> {
    if path.extension().is_some_and(|extension| extension == "nk") {
        return Err(wrong(path, "is a key: expected the file beside it, NAME.toml"));
    }
    let text = fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
    toml::from_str(&text).map_err(|error| {
        wrong(path, &format!("is no file of `regatta fleet init`: {}", error.message()))
    })
}

/// Reads a file that only its owner may read.
fn secret(path: &Path) -> Result<String, Error> {
    let fail = |error: &io::Error| cannot("read", path, error);
    let file = fs::metadata(path).map_err(|error| fail(&error))?;
    let mode = file.permissions().mode();
    if others_may_read(mode, file.uid(), geteuid().as_raw()) {
        let mode = Permissions::from_mode(mode).mode() & 0o777;
        let what = format!("may be read by others (mode {mode:o}): use chmod 600");
        return Err(wrong(path, &what));
    }
    Ok(fs::read_to_string(path).map_err(|error| fail(&error))?.trim().to_owned())
}

/// Whether others than `user` may read a file. As for the keys of PostgreSQL (`ssl_key_file`), the group may if root
/// owns the file and `user` is another one: Kubernetes gives a Secret to a container in this way.
fn others_may_read(mode: u32, owner: u32, user: u32) -> bool {
    let is_from_root = owner == 0 && user != 0;
    mode & if is_from_root { 0o037 } else { 0o077 } != 0
}

fn wrong(path: &Path, what: &str) -> Error {
    Error::Nats(format!("{} {what}", path.display()))
}

/// An error of the system with a file.
pub(super) fn cannot(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::Nats(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (address, host, port) in [
            ("10.0.0.9", "10.0.0.9", 4222),
            ("10.0.0.9:5000", "10.0.0.9", 5000),
            ("broker.example", "broker.example", 4222),
            ("::1", "::1", 4222),
            ("[fd00::9]:5000", "fd00::9", 5000),
        ] {
            assert_eq!(host_and_port(address), Ok((host.to_owned(), port)));
        }
        for address in [
            "",
            ":1",
            "a:b",
            "a b",
            "10.0.0.9:70000",
            "[x]:1",
            "nats://x",
            "10.0.0.9:0",
            "0.0.0.0",
            "[::]:1",
            "999.1.1.1",
            "a..b",
            "-",
            "localhost.",
        ] {
            let error = host_and_port(address).unwrap_err();
            assert!(error.ends_with(&format!("got {address:?}")), "{error}");
        }
    }

    #[test]
    fn this_machine_has_several_addresses() {
        assert!(["localhost", "127.0.0.2", "::1", "::ffff:127.0.0.1"].into_iter().all(is_loopback));
        assert!(!["10.0.0.9", "::ffff:10.0.0.9", "x"].into_iter().any(is_loopback));
    }

    #[test]
    fn names_are_words_of_subjects_and_of_file_names() {
        assert!(["gen1", "a-b", "0"].into_iter().all(is_name));
        let long = "a".repeat(41);
        assert!(!["", "a.b", "*", ">", "A", "a b", "../a", "-a", &long].into_iter().any(is_name));
    }

    #[test]
    fn the_group_may_read_a_key_only_if_root_gives_it_to_another_user() {
        for (mode, owner, user, expected) in [
            (0o100_600, 1000, 1000, false),
            (0o100_400, 0, 0, false),
            (0o100_440, 0, 1000, false),
            (0o100_640, 0, 1000, false),
            (0o100_440, 0, 0, true),
            (0o100_440, 1000, 1000, true),
            (0o100_440, 1000, 0, true),
            (0o100_460, 0, 1000, true),
            (0o100_444, 0, 1000, true),
        ] {
            assert_eq!(others_may_read(mode, owner, user), expected, "{mode:o} {owner} {user}");
        }
    }

    #[test]
    fn a_broker_elsewhere_needs_tls_and_a_key_of_ones_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gen1.toml");
        let key = folder.path().join("gen1.nk");
        let error = |text: &str| {
            fs::write(&path, text).unwrap();
            let error = Config::of_agent(&path).unwrap_err().to_string();
            error.replace(&format!("{}/", folder.path().display()), "")
        };
        let file = "fleet = \"f\"\nname = \"gen1\"\nkey = \"gen1.nk\"\n";
        let here = format!("{file}broker = \"127.0.0.1:4222\"\n");
        let of_key = Config::of_agent(&key).unwrap_err().to_string();
        assert!(of_key.ends_with("gen1.nk is a key: expected the file beside it, NAME.toml"));
        assert!(error("x = 1").starts_with("gen1.toml is no file of `regatta fleet init`: "));
        assert_eq!(
            error(&format!("{file}broker = \"10.0.0.9:4222\"\n")),
            "gen1.toml has no `ca`, but the broker 10.0.0.9:4222 is not on this machine"
        );
        assert!(error(&here).starts_with("cannot read gen1.nk: "));
        fs::write(&key, "SU\n").unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
        let expected = "gen1.nk may be read by others (mode 640): use chmod 600";
        assert_eq!(error(&here), expected);
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let leader = error(&format!("{here}agents = []\n"));
        assert!(leader.starts_with("gen1.toml is that of a leader"), "{leader}");
        let name = error(&here.replace("gen1\"\nkey", "a.*\"\nkey"));
        assert!(name.starts_with("gen1.toml has the name \"a.*\": expected "), "{name}");
        fs::write(&path, here).unwrap();
        let config = Config::of_agent(&path).unwrap();
        assert_eq!((config.seed.as_str(), config.agents.len()), ("SU", 0));
        assert_eq!(config.down("gen1", "5"), "rg.f.a.gen1.5");
        let error = Config::of_leader(&path).unwrap_err().to_string();
        assert!(error.ends_with("is that of an agent: a load needs leader.toml"), "{error}");
    }
}
