//! The broker of a hub: its URL, where it is (`names`), and its password.

mod names;

use crate::options::{renewed::Renewed, word::word};
use anyhow::{Context, bail, ensure};
use regatta_serve::{HubBroker, HubPassword, HubSettings};
use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    path::Path,
    sync::Arc,
};

/// The port of Redis and Valkey, unless the URL has one.
const PORT: u16 = 6379;
/// The prefix of channels, unless another one is given.
const PREFIX: &str = "regatta";
/// Maximum length of a prefix, in bytes.
const LONGEST_PREFIX: usize = 64;

/// The broker at this URL.
///
/// # Errors
/// Says what is wrong with the URL, the prefix or the file with the password.
pub fn broker(
    url: &str,
    (user, password): (Option<&str>, Option<&Path>),
    prefix: Option<&str>,
) -> anyhow::Result<HubBroker> {
    let (host, port) = host_and_port(url)
        .with_context(|| format!("--broker {url}: expected redis://HOST:PORT"))?;
    let prefix = prefix.unwrap_or(PREFIX);
    let is_word = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(
        is_word && prefix.len() <= LONGEST_PREFIX,
        "--broker-prefix {prefix:?}: expected 1 to {LONGEST_PREFIX} printable ASCII characters without spaces"
    );
    Ok(HubBroker {
        name: if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        },
        place: names::place(host, port),
        user: user.map(str::to_owned),
        password: password.map(renewed).transpose()?,
        prefix: prefix.to_owned(),
        node: RandomState::new().build_hasher().finish(),
        secret: RandomState::new().build_hasher().finish(),
        health: Arc::default(),
    })
}

/// The password in a file, which is read again when it changes: each connection gets the newest.
fn renewed(path: &Path) -> anyhow::Result<HubPassword> {
    let path = path.to_owned();
    let password =
        Renewed::read(vec![path.clone()], "password", move || word(&path, "password"))?;
    Ok(Arc::new(move || password.current()))
}

/// Checks that the settings of a hub are possible with a broker, if it has one.
///
/// # Errors
/// Says which option is not, and why.
pub fn check_with_broker(settings: &HubSettings) -> anyhow::Result<()> {
    if settings.broker.is_none() {
        return Ok(());
    }
    if settings.centrifuge {
        bail!(
            "--broker and --centrifuge: what a client of Centrifugo's protocol publishes reaches only the members of \
             its own hub; leave one out"
        );
    }
    let keeps = |kept: Option<usize>| kept.is_some_and(|kept| kept > 0);
    if settings.limits.history.are_kept() || settings.rooms.iter().any(|rule| keeps(rule.history)) {
        bail!(
            "--broker and --history: a hub keeps its history in its own memory, and hubs at one broker would give \
             the same message different offsets; leave one out"
        );
    }
    if settings.presence || settings.rooms.iter().any(|rule| rule.presence == Some(true)) {
        bail!(
            "--broker and --presence: a hub knows only its own members, so it would announce a wrong count; leave \
             one out"
        );
    }
    Ok(())
}

fn host_and_port(url: &str) -> anyhow::Result<(String, u16)> {
    if url.starts_with("rediss://") {
        bail!("TLS to the broker is not supported; use a private network or a tunnel");
    }
    let rest = url.strip_prefix("redis://").context("another scheme")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    ensure!(!rest.contains('@'), "a URL is visible to others; use --broker-password-file");
    ensure!(!rest.contains(['/', '?', '#']), "channels are in no database, so the URL has no path");
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').context("a port")?)),
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    ensure!(!host.is_empty(), "it has no host");
    let port = port.map_or(Ok(PORT), |port| port.parse().context("a port from 1 to 65535"))?;
    ensure!(port != 0, "a port from 1 to 65535");
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_host_and_a_port() {
        for (url, host, port) in [
            ("redis://10.0.0.1:6380", "10.0.0.1", 6380),
            ("redis://broker.example/", "broker.example", 6379),
            ("redis://[::1]:7000", "::1", 7000),
            ("redis://[::1]", "::1", 6379),
        ] {
            assert_eq!(host_and_port(url).unwrap(), (host.to_owned(), port), "{url}");
        }
        let broker = broker("redis://[::1]:7000", (None, None), None).unwrap();
        assert_eq!((&*broker.name, &*broker.prefix), ("[::1]:7000", "regatta"));
    }

    #[test]
    fn wrong_urls_say_what_to_do() {
        for (url, why) in [
            ("localhost:6379", "another scheme"),
            ("rediss://a:1", "use a private network or a tunnel"),
            ("redis://:secret@a:1", "--broker-password-file"),
            ("redis://a:1/2", "no path"),
            ("redis://a:0", "a port from 1 to 65535"),
            ("redis://a:x", "a port from 1 to 65535"),
            ("redis://", "it has no host"),
        ] {
            let error = format!("{:#}", broker(url, (None, None), None).unwrap_err());
            assert!(error.contains(why) && error.contains("redis://HOST:PORT"), "{error}");
        }
        for prefix in ["", "a b", "ä", &"x".repeat(65)] {
            assert!(broker("redis://a", (None, None), Some(prefix)).is_err(), "{prefix}");
        }
    }
}
