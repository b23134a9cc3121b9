//! TCP ports on 127.0.0.1: a free one, and whether somebody listens on one.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

/// A port on which nobody listens, chosen by the kernel. Nothing keeps it free: start the server
/// on it soon.
pub fn free_port() -> io::Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr().map(|address| address.port())
}

/// Whether a socket listens on `port`, on whatever local address.
pub fn is_taken(port: u16) -> io::Result<bool> {
    if connect(port, Duration::from_millis(200)).is_ok() {
        return Ok(true);
    }
    // A listener with a full queue accepts nobody for now, and one on another local address never
    // answers here; the table shows both.
    let table = fs::read_to_string("/proc/net/tcp")?;
    // A kernel without IPv6 has no second table.
    let table6 = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    Ok(lists_listener(&table, port) || lists_listener(&table6, port))
}

/// Connects to `port` on 127.0.0.1.
///
/// A port that nobody listens on can, if the kernel happens to choose it as the source port too,
/// connect to itself (simultaneous open, RFC 9293 section 3.5); that counts as refused.
pub(crate) fn connect(port: u16, limit: Duration) -> io::Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, limit)?;
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

/// Whether `/proc/net/tcp` or `tcp6` has `port` in the state LISTEN (proc_net(5)).
fn lists_listener(table: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap_or_default();
        local.ends_with(&suffix) && fields.nth(1) == Some(LISTEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_taken_while_somebody_listens_on_it() {
        let port = free_port().unwrap();
        assert!(!is_taken(port).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(is_taken(port).unwrap());
        drop(listener);
        assert!(!is_taken(port).unwrap());
    }

    #[test]
    fn a_listener_on_another_local_address_is_seen_too() {
        let listener = TcpListener::bind("127.0.0.7:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_taken(port).unwrap());
    }

    #[test]
    fn connections_of_the_past_are_no_listeners() {
        let table = "  sl  local_address rem_address   st\n\
            0: 0100007F:1F90 0100007F:C350 06 00000000:00000000\n\
            1: 0100007F:0050 00000000:0000 0A 00000000:00000000\n";
        assert!(!lists_listener(table, 8080));
        assert!(lists_listener(table, 80));
    }
}
