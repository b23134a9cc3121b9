//! The target of a load, from its URL and workload: server, host name and path.

use super::connect::ConnectArgs;
use anyhow::{Context, bail};
use regatta_script::{
    ProtocolInfo, Scheme, Workload,
    dialects::{ROWS, of_scheme},
};
use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
};

/// The target and the workload of a load.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server, unless it has a Unix socket.
    pub address: SocketAddr,
    /// The Unix socket of the server.
    pub unix: Option<PathBuf>,
    /// What is sent, and which replies are expected.
    pub workload: Workload,
    /// The host to send in requests, e.g. in the Host header.
    pub host: String,
    /// With TLS, the host name that the server's certificate must match.
    pub certified: Option<String>,
    /// The path for a built-in workload, if it replaces the workload's own.
    pub path: Option<String>,
}

impl Target {
    /// Combines `url` and `workload`. Without a workload, uses the default one of the URL's protocol.
    pub fn of(url: &str, workload: Option<&Workload>) -> anyhow::Result<Target> {
        Target::at(url, workload, &ConnectArgs::default())
    }

    /// Like [`Target::of`], with an address that may not be the URL's.
    pub fn at(
        url: &str,
        workload: Option<&Workload>,
        connect: &ConnectArgs,
    ) -> anyhow::Result<Target> {
        let Url { row, scheme, authority, target } = Url::parse(url)?;
        let path = (!target.is_empty()).then(|| with_slash(target));
        let workload = match workload {
            None => {
                Workload::usual(row.name, path.as_deref()).context("the URL has no protocol")?
            }
            Some(workload) => workload.clone(),
        };
        let of_workload = workload.protocol();
        if of_workload.name != row.name {
            let (name, scheme) = (workload.name(), of_workload.schemes[0].name);
            bail!("the workload {name} needs a URL of the form {scheme}://HOST:PORT");
        }
        let is_hub = workload.is_pushed();
        let with_port = scheme.port.map(|port| with_port(authority, port));
        let with_port = with_port.as_deref().unwrap_or(authority);
        let unix = connect.unix()?.map(Path::to_owned);
        Ok(Target {
            address: match &unix {
                Some(_) => SocketAddr::from(([0; 4], 0)),
                None => address(with_port, connect)?,
            },
            unix,
            workload,
            host: authority.to_owned(),
            certified: scheme.tls.then(|| without_port(authority).to_owned()),
            // Without a path in the URL, the workload's own path is used. `http://HOST/` counts as
            // having no path, but `ws://HOST/` means `/`, because a hub may be there.
            path: path.filter(|path| is_hub || path != "/"),
        })
    }
}

/// The parts of a URL.
#[derive(Clone, Copy, Debug)]
struct Url<'a> {
    row: ProtocolInfo,
    scheme: Scheme,
    /// Host and port.
    authority: &'a str,
    /// Path and query; may be empty.
    target: &'a str,
}

impl<'a> Url<'a> {
    fn parse(url: &'a str) -> anyhow::Result<Url<'a>> {
        let Some((scheme, rest)) = url.split_once("://") else {
            bail!("{url:?} is not a URL; expected {}", forms());
        };
        // The fragment after # is never sent to the server (RFC 3986, 3.5).
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let Some((row, scheme)) = of_scheme(&scheme.to_ascii_lowercase()) else {
            bail!("{scheme}:// is not supported yet; expected {}", forms());
        };
        if authority.contains('@') {
            bail!("{url:?} contains a user name, which is never sent; expected {}", row.url);
        }
        if without_port(authority).is_empty() {
            bail!("{url:?} has no host; expected {}", row.url);
        }
        if let Some(wrong) = target.chars().find(|c| !c.is_ascii_graphic()) {
            bail!("{wrong:?} is not allowed in the path of a URL; percent-encode it");
        }
        if !row.paths && !matches!(target, "" | "/") {
            bail!("{target:?}: a {} server has no paths; expected {}", row.name, row.url);
        }
        let target = if row.paths { target } else { "" };
        Ok(Url { row, scheme, authority, target })
    }
}

/// The supported forms of a URL.
pub fn forms() -> String {
    let forms: Vec<_> = ROWS.iter().map(|row| row.url).collect();
    match forms.split_last() {
        Some((last, others @ [_, ..])) => format!("{} or {last}", others.join(", ")),
        _ => forms.concat(),
    }
}

/// Adds the path `/` to a query without a path.
fn with_slash(target: &str) -> String {
    if target.starts_with('?') { format!("/{target}") } else { target.to_owned() }
}

/// The authority with its own port, or with `port` if it has none.
fn with_port(authority: &str, port: u16) -> String {
    let has_port = without_port(authority) != authority;
    if has_port { authority.to_owned() } else { format!("{authority}:{port}") }
}

/// The host of an authority.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // The colons of an IPv6 address are within brackets.
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

/// The address of `HOST:PORT`: the one given for it, or the one that it resolves to.
fn address(authority: &str, connect: &ConnectArgs) -> anyhow::Result<SocketAddr> {
    let host = without_port(authority);
    let Some(port) = authority[host.len()..].strip_prefix(':') else {
        bail!("{authority:?} has no port; expected HOST:PORT");
    };
    let Some(port) = port.parse().ok().filter(|port| *port > 0) else {
        bail!("{authority:?}: {port:?} is not a port; expected a number from 1 to 65535");
    };
    if let Some(address) = connect.address(host, port)? {
        return Ok(address);
    }
    let mut found =
        authority.to_socket_addrs().with_context(|| format!("cannot resolve {authority:?}"))?;
    found.next().with_context(|| format!("{authority:?} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target_of(url: &str, workload: Option<Workload>) -> Target {
        Target::of(url, workload.as_ref()).unwrap()
    }

    fn refused(url: &str, workload: Option<Workload>) -> String {
        Target::of(url, workload.as_ref()).unwrap_err().to_string()
    }

    #[test]
    fn reads_target_host_and_path_from_a_url() {
        let line = target_of("line://127.0.0.1:4000/", None);
        assert_eq!((line.address.port(), line.workload.name()), (4000, "double"));
        let http = target_of("HTTP://127.0.0.1?a=b#c", None);
        assert_eq!((http.address.port(), http.host.as_str()), (80, "127.0.0.1"));
        assert_eq!(http.path.as_deref(), Some("/?a=b"));
        let http = target_of("http://[::1]:8080/a", None);
        assert_eq!(
            (http.address.to_string(), http.host),
            ("[::1]:8080".into(), "[::1]:8080".into())
        );
        let https = target_of("https://127.0.0.1/", None);
        assert_eq!((https.address.port(), https.certified.as_deref()), (443, Some("127.0.0.1")));
        let https = target_of("https://[::1]:8443/", None);
        assert_eq!((https.address.port(), https.certified.as_deref()), (8_443, Some("[::1]")));
        assert_eq!(target_of("http://[::1]/a", None).address.to_string(), "[::1]:80");
    }

    #[test]
    fn a_built_in_workload_has_its_own_path_unless_the_url_has_one() {
        for (url, path) in [
            ("http://127.0.0.1:1", None),
            ("http://127.0.0.1:1/", None),
            ("http://127.0.0.1:1/hash.php", Some("/hash.php")),
        ] {
            let hash = target_of(url, Workload::parse("hash"));
            assert_eq!((hash.path.as_deref(), hash.workload.name()), (path, "hash"));
        }
    }

    #[test]
    fn refuses_invalid_urls_with_a_reason() {
        assert!(refused("127.0.0.1:80", None).contains("is not a URL"));
        assert!(refused("gopher://127.0.0.1:80", None).contains("gopher:// is not supported"));
        assert!(refused("line://127.0.0.1", None).contains("has no port"));
        assert!(refused("http://127.0.0.1:99999/", None).contains("\"99999\" is not a port"));
        assert!(refused("http://127.0.0.1:x/", None).contains("from 1 to 65535"));
        assert!(refused("line://127.0.0.1:0", None).contains("from 1 to 65535"));
        assert!(
            refused("http:///foo", None).contains("\"http:///foo\" has no host; expected http")
        );
        assert!(refused("line://:4000", None).contains("has no host"));
        assert!(refused("line://[::1]", None).contains("has no port"));
        assert!(refused("http://a@127.0.0.1/", None).contains("user"));
        assert!(refused("http://127.0.0.1/a b", None).contains("percent-encode it"));
        assert!(refused("line://127.0.0.1:1/a", None).contains("no paths"));
        assert!(refused("line://127.0.0.1:1", Workload::parse("hello")).contains("http://"));
        assert!(refused("http://127.0.0.1:1", Workload::parse("double")).contains("line://"));
    }
}
