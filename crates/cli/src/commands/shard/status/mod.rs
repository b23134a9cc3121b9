//! `regatta shard status`: the state of a running proxy, from the page with its metrics.

mod page;
mod state;

use crate::{exit::Outcome, output};
use anyhow::{Context, bail, ensure};
use state::State;
use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

/// Maximum time to connect to an address, and then until the page is complete.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of the page, in bytes.
const LONGEST: usize = 64 << 20;

/// Show the state of a running proxy, from its metrics
///
/// Prints clients, requests, errors, and for each node whether it is up, its replies and errors, and how long it takes.
/// The exit status is 0 if all nodes are up, 1 if one is down, and 2 if the proxy does not answer.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The address of the metrics (--metrics of the proxy)
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// Print the state as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the state.
pub fn run(args: &StatusArgs) -> anyhow::Result<Outcome> {
    let address = &args.address;
    let page = fetch(address)?;
    let Some(state) = State::read(&page) else {
        bail!("http://{address}/metrics is not the page of a shard proxy");
    };
    if args.json {
        output::print(&(serde_json::to_string_pretty(&state)? + "\n"))?;
    } else {
        output::print(&state.to_string())?;
    }
    Ok(if state.is_up() { Outcome::Success } else { Outcome::Failure })
}

/// Returns the page with the metrics.
fn fetch(address: &str) -> anyhow::Result<String> {
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
    let mut stream = connected?;
    let reply = ask(&mut stream, address)
        .with_context(|| format!("no reply from http://{address}/metrics"))?;
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
    let status = head.lines().next().unwrap_or_default();
    ensure!(
        status.starts_with("HTTP/1.1 200 "),
        "http://{address}/metrics: expected the status 200, got {status:?}"
    );
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    ensure!(
        length.is_none_or(|length: usize| length == body.len()),
        "http://{address}/metrics: the reply is incomplete"
    );
    Ok(body.to_owned())
}

/// Sends the request, and returns the reply.
fn ask(stream: &mut TcpStream, address: &str) -> io::Result<String> {
    let deadline = Instant::now() + TIMEOUT;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let (mut reply, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    while reply.len() < LONGEST {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => reply.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&reply).into_owned())
}
