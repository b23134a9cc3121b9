//! Ports, source addresses and queues of new connections.

use super::{
    check::{Check, Mark},
    connections::{BURST, FEWEST_CONNECTIONS},
};
use regatta_record::Setup;
use regatta_report::grouped;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    str::FromStr,
};

/// Connections that the load opens from one source address before it takes the next.
const PER_ADDRESS: u64 = 25_000;
/// Source addresses that the load may use towards a server on this machine.
const ADDRESSES: u64 = 126;
/// Seconds that a port rests in TIME_WAIT (`TCP_TIMEWAIT_LEN` of the kernel).
const REST_S: u64 = 60;
/// The queue of new connections that our servers ask for.
const BACKLOG: u64 = 4096;

/// Reads and judges.
pub fn checks(setup: &Setup) -> Vec<Check> {
    vec![
        ports(setup.port_range),
        port_reuse(value("ipv4/tcp_tw_reuse"), setup.port_range),
        sources(&connect_from(Ipv4Addr::LOCALHOST), &connect_from(Ipv4Addr::new(127, 0, 0, 2))),
        accept_queue(setup.somaxconn),
        syn_queue(value("ipv4/tcp_max_syn_backlog"), value("ipv4/tcp_syncookies")),
    ]
}

fn value<T: FromStr>(name: &str) -> Option<T> {
    fs::read_to_string(format!("/proc/sys/net/{name}")).ok()?.trim().parse().ok()
}

/// A check of what the kernel does not tell.
fn unknown(name: &'static str, file: &str) -> Check {
    Check::ok(name, "unknown").but(
        Mark::Note,
        format!("Whether {file} is in the way of many connections cannot be told."),
        format!("See /proc/sys/net/{file} on the host."),
    )
}

fn ports_of((first, last): (u16, u16)) -> u64 {
    (u64::from(last) + 1).saturating_sub(first.into())
}

fn ports(range: Option<(u16, u16)>) -> Check {
    let Some(range) = range else { return unknown("ports", "ipv4/ip_local_port_range") };
    let number = ports_of(range);
    let possible = grouped(number);
    let found = format!("{}–{}: {possible} connections from an address", range.0, range.1);
    let check = Check::ok("ports", found);
    let mark = match number {
        ..FEWEST_CONNECTIONS => Mark::Bad,
        FEWEST_CONNECTIONS..PER_ADDRESS => Mark::Warn,
        _ => return check,
    };
    check.but(
        mark,
        format!(
            "One address can have {possible} connections to a server and the load opens up to {}, \
             so those beyond fail with \"cannot assign requested address\".",
            grouped(PER_ADDRESS)
        ),
        "Run `sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\"`.",
    )
}

/// `reuse`: 0 never, 1 always, 2 on loopback (the kernel's default).
fn port_reuse(reuse: Option<u8>, range: Option<(u16, u16)>) -> Check {
    let Some(reuse) = reuse else { return unknown("port-reuse", "ipv4/tcp_tw_reuse") };
    let check = Check::ok("port-reuse", format!("tcp_tw_reuse is {reuse}"));
    if reuse > 0 {
        return check;
    }
    let rate = range.map_or(28_232, ports_of) * ADDRESSES / REST_S;
    check.but(
        Mark::Note,
        format!(
            "With tcp_tw_reuse 0 a port rests for {REST_S} s after its connection, so loads with a \
             connection per request fail after a minute above {} connections/s.",
            grouped(rate)
        ),
        "Run `sysctl -w net.ipv4.tcp_tw_reuse=2`.",
    )
}

/// Whether a connection over loopback can come from `source`, found by making one.
fn connect_from(source: Ipv4Addr) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(source, 0))?;
    // A listener with room answers at once; where a filter drops it, do not wait for minutes.
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Send,
        Some(std::time::Duration::from_secs(1)),
    )?;
    Ok(connect(&socket, &listener.local_addr()?)?)
}

fn sources(first: &io::Result<()>, second: &io::Result<()>) -> Check {
    const NAME: &str = "loopback";
    if let Err(error) = first {
        return Check::ok(NAME, format!("127.0.0.1 cannot be reached: {error}")).but(
            Mark::Bad,
            "Servers and load meet on 127.0.0.1, so no race can begin.",
            "Run `ip link set lo up && ip addr add 127.0.0.1/8 dev lo`, or look at the firewall.",
        );
    }
    let Err(error) = second else {
        return Check::ok(NAME, format!("{ADDRESSES} source addresses from 127.0.0.2"));
    };
    Check::ok(NAME, format!("127.0.0.2 cannot be a source: {error}")).but(
        Mark::Warn,
        format!(
            "Connections beyond {} and those of loads with a connection per request come from \
             127.0.0.2 and up, and fail.",
            grouped(PER_ADDRESS)
        ),
        "Give loopback all its addresses (`ip addr add 127.0.0.1/8 dev lo`), or look at the \
         firewall.",
    )
}

/// Complete connections that wait for their server to accept them.
fn accept_queue(most: Option<u64>) -> Check {
    let Some(most) = most else { return unknown("accept-queue", "core/somaxconn") };
    let kept = grouped(most.min(BACKLOG));
    let found = format!("somaxconn {}; our servers ask for {}", grouped(most), grouped(BACKLOG));
    let check = Check::ok("accept-queue", found);
    let effect = format!(
        "A server that is slow to accept a burst of {} keeps {kept} waiting; each further one \
         connects a second late or more, and the burst shows that second.",
        grouped(BURST)
    );
    let (mark, gain) = match most {
        ..BACKLOG => (Mark::Warn, ""),
        BACKLOG..BURST => (Mark::Note, ", which helps servers that ask for as much"),
        _ => return check,
    };
    check.but(mark, effect, format!("Run `sysctl -w net.core.somaxconn={}`{gain}.", BURST + 1_000))
}

/// Connections in mid-handshake. The limit holds only without cookies (tcp(7), `tcp_syncookies`).
fn syn_queue(most: Option<u64>, cookies: Option<u8>) -> Check {
    let Some(most) = most else { return unknown("syn-queue", "ipv4/tcp_max_syn_backlog") };
    // A kernel without cookies has no such file.
    let cookies = cookies.unwrap_or(0);
    let found = format!("tcp_max_syn_backlog {}, tcp_syncookies {cookies}", grouped(most));
    let check = Check::ok("syn-queue", found);
    if cookies > 0 || most >= BACKLOG {
        return check;
    }
    check.but(
        Mark::Warn,
        format!(
            "Without cookies a server keeps about {} handshakes of a burst of {}; each further \
             one is tried again a second later.",
            grouped(most),
            grouped(BURST)
        ),
        format!(
            "Run `sysctl -w net.ipv4.tcp_syncookies=1`, or set tcp_max_syn_backlog to {}.",
            grouped(BACKLOG)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::assert_says;
    use super::*;

    #[test]
    fn ports_tell_how_many_connections_an_address_has() {
        let usual = ports(Some((32768, 60999)));
        assert_eq!(usual.mark, Mark::Ok);
        assert_eq!(usual.found, "32768–60999: 28,232 connections from an address");
        let few = ports(Some((50_000, 50_999)));
        assert_says(&few, Mark::Warn, &["1,000", "25,000"], &["32768 60999"]);
        assert_says(&ports(Some((50_000, 50_062))), Mark::Bad, &["63"], &["32768 60999"]);
        assert_says(&ports(None), Mark::Note, &["port_range"], &["/proc/sys/net/ipv4"]);
    }

    #[test]
    fn ports_that_rest_limit_connections_per_second() {
        let range = Some((32768, 60999));
        assert_eq!(port_reuse(Some(1), range).mark, Mark::Ok);
        assert_eq!(port_reuse(Some(2), range).mark, Mark::Ok);
        let check = port_reuse(Some(0), range);
        assert_says(&check, Mark::Note, &["tcp_tw_reuse 0", "59,287"], &["tcp_tw_reuse=2"]);
    }

    #[test]
    fn a_source_that_is_not_there_is_told() {
        let error = || Err(io::ErrorKind::AddrNotAvailable.into());
        assert_eq!(sources(&Ok(()), &Ok(())).mark, Mark::Ok);
        assert_says(
            &sources(&Ok(()), &error()),
            Mark::Warn,
            &["127.0.0.2", "25,000"],
            &["ip addr"],
        );
        assert_says(&sources(&error(), &Ok(())), Mark::Bad, &["no race"], &["ip link set lo up"]);
    }

    #[test]
    fn an_address_of_nobody_here_is_no_source() {
        assert!(connect_from(Ipv4Addr::LOCALHOST).is_ok());
        // TEST-NET-1 (RFC 5737).
        assert!(connect_from(Ipv4Addr::new(192, 0, 2, 1)).is_err());
    }

    #[test]
    fn a_short_queue_is_told_with_what_a_burst_would_need() {
        assert_eq!(accept_queue(Some(65_535)).mark, Mark::Ok);
        let short = accept_queue(Some(128));
        assert_says(&short, Mark::Warn, &["5,000 keeps 128"], &["somaxconn=6000"]);
        let nearly = accept_queue(Some(4096));
        assert_says(&nearly, Mark::Note, &["5,000 keeps 4,096"], &["somaxconn=6000", "ask for"]);
    }

    #[test]
    fn handshakes_are_limited_only_without_cookies() {
        assert_eq!(syn_queue(Some(128), Some(1)).mark, Mark::Ok);
        assert_eq!(syn_queue(Some(4096), Some(0)).mark, Mark::Ok);
        let check = syn_queue(Some(128), None);
        assert_says(&check, Mark::Warn, &["about 128", "5,000"], &["tcp_syncookies=1", "4,096"]);
    }
}
