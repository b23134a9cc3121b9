//! Reads the pages of a running service for those who operate it: `/metrics`, `/ready`.

use anyhow::{Context, bail, ensure};
use regatta_host::UntilDeadline;
use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

/// Maximum time to connect to an address, and then until the page is complete.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a page with its head, in bytes.
const LONGEST: u64 = 64 << 20;

/// Returns the status and the text of a page.
///
/// # Errors
/// The address is wrong, nobody answers over HTTP within 5 s, or the reply is incomplete.
pub fn fetch(address: &str, path: &str) -> anyhow::Result<(u16, String)> {
    let reply = ask(&connect(address)?, address, path)
        .with_context(|| format!("no reply from http://{address}{path}"))?;
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
    let first = head.lines().next().unwrap_or_default();
    let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let Some(status) = status else {
        bail!("http://{address}{path}: expected a reply over HTTP, got {first:?}");
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    ensure!(
        length.is_none_or(|length: usize| length == body.len()),
        "http://{address}{path}: the reply is incomplete"
    );
    Ok((status, body.to_owned()))
}

/// Connects to the first address of a name that accepts connections.
fn connect(address: &str) -> anyhow::Result<TcpStream> {
    let resolved = address
        .to_socket_addrs()
        .with_context(|| format!("{address}: expected HOST:PORT, e.g. 127.0.0.1:9121"))?;
    let mut connected = Err(anyhow::anyhow!("{address} has no address"));
    for one in resolved {
        connected = TcpStream::connect_timeout(&one, TIMEOUT)
            .with_context(|| format!("cannot connect to {one}"));
        if connected.is_ok() {
            break;
        }
    }
    connected
}

/// Sends the request, and returns the reply.
fn ask(stream: &TcpStream, address: &str, path: &str) -> io::Result<String> {
    let mut stream = UntilDeadline { stream, deadline: Instant::now() + TIMEOUT };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut reply = Vec::new();
    stream.take(LONGEST).read_to_end(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}
