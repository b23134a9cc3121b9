//! What the server's end of a connection has read, as the kernel sees it (`/proc/net/tcp`).
//!
//! A cut shows something only if the server has read the first part before the second is sent.
//! That is a condition of the server's socket, not a matter of waiting long enough.

use std::{
    fs,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

const POLL_EVERY: Duration = Duration::from_micros(100);

/// Waits until the server has read all that `client` sent to `server`, or has closed.
pub fn wait_until_read(
    client: SocketAddr,
    server: SocketAddr,
    deadline: Instant,
) -> Result<(), String> {
    loop {
        match unread(client, server)? {
            0 => return Ok(()),
            bytes if Instant::now() >= deadline => {
                return Err(format!("the server left {bytes} bytes unread"));
            }
            _ => thread::sleep(POLL_EVERY),
        }
    }
}

/// Bytes that arrived at the server's socket and were not read; 0 when that socket is gone.
fn unread(client: SocketAddr, server: SocketAddr) -> Result<u64, String> {
    let table = fs::read_to_string("/proc/net/tcp").map_err(|e| format!("/proc/net/tcp: {e}"))?;
    for line in table.lines().skip(1) {
        // sl local_address rem_address st tx_queue:rx_queue ..., all in hex: proc_net_tcp(5)
        let fields: Vec<_> = line.split_whitespace().take(5).collect();
        let [_, local, remote, _, queues] = fields[..] else { continue };
        if port(local) == Some(server.port()) && port(remote) == Some(client.port()) {
            let (_, receive) = queues.split_once(':').unwrap_or_default();
            return u64::from_str_radix(receive, 16)
                .map_err(|e| format!("/proc/net/tcp: expected a queue length, got {line:?}: {e}"));
        }
    }
    Ok(0)
}

fn port(address: &str) -> Option<u16> {
    u16::from_str_radix(address.split_once(':')?.1, 16).ok()
}
