//! TCP ports on 127.0.0.1: a free one, and whether somebody listens on one.

use std::{
    collections::VecDeque,
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Ports that `free_port` gave last. The kernel may choose one of them again before its server
/// listens on it.
static GIVEN: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());

/// A port on which nobody listens, chosen by the kernel, and none of the last thousand that this
/// process was given. Nothing else keeps it free: start the server on it soon.
pub fn free_port() -> io::Result<u16> {
    const REMEMBERED: usize = 1000;
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut passed_over = Vec::new(); // kept bound, so that the kernel chooses another
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        if given.contains(&port) {
            passed_over.push(listener);
            continue;
        }
        if given.len() == REMEMBERED {
            given.pop_front();
        }
        given.push_back(port);
        return Ok(port);
    }
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
    fn a_port_is_not_given_twice_soon() {
        let mut ports: Vec<u16> = (0..900).map(|_| free_port().unwrap()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 900);
    }

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
