//! The broker of a hub: its URL, and its address now.

use anyhow::{Context, bail, ensure};
use regatta_serve::{HubBroker, HubSettings};
use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

/// The port of Redis and Valkey, unless the URL has one.
const PORT: u16 = 6379;
/// How often a name is resolved.
const EVERY: Duration = Duration::from_secs(5);
/// How long the first attempt to connect waits for the address.
const FIRST: Duration = Duration::from_millis(200);
/// The prefix of channels, unless another one is given.
const PREFIX: &str = "regatta";
/// Maximum length of a prefix, in bytes.
const LONGEST_PREFIX: usize = 64;

/// The broker at this URL.
///
/// # Errors
/// Says what is wrong with the URL or the prefix.
pub fn broker(
    url: &str,
    login: (Option<&str>, Option<String>),
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
    let (user, password) = login;
    Ok(HubBroker {
        name: if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        },
        address: address(host, port),
        user: user.map(str::to_owned),
        password,
        prefix: prefix.to_owned(),
        node: RandomState::new().build_hasher().finish(),
        secret: RandomState::new().build_hasher().finish(),
        health: Arc::default(),
    })
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

/// Returns the address of a host whenever it is asked. A thread that starts with the first question resolves the name
/// again and again, because brokers move.
fn address(host: String, port: u16) -> Arc<dyn Fn() -> Option<SocketAddr> + Send + Sync> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Arc::new(move || Some(SocketAddr::new(ip, port)));
    }
    let newest = Arc::new(Mutex::new(None));
    let first: Mutex<Option<Receiver<()>>> = Mutex::new(None);
    Arc::new(move || {
        let mut started = first.lock().unwrap_or_else(PoisonError::into_inner);
        if started.is_none() {
            let (found, receiver) = channel();
            let (newest, host) = (Arc::clone(&newest), host.clone());
            let resolve = move || follow(&host, port, &newest, &found);
            // Without a thread the broker is never connected, which is reported.
            thread::Builder::new().name("broker".into()).spawn(resolve).ok()?;
            _ = receiver.recv_timeout(FIRST);
            *started = Some(receiver);
        }
        *newest.lock().unwrap_or_else(PoisonError::into_inner)
    })
}

/// Resolves the name for as long as the process runs. An address that is known stays if the name cannot be resolved.
fn follow(host: &str, port: u16, newest: &Mutex<Option<SocketAddr>>, found: &Sender<()>) {
    loop {
        let address = (host, port).to_socket_addrs().ok().and_then(|mut all| all.next());
        if let Some(address) = address {
            *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
            _ = found.send(());
        }
        thread::sleep(EVERY);
    }
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
        assert_eq!((broker.address)(), Some("[::1]:7000".parse().unwrap()));
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

    #[test]
    fn a_name_is_resolved() {
        let broker = broker("redis://localhost:7000", (None, None), None).unwrap();
        let address = loop {
            if let Some(address) = (broker.address)() {
                break address;
            }
        };
        assert!(address.ip().is_loopback() && address.port() == 7000);
    }
}
