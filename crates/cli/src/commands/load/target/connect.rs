//! Where a load connects to, if not to the address that the URL resolves to.

use anyhow::{Context, bail};
use std::{
    fs,
    net::{IpAddr, SocketAddr},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// Options that replace the address of the URL. Requests and certificates still have its host.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConnectArgs {
    /// Connect to this address if the URL has this host and port, e.g. example.com:443:127.0.0.1
    /// (repeatable). Requests, and the check of the certificate, still have the host of the URL
    #[arg(long, value_parser = resolve, value_name = "HOST:PORT:ADDRESS")]
    resolve: Vec<Resolve>,
    /// Connect to this Unix socket. The URL still gives the protocol, the host in requests and the path;
    /// it needs no port
    #[arg(long, value_name = "PATH", conflicts_with_all = ["resolve", "slow"])]
    pub unix_socket: Option<PathBuf>,
}

/// An address for a host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resolve {
    host: String,
    port: u16,
    address: IpAddr,
}

/// Parses `HOST:PORT:ADDRESS`; IPv6 addresses may have brackets.
fn resolve(text: &str) -> Result<Resolve, String> {
    let form = "expected HOST:PORT:ADDRESS with an IP address, e.g. example.com:443:127.0.0.1";
    let after_host = match text.strip_prefix('[') {
        Some(rest) => rest.find(']').map(|end| end + 2),
        None => text.find(':'),
    };
    let (host, rest) = text.split_at(after_host.filter(|at| *at <= text.len()).ok_or(form)?);
    let (port, address) =
        rest.strip_prefix(':').and_then(|rest| rest.split_once(':')).ok_or(form)?;
    let bare = address.strip_prefix('[').and_then(|address| address.strip_suffix(']'));
    let port = port.parse().ok().filter(|port| *port > 0);
    let address = bare.unwrap_or(address).parse().ok();
    match (port, address) {
        (Some(port), Some(address)) if !host.is_empty() => {
            Ok(Resolve { host: host.to_ascii_lowercase(), port, address })
        }
        _ => Err(form.into()),
    }
}

impl ConnectArgs {
    /// The address for this host and port; `None` if the URL is to be resolved.
    ///
    /// # Errors
    /// If addresses were given, but only for other hosts and ports.
    pub fn address(&self, host: &str, port: u16) -> anyhow::Result<Option<SocketAddr>> {
        let is_for = |one: &&Resolve| one.host.eq_ignore_ascii_case(host) && one.port == port;
        match (self.resolve.iter().find(is_for), self.resolve.first()) {
            (Some(found), _) => Ok(Some(SocketAddr::new(found.address, port))),
            (None, Some(Resolve { host: other, port: others, .. })) => bail!(
                "--resolve is for {other}:{others}, but the URL has {host}:{port}; write \
                 --resolve {host}:{port}:ADDRESS"
            ),
            (None, None) => Ok(None),
        }
    }

    /// The Unix socket, if one was given.
    ///
    /// # Errors
    /// If there is no socket at that path.
    pub fn unix(&self) -> anyhow::Result<Option<&Path>> {
        let Some(path) = self.unix_socket.as_deref() else { return Ok(None) };
        let shown = path.display();
        let found = fs::metadata(path).with_context(|| format!("--unix-socket {shown}"))?;
        if !found.file_type().is_socket() {
            bail!("--unix-socket {shown}: expected a socket, found another kind of file");
        }
        Ok(Some(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_hosts_ports_and_addresses_of_both_families() {
        for (text, host, port, address) in [
            ("Example.com:443:127.0.0.1", "example.com", 443, "127.0.0.1"),
            ("a:1:::1", "a", 1, "::1"),
            ("a:1:[::1]", "a", 1, "::1"),
            ("[::1]:80:10.0.0.1", "[::1]", 80, "10.0.0.1"),
        ] {
            let expected = Resolve { host: host.into(), port, address: address.parse().unwrap() };
            assert_eq!(resolve(text), Ok(expected), "{text}");
        }
        for text in
            ["", "a", "a:1", "a:0:1.2.3.4", "a:99999:1.2.3.4", ":1:1.2.3.4", "a:1:b", "[::1"]
        {
            assert!(resolve(text).unwrap_err().contains("expected HOST:PORT:ADDRESS"), "{text}");
        }
    }

    #[test]
    fn an_address_for_another_host_is_an_error() {
        let args =
            ConnectArgs { resolve: vec![resolve("a:1:127.0.0.1").unwrap()], unix_socket: None };
        assert_eq!(args.address("A", 1).unwrap(), Some("127.0.0.1:1".parse().unwrap()));
        let error = args.address("b", 1).unwrap_err().to_string();
        assert!(error.contains("--resolve b:1:ADDRESS"), "{error}");
        assert_eq!(ConnectArgs::default().address("b", 1).unwrap(), None);
    }
}
