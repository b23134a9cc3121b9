//! Lists of the kernel, by netlink(7).

use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, recv, send, socket};
use std::io::{self, ErrorKind};

// linux/netlink.h
const HEADER_BYTES: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST_DUMP: u16 = 0x301;

/// Requests a list from a family of netlink, or from rtnetlink (`None`): `body` is what follows the `nlmsghdr`. `each` gets the body of each message.
///
/// # Errors
/// If the kernel lacks or forbids it, or `each` fails.
pub(crate) fn dump(
    protocol: Option<Protocol>,
    kind: u16,
    body: &[u8],
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let netlink = socket(AddressFamily::NETLINK, SocketType::RAW, protocol)?;
    send(&netlink, &request(kind, body), SendFlags::empty())?;
    let mut bytes = vec![0; 64 << 10];
    loop {
        let (_, length) = recv(&netlink, &mut bytes[..], RecvFlags::empty())?;
        let mut messages = bytes.get(..length).ok_or(ErrorKind::InvalidData)?;
        while !messages.is_empty() {
            let length = u32_at(messages, 0)? as usize;
            match u32_at(messages, 4)? as u16 {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => {
                    let errno = (u32_at(messages, HEADER_BYTES)? as i32).wrapping_neg();
                    return Err(io::Error::from_raw_os_error(errno));
                }
                _ => {
                    let message = messages.get(HEADER_BYTES..length);
                    each(message.ok_or(ErrorKind::InvalidData)?)?;
                }
            }
            // Messages start at multiples of four bytes.
            messages =
                messages.get(length.next_multiple_of(4).max(HEADER_BYTES)..).unwrap_or_default();
        }
    }
}

fn request(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = HEADER_BYTES + body.len();
    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    message.extend([0; 8]); // sequence number and sender: one request per socket
    message.extend(body);
    message
}

/// The number at a place of a message, in the byte order of this machine.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk());
    Ok(u32::from_ne_bytes(*four.ok_or(ErrorKind::InvalidData)?))
}
