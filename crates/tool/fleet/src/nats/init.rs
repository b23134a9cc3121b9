//! `regatta fleet init`: the files of a standing fleet.

use super::config::{File, NAME, cannot, host_and_port, is_loopback, is_name, prefix, token};
use crate::error::Error;
use nkeys::KeyPair;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer};
use std::{
    ffi::OsString,
    fs::{self, DirBuilder, OpenOptions},
    io::Write,
    net::IpAddr,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The name of the leader.
const LEADER: &str = "leader";
/// Where the files are written, inside the folder of the fleet, before they are moved there.
const UNFINISHED: &str = ".unfinished";
/// Most agents of a fleet: as many as a load may have.
const MOST: usize = 64;

/// Writes the files of a fleet into a new folder: `nats.conf` for the broker, and for the leader and each agent its
/// file, `NAME.toml`, and the seed of its nkey, `NAME.nk`. Unless the broker is on this machine, also a CA
/// (`ca.pem`), and its certificate of the broker (`broker.pem`, `broker.key`). The CA's key is not kept. If this fails
/// or is interrupted, it can be repeated: files appear in the folder when all are written.
///
/// # Errors
/// [`Error::Nats`] if an argument is wrong, the folder is not empty, or a file cannot be written.
pub fn init(folder: &Path, broker: &str, agents: &[String]) -> Result<(), Error> {
    let (host, port) = host_and_port(broker).map_err(Error::Nats)?;
    check(agents)?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| cannot("create", folder, &error))?;
    if let Some(other) = files(folder)?.into_iter().find(|name| name != UNFINISHED) {
        return Err(Error::Nats(format!(
            "{} is not empty, it has {}: expected a new folder, because new keys would lock out the agents of an \
             earlier fleet",
            folder.display(),
            Path::new(&other).display()
        )));
    }
    let unfinished = folder.join(UNFINISHED);
    if unfinished.exists() {
        let removed = fs::remove_dir_all(&unfinished);
        removed.map_err(|error| cannot("remove", &unfinished, &error))?;
    }
    let made = DirBuilder::new().mode(0o700).create(&unfinished);
    made.map_err(|error| cannot("create", &unfinished, &error))?;
    write_all(&unfinished, (&host, port), agents)?;
    for name in files(&unfinished)? {
        let (from, to) = (unfinished.join(&name), folder.join(&name));
        fs::rename(from, &to).map_err(|error| cannot("write", &to, &error))?;
    }
    fs::remove_dir(&unfinished).map_err(|error| cannot("remove", &unfinished, &error))
}

/// The names of the files in a folder.
fn files(folder: &Path) -> Result<Vec<OsString>, Error> {
    let read = fs::read_dir(folder);
    let names = read.and_then(|files| files.map(|file| Ok(file?.file_name())).collect());
    names.map_err(|error| cannot("read", folder, &error))
}

fn write_all(folder: &Path, (host, port): (&str, u16), agents: &[String]) -> Result<(), Error> {
    let tls = !is_loopback(host);
    if tls {
        write_certificates(folder, host)?;
    }
    let fleet = token()?;
    let mut users = Vec::new();
    for name in agents.iter().map(String::as_str).chain([LEADER]) {
        let key = KeyPair::new_user();
        let seed =
            key.seed().map_err(|error| Error::Nats(format!("cannot make a key: {error}")))?;
        let seed_file = PathBuf::from(format!("{name}.nk"));
        write(folder, &seed_file, &format!("{seed}\n"), 0o600)?;
        let file = File {
            fleet: fleet.clone(),
            broker: address(host, port),
            name: name.to_owned(),
            key: seed_file,
            ca: tls.then(|| "ca.pem".into()),
            agents: (name == LEADER).then(|| agents.to_vec()),
        };
        let text = toml::to_string(&file);
        let text = text.map_err(|error| Error::Nats(format!("cannot encode {name}: {error}")))?;
        write(folder, format!("{name}.toml").as_ref(), &text, 0o644)?;
        users.push((name, key.public_key()));
    }
    let text = broker_config(&fleet, (host, port), tls, &users);
    write(folder, "nats.conf".as_ref(), &text, 0o600)
}

fn check(agents: &[String]) -> Result<(), Error> {
    if agents.is_empty() || agents.len() > MOST {
        return Err(Error::Nats(format!("expected 1 to {MOST} agents, got {}", agents.len())));
    }
    for (number, name) in agents.iter().enumerate() {
        if !is_name(name) || name == LEADER {
            return Err(Error::Nats(format!("{NAME}, except {LEADER}; got {name:?}")));
        }
        if agents[..number].contains(name) {
            return Err(Error::Nats(format!("the agent {name} is listed twice")));
        }
    }
    Ok(())
}

/// An address as the client reads it.
fn address(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// The configuration of the broker. Everything is forbidden that is not permitted here: an agent receives what the
/// leader sends to it, and sends what only the leader receives.
fn broker_config(
    fleet: &str,
    (host, port): (&str, u16),
    tls: bool,
    users: &[(&str, String)],
) -> String {
    let prefix = prefix(fleet);
    // The address may be one that is not the broker's own, e.g. behind NAT.
    let listens = match host.parse::<IpAddr>() {
        Ok(_) if is_loopback(host) => host,
        Err(_) if is_loopback(host) => "127.0.0.1",
        Ok(IpAddr::V6(_)) => "::",
        Ok(IpAddr::V4(_)) | Err(_) => "0.0.0.0",
    };
    let mut text = format!(
        "# The broker of a fleet, written by `regatta fleet init`. Start it in this folder:\n\
         #     nats-server -c nats.conf\n\
         listen: \"{}\"\n\
         ping_interval: \"2s\"\n",
        address(listens, port)
    );
    if tls {
        text += "tls {\n  cert_file: \"broker.pem\"\n  key_file: \"broker.key\"\n}\n";
    }
    text += "authorization {\n  users = [\n";
    for (name, key) in users {
        let (sends, receives) = match *name {
            LEADER => (format!("\"{prefix}.a.>\", \"{prefix}.all\""), format!("\"{prefix}.up.>\"")),
            agent => (
                format!("\"{prefix}.up.{agent}.>\""),
                format!("\"{prefix}.a.{agent}.>\", \"{prefix}.all\""),
            ),
        };
        text += &format!(
            "    # {name}\n    {{\n      nkey: \"{key}\"\n      permissions: {{\n        \
             publish: {{ allow: [{sends}] }}\n        subscribe: {{ allow: [{receives}] }}\n      }}\n    }}\n"
        );
    }
    text + "  ]\n}\n"
}

/// Makes a CA, and a certificate of the broker for this host.
fn write_certificates(folder: &Path, host: &str) -> Result<(), Error> {
    let fail = |error: rcgen::Error| Error::Nats(format!("cannot make a certificate: {error}"));
    let mut params = CertificateParams::new(Vec::new()).map_err(fail)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.distinguished_name.push(DnType::CommonName, "regatta fleet");
    let key = rcgen::KeyPair::generate().map_err(fail)?;
    let ca = params.self_signed(&key).map_err(fail)?;
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(fail)?;
    params.distinguished_name.push(DnType::CommonName, "broker");
    let key = rcgen::KeyPair::generate().map_err(fail)?;
    let broker = params.signed_by(&key, &issuer).map_err(fail)?;
    write(folder, "ca.pem".as_ref(), &ca.pem(), 0o644)?;
    write(folder, "broker.pem".as_ref(), &broker.pem(), 0o644)?;
    write(folder, "broker.key".as_ref(), &key.serialize_pem(), 0o600)
}

fn write(folder: &Path, name: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let path = folder.join(name);
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| cannot("write", &path, &error))
}

#[cfg(test)]
mod tests {
    use super::{super::config::Config, *};
    use std::os::unix::fs::PermissionsExt;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn modes(folder: &Path) -> Vec<(String, u32)> {
        let files = fs::read_dir(folder).unwrap().map(|file| {
            let file = file.unwrap();
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            (file.file_name().into_string().unwrap(), mode)
        });
        let mut files: Vec<_> = files.collect();
        files.sort_unstable();
        files
    }

    #[test]
    fn a_fleet_on_this_machine_needs_no_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/fleet");
        init(&path, "127.0.0.1", &names(&["gen1", "gen2"])).unwrap();
        let expected = [
            ("gen1.nk", 0o600),
            ("gen1.toml", 0o644),
            ("gen2.nk", 0o600),
            ("gen2.toml", 0o644),
            ("leader.nk", 0o600),
            ("leader.toml", 0o644),
            ("nats.conf", 0o600),
        ];
        assert_eq!(modes(&path), expected.map(|(name, mode)| (name.to_owned(), mode)));
        let leader = Config::of_leader(&path.join("leader.toml")).unwrap();
        assert_eq!((leader.agents, leader.ca), (names(&["gen1", "gen2"]), None));
        let agent = Config::of_agent(&path.join("gen2.toml")).unwrap();
        assert_eq!((agent.name.as_str(), agent.broker.as_str()), ("gen2", "127.0.0.1:4222"));
        let key = KeyPair::from_seed(&agent.seed).unwrap().public_key();
        let config = fs::read_to_string(path.join("nats.conf")).unwrap();
        assert!(config.contains(&format!("# gen2\n    {{\n      nkey: \"{key}\"")), "{config}");
        assert_ne!(agent.seed, leader.seed);
    }

    #[test]
    fn a_fleet_over_a_network_has_a_ca_and_a_certificate_of_the_broker() {
        let folder = tempfile::tempdir().unwrap();
        init(folder.path(), "10.0.0.9:5000", &names(&["gen1"])).unwrap();
        let more = modes(folder.path());
        for (name, mode) in [("ca.pem", 0o644), ("broker.pem", 0o644), ("broker.key", 0o600)] {
            assert!(more.contains(&(name.to_owned(), mode)), "{more:?}");
        }
        let agent = Config::of_agent(&folder.path().join("gen1.toml")).unwrap();
        assert_eq!(agent.ca, Some(folder.path().join("ca.pem")));
        let config = fs::read_to_string(folder.path().join("nats.conf")).unwrap();
        assert!(config.contains("listen: \"0.0.0.0:5000\"\n"), "{config}");
        assert!(config.contains("cert_file: \"broker.pem\""), "{config}");
    }

    #[test]
    fn the_broker_permits_only_what_each_needs() {
        let users = [("gen1", "UA".to_owned()), ("leader", "UL".to_owned())];
        let text = broker_config("f00", ("broker.example", 4222), false, &users);
        assert!(text.contains("listen: \"0.0.0.0:4222\"\n"), "{text}");
        let (_, text) = text.split_once("authorization").unwrap();
        let expected = " {\n  users = [\n    # gen1\n    {\n      nkey: \"UA\"\n      permissions: {\n        \
             publish: { allow: [\"rg.f00.up.gen1.>\"] }\n        \
             subscribe: { allow: [\"rg.f00.a.gen1.>\", \"rg.f00.all\"] }\n      }\n    }\n    \
             # leader\n    {\n      nkey: \"UL\"\n      permissions: {\n        \
             publish: { allow: [\"rg.f00.a.>\", \"rg.f00.all\"] }\n        \
             subscribe: { allow: [\"rg.f00.up.>\"] }\n      }\n    }\n  ]\n}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn wrong_arguments_are_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet");
        let error = |agents: &[&str], broker: &str| {
            init(&path, broker, &names(agents)).unwrap_err().to_string()
        };
        assert_eq!(error(&[], "127.0.0.1"), "expected 1 to 64 agents, got 0");
        assert!(error(&["a.b"], "127.0.0.1").ends_with("except leader; got \"a.b\""));
        assert!(error(&["leader"], "127.0.0.1").ends_with("except leader; got \"leader\""));
        assert_eq!(error(&["a", "a"], "127.0.0.1"), "the agent a is listed twice");
        assert!(error(&["a"], "nats://x").starts_with("expected the address of a broker"));
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), "").unwrap();
        let expected = "fleet is not empty, it has x: expected a new folder";
        assert!(error(&["a"], "127.0.0.1").contains(expected));
    }

    #[test]
    fn one_that_was_interrupted_does_not_block_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet");
        // What is there if a file cannot be written, or the program is killed.
        fs::create_dir_all(path.join(UNFINISHED)).unwrap();
        fs::write(path.join(UNFINISHED).join("gen1.nk"), "old").unwrap();
        init(&path, "127.0.0.1", &names(&["gen1"])).unwrap();
        assert_eq!(modes(&path).len(), 5, "{:?}", modes(&path));
        assert_eq!(Config::of_agent(&path.join("gen1.toml")).unwrap().name, "gen1");
    }
}
