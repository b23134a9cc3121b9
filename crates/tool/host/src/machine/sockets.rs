//! The TCP sockets of this network namespace, as the kernel lists them: by sock_diag(7), or without it, by
//! proc_net(5).

use crate::machine::diag::{self, Socket};
use std::{
    collections::BTreeSet,
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// State of a listening socket (TCP_LISTEN, include/net/tcp_states.h).
const LISTEN: &str = "0A";

/// The sockets of the namespace. The methods that return inodes leave out sockets without one: not
/// accepted yet, or closed by their process.
#[derive(Debug, Default)]
pub(crate) struct Sockets(Vec<Socket>);

impl Sockets {
    /// Returns all sockets.
    ///
    /// # Errors
    /// If the kernel lists them neither way.
    pub fn read() -> io::Result<Sockets> {
        diag::sockets(false).map(Sockets).or_else(|_| Sockets::read_tables())
    }

    /// Returns at least the sockets that listen, without the cost of tens of thousands of connections.
    ///
    /// # Errors
    /// As for [`Sockets::read`].
    pub fn read_listening() -> io::Result<Sockets> {
        diag::sockets(true).map(Sockets).or_else(|_| Sockets::read_tables())
    }

    /// Reads both tables. A kernel without IPv6 has no second one.
    fn read_tables() -> io::Result<Sockets> {
        let mut sockets = Sockets::default();
        sockets.add(&fs::read_to_string("/proc/net/tcp")?);
        sockets.add(&fs::read_to_string("/proc/net/tcp6").unwrap_or_default());
        Ok(sockets)
    }

    /// Whether a socket listens on `port`, on any local address.
    pub fn listens(&self, port: u16) -> bool {
        self.0.iter().any(|socket| socket.listens && socket.port == port)
    }

    /// Returns the inodes of the sockets that listen at `address`, and of the server's sockets of the connections
    /// to it.
    pub fn of_address(&self, address: SocketAddr) -> BTreeSet<u64> {
        self.inodes(address, |_| true)
    }

    /// Returns the inodes of the sockets that listen at `address`.
    pub fn listeners_of(&self, address: SocketAddr) -> BTreeSet<u64> {
        self.inodes(address, |socket| socket.listens)
    }

    /// Of the sockets that a connection to `address` can reach: they are bound to it, or to all addresses.
    fn inodes(&self, address: SocketAddr, is_meant: impl Fn(&Socket) -> bool) -> BTreeSet<u64> {
        let own = address.ip();
        let mapped = match own {
            IpAddr::V4(own) => IpAddr::V6(own.to_ipv6_mapped()),
            IpAddr::V6(_) => own,
        };
        let [any, any_6] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        let reached = [own, mapped, any, any_6];
        let is_reached =
            |one: &&Socket| one.port == address.port() && reached.contains(&one.address);
        let meant = self.0.iter().filter(is_reached).filter(|socket| is_meant(socket));
        meant.map(|socket| socket.inode).filter(|inode| *inode != 0).collect()
    }

    fn add(&mut self, table: &str) {
        let parse = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (address, port) = fields.get(1)?.rsplit_once(':')?;
            Some(Socket {
                address: address_of(address)?,
                port: u16::from_str_radix(port, 16).ok()?,
                listens: *fields.get(3)? == LISTEN,
                inode: fields.get(9)?.parse().ok()?,
            })
        };
        self.0.extend(table.lines().skip(1).filter_map(parse));
    }
}

/// Returns an address as written in both tables: words of 32 bits in the machine's byte order.
fn address_of(words: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(words.get(at..at + 8)?, 16).ok();
    let mut bytes = [0; 16];
    for (nth, four) in bytes.chunks_mut(4).enumerate().take(words.len() / 8) {
        four.copy_from_slice(&word(8 * nth)?.to_ne_bytes());
    }
    match words.len() {
        8 => Some(IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])),
        32 => Some(IpAddr::from(bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 13 1
   3: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 14 1
   4: 0100007F:1F90 0100007F:C351 06 00000000:00000000 03:00000000 00000000     0        0 0 3
   5: 0A00000A:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 15 1
";
    const TABLE_6: &str = "\
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 16
   1: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:C352 01 0:0 0:0 0 0 0 17
   2: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 18
";

    fn local(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn finds_the_listeners_of_a_port_and_the_servers_sockets() {
        let mut sockets = Sockets::default();
        sockets.add(TABLE);
        sockets.add(TABLE_6);
        assert_eq!(sockets.listeners_of(local(8080)), [11, 12, 16].into());
        assert_eq!(sockets.of_address(local(8080)), [11, 12, 13, 16, 17].into());
        assert_eq!(sockets.of_address(local(50_000)), [14].into());
        assert!(sockets.listens(8080) && !sockets.listens(50_000));
        let other = SocketAddr::from(([10, 0, 0, 10], 8080));
        assert_eq!(sockets.listeners_of(other), [12, 15, 16].into(), "at it, and at all");
    }

    #[test]
    fn both_lists_have_the_same_sockets_of_a_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let _client = TcpStream::connect(addr).unwrap();
        let _accepted = listener.accept().unwrap();
        let (diag, tables) = (Sockets::read().unwrap(), Sockets::read_tables().unwrap());
        assert_eq!(diag.of_address(addr), tables.of_address(addr));
        assert_eq!(diag.of_address(addr).len(), 2);
        let listening = Sockets::read_listening().unwrap();
        assert_eq!(listening.listeners_of(addr), tables.listeners_of(addr));
    }

    #[test]
    fn closed_connections_are_not_listeners() {
        let mut sockets = Sockets::default();
        sockets.add(
            "  sl  local_address rem_address   st\n\
             0: 0100007F:1F90 0100007F:C350 06 0:0 0:0 0 0 0 0\n\
             1: 0100007F:0050 00000000:0000 0A 0:0 0:0 0 0 0 9\n",
        );
        assert!(!sockets.listens(8080));
        assert!(sockets.listens(80));
    }
}
