//! The URL of a broker.

use anyhow::{Context, bail, ensure};

/// The port of Redis and Valkey, and that of their Sentinels, unless the URL has one.
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Maximum number of Sentinels, which are all asked at once, and of nodes of a cluster.
const MOST: usize = 32;

/// What a URL may look like.
const EXPECTED: &str = "expected redis://HOST:PORT, or redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/MASTER, or \
                        redis+cluster://HOST:PORT,HOST:PORT,HOST:PORT, or for TLS the same with rediss";

/// What starts or ends the part of a URL that may have a password.
const SECRET: [char; 3] = ['@', '?', '#'];

/// A host name or an IP address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub host: String,
    pub port: u16,
}

/// What a URL says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerUrl {
    /// All are reached over TLS.
    pub is_tls: bool,
    pub target: Target,
}

/// What a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A server.
    Server(Server),
    /// The master of this name, as most of these Sentinels know it.
    Sentinels(Vec<Server>, String),
    /// The master of a slot of the cluster of these nodes.
    Cluster(Vec<Server>),
}

impl BrokerUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// Says what is wrong with it, without what may be a password.
    pub fn read(url: &str) -> anyhow::Result<BrokerUrl> {
        let shown = if url.contains(SECRET) { "" } else { url };
        let separator = if shown.is_empty() { "" } else { " " };
        read(url).with_context(|| format!("--broker{separator}{shown}: {EXPECTED}"))
    }
}

fn read(url: &str) -> anyhow::Result<BrokerUrl> {
    let (scheme, rest) = url.split_once("://").context("it has no scheme")?;
    ensure!(
        !url.contains(SECRET),
        "it has no user, password or query, because a URL is visible to others; use --broker-password-file"
    );
    let is_tls = scheme.starts_with("rediss");
    let target = match scheme {
        "redis" | "rediss" => {
            let rest = rest.strip_suffix('/').unwrap_or(rest);
            let hosts = rest.split('/').next().unwrap_or_default();
            ensure!(
                !hosts.contains(','),
                "several servers are possible only as Sentinels or as nodes of a cluster; write \
                 {scheme}+sentinel://{hosts}/MASTER or {scheme}+cluster://{hosts}"
            );
            ensure!(!rest.contains('/'), "channels are in no database, so the URL has no path");
            Target::Server(server(rest, PORT)?)
        }
        "redis+sentinel" | "rediss+sentinel" => sentinels(rest)?,
        "redis+cluster" | "rediss+cluster" => {
            let rest = rest.strip_suffix('/').unwrap_or(rest);
            ensure!(!rest.contains('/'), "a cluster has no databases, so the URL has no path");
            Target::Cluster(several(rest, PORT, "node")?)
        }
        _ => bail!("another scheme"),
    };
    Ok(BrokerUrl { is_tls, target })
}

fn sentinels(rest: &str) -> anyhow::Result<Target> {
    let (all, master) =
        rest.split_once('/').context("the name of the master follows the Sentinels")?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    ensure!(
        !master.is_empty() && master.bytes().all(is_name),
        "the name of a master has only letters, digits, `.`, `-` and `_`"
    );
    Ok(Target::Sentinels(several(all, SENTINEL_PORT, "Sentinel")?, master.to_owned()))
}

/// Parses servers that are separated by commas. A Sentinel has one vote, so none may be listed twice.
fn several(text: &str, port: u16, kind: &str) -> anyhow::Result<Vec<Server>> {
    let all = text.split(',').map(|one| server(one, port));
    let all = all.collect::<anyhow::Result<Vec<Server>>>()?;
    ensure!(all.len() <= MOST, "at most {MOST} are possible");
    for (place, one) in all.iter().enumerate() {
        ensure!(!all[..place].contains(one), "the {kind} {one} is listed twice");
    }
    Ok(all)
}

fn server(text: &str, port: u16) -> anyhow::Result<Server> {
    let (host, given) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').context("a port")?)),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    ensure!(!host.is_empty(), "it has no host");
    let port = given.map_or(Ok(port), |port| port.parse().context("a port from 1 to 65535"))?;
    ensure!(port != 0, "a port from 1 to 65535");
    Ok(Server { host: host.to_owned(), port })
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Server { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Server {
        Server { host: host.to_owned(), port }
    }

    #[test]
    fn a_url_names_a_server() {
        for (rest, host, port) in [
            ("10.0.0.1:6380", "10.0.0.1", 6380),
            ("broker.example/", "broker.example", 6379),
            ("[::1]:7000", "::1", 7000),
            ("[::1]", "::1", 6379),
        ] {
            for (scheme, is_tls) in [("redis", false), ("rediss", true)] {
                let expected = BrokerUrl { is_tls, target: Target::Server(at(host, port)) };
                assert_eq!(BrokerUrl::read(&format!("{scheme}://{rest}")).unwrap(), expected);
            }
        }
        assert_eq!(at("::1", 7).to_string(), "[::1]:7");
    }

    #[test]
    fn a_url_names_sentinels_and_a_master() {
        for (rest, all) in [
            ("a/m-1", vec![at("a", 26379)]),
            ("a:1,[::1]:2,c/m-1", vec![at("a", 1), at("::1", 2), at("c", 26379)]),
        ] {
            for (scheme, is_tls) in [("redis", false), ("rediss", true)] {
                let target = Target::Sentinels(all.clone(), "m-1".to_owned());
                let url = format!("{scheme}+sentinel://{rest}");
                assert_eq!(BrokerUrl::read(&url).unwrap(), BrokerUrl { is_tls, target });
            }
        }
    }

    #[test]
    fn a_url_names_nodes_of_a_cluster() {
        for (rest, all) in [
            ("a", vec![at("a", 6379)]),
            ("a:1,[::1]:2,c/", vec![at("a", 1), at("::1", 2), at("c", 6379)]),
        ] {
            for (scheme, is_tls) in [("redis", false), ("rediss", true)] {
                let target = Target::Cluster(all.clone());
                let url = format!("{scheme}+cluster://{rest}");
                assert_eq!(BrokerUrl::read(&url).unwrap(), BrokerUrl { is_tls, target });
            }
        }
    }

    #[test]
    fn wrong_urls_say_what_to_do() {
        for (url, why) in [
            ("localhost:6379", "it has no scheme"),
            ("http://localhost:6379", "another scheme"),
            ("redissss://a:1", "another scheme"),
            ("redis://:secret@a:1", "--broker-password-file"),
            ("redis://a:1?x=1", "--broker-password-file"),
            ("redis://a,b", "write redis+sentinel://a,b/MASTER"),
            ("rediss://a:1,b:2/m", "write rediss+sentinel://a:1,b:2/MASTER"),
            ("redis://a:1/2", "no path"),
            ("redis://a:0", "a port from 1 to 65535"),
            ("redis://a:x", "a port from 1 to 65535"),
            ("redis://", "it has no host"),
            ("redis+sentinel://a:1", "the name of the master follows"),
            ("redis+sentinel://a:1/", "the name of a master"),
            ("redis+sentinel://a:1/b c", "the name of a master"),
            ("redis+sentinel://a:1,/m", "it has no host"),
            ("redis+sentinel://a,a:26379/m", "the Sentinel a:26379 is listed twice"),
            ("redis+cluster://a:1/0", "no path"),
            ("redis+cluster://a:1,", "it has no host"),
            ("redis+cluster://a,a:6379", "the node a:6379 is listed twice"),
            ("redis+cluster://:secret@a:1", "--broker-password-file"),
        ] {
            let error = format!("{:#}", BrokerUrl::read(url).unwrap_err());
            assert!(error.contains(why) && error.contains("redis://HOST:PORT"), "{error}");
        }
    }

    #[test]
    fn an_error_does_not_repeat_a_password() {
        for url in [
            "redis://u:a-secret@a",
            "redis://a-secret@a:x",
            "redis://u:p@a-secret@a",
            "redis://a?password=a-secret",
            "redis://a/?password=x@a-secret",
            "redis+sentinel://a?password=a-secret,a?password=a-secret/m",
            "redis+sentinel://a/m#a-secret",
            "u:a-secret@redis://a",
            "http://u:a-secret@a",
            ":a-secret@a",
        ] {
            let error = format!("{:#}", BrokerUrl::read(url).unwrap_err());
            assert!(!error.contains("a-secret") && error.contains("redis://HOST:PORT"), "{error}");
        }
        let error = BrokerUrl::read("redis://a:x").unwrap_err().to_string();
        assert!(error.starts_with("--broker redis://a:x: expected"), "{error}");
    }
}
