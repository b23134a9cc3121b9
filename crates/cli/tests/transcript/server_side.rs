//! What the server's end of a connection has read, as the kernel sees it (sock_diag(7)).
//!
//! A cut shows something only if the server has read the first part before the second is sent.
//! That is a condition of the server's socket, not a matter of waiting long enough. The kernel is
//! asked for that one socket: /proc/net/tcp tells the same, but lists every socket that lingers.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
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
    let flags = SocketFlags::CLOEXEC;
    let kernel =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))
            .map_err(|e| format!("expected a sock_diag socket, got {e}"))?;
    loop {
        send(&kernel, &request(server, client), SendFlags::empty())
            .map_err(|e| format!("expected to ask for a socket, got {e}"))?;
        let mut reply = [0; 512];
        let (length, _) = recv(&kernel, &mut reply, RecvFlags::empty())
            .map_err(|e| format!("expected to be told of a socket, got {e}"))?;
        match unread(&reply[..length])? {
            0 => return Ok(()),
            bytes if Instant::now() >= deadline => {
                return Err(format!("the server left {bytes} bytes unread"));
            }
            _ => thread::sleep(POLL_EVERY),
        }
    }
}

/// `nlmsghdr` and `inet_diag_req_v2` (linux/inet_diag.h) for one socket.
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const AF_INET: u8 = 2;
    const IPPROTO_TCP: u8 = 6;
    let mut message = Vec::new();
    message.extend(72u32.to_ne_bytes()); // length of the whole
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend([0; 8]); // sequence number, sender
    message.extend([AF_INET, IPPROTO_TCP, 0, 0]);
    message.extend(u32::MAX.to_ne_bytes()); // in any state
    message.extend(local.port().to_be_bytes());
    message.extend(remote.port().to_be_bytes());
    for addr in [local, remote] {
        let IpAddr::V4(ip) = addr.ip() else { panic!("transcripts are played over IPv4") };
        message.extend(ip.octets());
        message.extend([0; 12]);
    }
    message.extend([0; 4]); // any interface
    message.extend([0xff; 8]); // no cookie
    message
}

/// Bytes that arrived at the socket and were not read; 0 when it is gone.
fn unread(reply: &[u8]) -> Result<u32, String> {
    let number = |at: usize| {
        reply.get(at..at + 4).map(|b| u32::from_ne_bytes(b.try_into().expect("four bytes")))
    };
    const NLMSG_ERROR: u16 = 2;
    const ENOENT: i32 = 2;
    let kind = number(4).ok_or("a reply without a header")? as u16;
    if kind == NLMSG_ERROR {
        let error = -(number(16).ok_or("an error without a number")? as i32);
        return if error == ENOENT {
            Ok(0)
        } else {
            Err(io::Error::from_raw_os_error(error).to_string())
        };
    }
    // After the header: four bytes of state, 48 of address, and the timer; then the queue.
    number(72).ok_or_else(|| "a reply without a queue length".into())
}
