//! The TCP sockets of this network namespace, as the kernel lists them: by sock_diag(7), or without it, by
//! proc_net(5).

use crate::machine::diag::{self, Entry};
use std::{
    collections::BTreeSet,
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// State of a listening socket (TCP_LISTEN, include/net/tcp_states.h).
const LISTEN: &str = "0A";

/// The sockets of the namespace. The methods that return inodes leave out sockets without one: not
/// accepted yet, or closed by their process.
#[derive(Debug, Default)]
pub(crate) struct Sockets(Vec<Socket>);

#[derive(Debug)]
struct Socket {
    /// Whether a connection to 127.0.0.1 can reach it: it is bound to that address, or to all.
    is_local: bool,
    port: u16,
    listens: bool,
    inode: u64,
}

impl Sockets {
    /// Returns all sockets.
    ///
    /// # Errors
    /// If the kernel lists them neither way.
    pub fn read() -> io::Result<Sockets> {
        diag::sockets(false).map(Sockets::of).or_else(|_| Sockets::read_tables())
    }

    /// Returns at least the sockets that listen, without the cost of tens of thousands of connections.
    ///
    /// # Errors
    /// As for [`Sockets::read`].
    pub fn read_listening() -> io::Result<Sockets> {
        diag::sockets(true).map(Sockets::of).or_else(|_| Sockets::read_tables())
    }

    fn of(entries: Vec<Entry>) -> Sockets {
        let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
        let own = Ipv4Addr::LOCALHOST;
        let local = [all[0], all[1], IpAddr::V4(own), IpAddr::V6(own.to_ipv6_mapped())];
        let socket = |Entry { address, port, listens, inode }: Entry| Socket {
            is_local: local.contains(&address),
            port,
            listens,
            inode,
        };
        Sockets(entries.into_iter().map(socket).collect())
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

    /// Returns the inodes of the sockets that listen on `port` of 127.0.0.1, and of the server's sockets
    /// of the connections to it.
    pub fn of_port(&self, port: u16) -> BTreeSet<u64> {
        self.inodes(|socket| socket.port == port)
    }

    /// Returns the inodes of the sockets that listen on `port` of 127.0.0.1.
    pub fn listeners_of(&self, port: u16) -> BTreeSet<u64> {
        self.inodes(|socket| socket.port == port && socket.listens)
    }

    fn inodes(&self, is_meant: impl Fn(&Socket) -> bool) -> BTreeSet<u64> {
        let meant = self.0.iter().filter(|socket| socket.is_local && is_meant(socket));
        meant.map(|socket| socket.inode).filter(|inode| *inode != 0).collect()
    }

    fn add(&mut self, table: &str) {
        let local = local_addresses();
        let parse = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (address, port) = fields.get(1)?.rsplit_once(':')?;
            Some(Socket {
                is_local: local.iter().any(|one| one == address),
                port: u16::from_str_radix(port, 16).ok()?,
                listens: *fields.get(3)? == LISTEN,
                inode: fields.get(9)?.parse().ok()?,
            })
        };
        self.0.extend(table.lines().skip(1).filter_map(parse));
    }
}

/// Returns 127.0.0.1 and "all" as written in both tables: words of 32 bits in the machine's byte order.
fn local_addresses() -> [String; 4] {
    let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
    let (any, own) = (word([0; 4]), word(Ipv4Addr::LOCALHOST.octets()));
    let mapped = word([0, 0, 0xFF, 0xFF]);
    let [any_6, own_6] = [format!("{any}{any}{any}{any}"), format!("{any}{any}{mapped}{own}")];
    [any, own, any_6, own_6]
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

    #[test]
    #[cfg(target_endian = "little")]
    fn finds_the_listeners_of_a_port_and_the_servers_sockets() {
        let mut sockets = Sockets::default();
        sockets.add(TABLE);
        sockets.add(TABLE_6);
        assert_eq!(sockets.listeners_of(8080), [11, 12, 16].into());
        assert_eq!(sockets.of_port(8080), [11, 12, 13, 16, 17].into());
        assert_eq!(sockets.of_port(50_000), [14].into());
        assert!(sockets.listens(8080) && !sockets.listens(50_000));
    }

    #[test]
    fn both_lists_have_the_same_sockets_of_a_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let _client = TcpStream::connect(addr).unwrap();
        let _accepted = listener.accept().unwrap();
        let (diag, tables) = (Sockets::read().unwrap(), Sockets::read_tables().unwrap());
        assert_eq!(diag.of_port(addr.port()), tables.of_port(addr.port()));
        assert_eq!(diag.of_port(addr.port()).len(), 2);
        let listening = Sockets::read_listening().unwrap();
        assert_eq!(listening.listeners_of(addr.port()), tables.listeners_of(addr.port()));
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
