//! The kernel's information about what the server's end of a connection has read: sock_diag(7).
//!
//! A cut is effective only if the server has read the first part before the second is sent. The state
//! of the server's socket shows that; waiting for some time does not. sock_diag returns one socket.
//! `/proc/net/tcp` has the same information, but lists every connection that was closed in the last
//! minute, and a transcript with cuts leaves thousands of those.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketType, netlink::SOCK_DIAG, recv, send, socket,
};
use std::{
    net::SocketAddrV4,
    os::fd::OwnedFd,
    thread,
    time::{Duration, Instant},
};

const POLL_EVERY: Duration = Duration::from_micros(50);

// linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
const HEADER_BYTES: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const IPPROTO_TCP: u8 = 6;
const TCP_LISTEN: u8 = 10;
/// Offsets of the state (u8) and of the two queues (u32) in an `inet_diag_msg`.
const STATE_AT: usize = 1;
const RECEIVE_QUEUE_AT: usize = 56;
const SEND_QUEUE_AT: usize = 60;
/// `-ENOENT`: no such socket.
const NOT_FOUND: u32 = (-2i32).cast_unsigned();

/// Waits until the server has read everything that `client` sent to `server`, or has closed.
///
/// # Errors
/// The number of unread bytes at the deadline, or the reason why sock_diag failed.
pub fn wait_until_read(
    client: SocketAddrV4,
    server: SocketAddrV4,
    deadline: Instant,
) -> Result<(), String> {
    let diag = diag()?;
    loop {
        match queues(&diag, client, server)?.unread {
            0 => return Ok(()),
            bytes if Instant::now() >= deadline => {
                return Err(format!("the server left {bytes} bytes unread"));
            }
            _ => thread::sleep(POLL_EVERY),
        }
    }
}

/// The queues of the server's socket, in bytes. Both are 0 when that socket is gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queues {
    /// Bytes received and not read.
    pub unread: u32,
    /// Bytes written and not acknowledged.
    #[allow(dead_code)] // each test that includes this file uses its own part
    pub unacknowledged: u32,
}

/// Returns the queues of the server's socket.
///
/// # Errors
/// The reason why sock_diag failed.
#[allow(dead_code)] // as above
pub fn queues_now(client: SocketAddrV4, server: SocketAddrV4) -> Result<Queues, String> {
    queues(&diag()?, client, server)
}

fn diag() -> Result<OwnedFd, String> {
    socket(AddressFamily::NETLINK, SocketType::RAW, Some(SOCK_DIAG))
        .map_err(|e| format!("the kernel lacks sock_diag (CONFIG_INET_DIAG): {e}"))
}

fn queues(diag: &OwnedFd, client: SocketAddrV4, server: SocketAddrV4) -> Result<Queues, String> {
    send(diag, &request(client, server), SendFlags::empty()).map_err(|e| e.to_string())?;
    let mut reply = [0; 4096];
    let (_, length) = recv(diag, &mut reply[..], RecvFlags::empty()).map_err(|e| e.to_string())?;
    let reply = &reply[..length];
    let u32_at = |at: usize| {
        let bytes = reply.get(at..at + 4).ok_or("sock_diag sent a truncated message")?;
        Ok::<_, String>(u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
    };
    let kind = u32_at(4)? as u16;
    match kind {
        NLMSG_ERROR if u32_at(HEADER_BYTES)? == NOT_FOUND => Ok(Queues::default()),
        // If the connection is gone, the kernel returns the listener.
        SOCK_DIAG_BY_FAMILY if reply[HEADER_BYTES + STATE_AT] == TCP_LISTEN => {
            Ok(Queues::default())
        }
        SOCK_DIAG_BY_FAMILY => Ok(Queues {
            unread: u32_at(HEADER_BYTES + RECEIVE_QUEUE_AT)?,
            unacknowledged: u32_at(HEADER_BYTES + SEND_QUEUE_AT)?,
        }),
        _ => Err(format!("sock_diag: expected a socket, got {}", reply.escape_ascii())),
    }
}

/// Returns an `nlmsghdr` and an `inet_diag_req_v2` that request the socket at `server` with the peer
/// `client`.
fn request(client: SocketAddrV4, server: SocketAddrV4) -> Vec<u8> {
    const REQUEST_BYTES: usize = 56;
    const ANY_STATE: u32 = u32::MAX;
    const NO_COOKIE: u32 = u32::MAX;
    let mut message = Vec::with_capacity(HEADER_BYTES + REQUEST_BYTES);
    message.extend(((HEADER_BYTES + REQUEST_BYTES) as u32).to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend([0; 8]); // sequence number and sender: one request at a time
    message.extend([AF_INET, IPPROTO_TCP, 0, 0]);
    message.extend(ANY_STATE.to_ne_bytes());
    message.extend(server.port().to_be_bytes());
    message.extend(client.port().to_be_bytes());
    for end in [server, client] {
        message.extend(end.ip().octets());
        message.extend([0; 12]); // an address has room for IPv6
    }
    message.extend([0; 4]); // any interface
    message.extend([NO_COOKIE.to_ne_bytes(), NO_COOKIE.to_ne_bytes()].concat());
    message
}
