//! Checks of ports, source addresses and queues of new connections.

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

/// Connections that the load opens from one source address before it uses the next.
const PER_ADDRESS: u64 = 25_000;
/// Source addresses that the load may use besides 127.0.0.1, for a server on an IPv4 loopback address.
const ADDRESSES: u64 = 126;
/// Seconds that a port stays in TIME_WAIT (`TCP_TIMEWAIT_LEN` of the kernel).
const REST_S: u64 = 60;
/// The length of the accept queue that our servers request.
const BACKLOG: u64 = 4096;

/// Reads the settings of the network, and judges each.
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

/// A check of a setting that cannot be read.
fn unknown(name: &'static str, file: &str) -> Check {
    Check::ok(name, "unknown").marked(
        Mark::Note,
        format!("{file} cannot be read, so it may limit connections."),
        format!("Check /proc/sys/net/{file} on the host."),
    )
}

fn ports_of((first, last): (u16, u16)) -> u64 {
    (u64::from(last) + 1).saturating_sub(first.into())
}

fn ports(range: Option<(u16, u16)>) -> Check {
    let Some(range) = range else { return unknown("ports", "ipv4/ip_local_port_range") };
    let number = ports_of(range);
    let possible = grouped(number);
    let found = format!("{}–{}: {possible} connections per address", range.0, range.1);
    let check = Check::ok("ports", found);
    let mark = match number {
        ..FEWEST_CONNECTIONS => Mark::Bad,
        FEWEST_CONNECTIONS..PER_ADDRESS => Mark::Warn,
        _ => return check,
    };
    check.marked(
        mark,
        format!(
            "One address can have {possible} connections to a server, but the load opens up to {}; \
             the others fail with \"cannot assign requested address\".",
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
    check.marked(
        Mark::Note,
        format!(
            "With tcp_tw_reuse 0, a port stays unusable for {REST_S} s after its connection, so loads \
             with a connection per request fail after a minute above {} connections/s.",
            grouped(rate)
        ),
        "Run `sysctl -w net.ipv4.tcp_tw_reuse=2`.",
    )
}

/// Opens a loopback connection from `source`, to find out whether that is possible.
fn connect_from(source: Ipv4Addr) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(source, 0))?;
    // A listener with room answers at once. If a filter drops the packets, do not wait for minutes.
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
        return Check::ok(NAME, format!("127.0.0.1 cannot be reached: {error}")).marked(
            Mark::Bad,
            "Servers and load communicate over 127.0.0.1, so no race can start.",
            "Run `ip link set lo up && ip addr add 127.0.0.1/8 dev lo`, or check the firewall.",
        );
    }
    let Err(error) = second else {
        return Check::ok(NAME, format!("{ADDRESSES} source addresses from 127.0.0.2"));
    };
    Check::ok(NAME, format!("127.0.0.2 cannot be a source: {error}")).marked(
        Mark::Warn,
        format!(
            "Connections beyond {}, and those of loads with a connection per request, use source \
             addresses from 127.0.0.2 and fail.",
            grouped(PER_ADDRESS)
        ),
        "Add all addresses to loopback (`ip addr add 127.0.0.1/8 dev lo`), or check the firewall.",
    )
}

/// Judges the queue of established connections that wait for the server to accept them.
fn accept_queue(most: Option<u64>) -> Check {
    let Some(most) = most else { return unknown("accept-queue", "core/somaxconn") };
    let kept = grouped(most.min(BACKLOG));
    let found = format!("somaxconn {}; our servers request {}", grouped(most), grouped(BACKLOG));
    let check = Check::ok("accept-queue", found);
    let effect = format!(
        "If a server is slow to accept a burst of {} connections, {kept} fit in its queue. The \
         others connect at least a second late, which shows in the burst.",
        grouped(BURST)
    );
    let (mark, gain) = match most {
        ..BACKLOG => (Mark::Warn, ""),
        BACKLOG..BURST => (Mark::Note, "; this helps only servers that request such a long queue"),
        _ => return check,
    };
    check.marked(
        mark,
        effect,
        format!("Run `sysctl -w net.core.somaxconn={}`{gain}.", BURST + 1_000),
    )
}

/// Judges the queue of unfinished handshakes. Its limit applies only without SYN cookies (tcp(7),
/// `tcp_syncookies`).
fn syn_queue(most: Option<u64>, cookies: Option<u8>) -> Check {
    let Some(most) = most else { return unknown("syn-queue", "ipv4/tcp_max_syn_backlog") };
    // A kernel without SYN cookies has no such file.
    let cookies = cookies.unwrap_or(0);
    let found = format!("tcp_max_syn_backlog {}, tcp_syncookies {cookies}", grouped(most));
    let check = Check::ok("syn-queue", found);
    if cookies > 0 || most >= BACKLOG {
        return check;
    }
    check.marked(
        Mark::Warn,
        format!(
            "Without SYN cookies, a server queues about {} handshakes of a burst of {}; the others \
             are retried a second later.",
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
    fn ports_limit_connections_per_address() {
        let usual = ports(Some((32768, 60999)));
        assert_eq!(usual.mark, Mark::Ok);
        assert_eq!(usual.found, "32768–60999: 28,232 connections per address");
        let few = ports(Some((50_000, 50_999)));
        assert_says(&few, Mark::Warn, &["1,000", "25,000"], &["32768 60999"]);
        assert_says(&ports(Some((50_000, 50_062))), Mark::Bad, &["63"], &["32768 60999"]);
        assert_says(&ports(None), Mark::Note, &["port_range"], &["/proc/sys/net/ipv4"]);
    }

    #[test]
    fn ports_in_time_wait_limit_connections_per_second() {
        let range = Some((32768, 60999));
        assert_eq!(port_reuse(Some(1), range).mark, Mark::Ok);
        assert_eq!(port_reuse(Some(2), range).mark, Mark::Ok);
        let check = port_reuse(Some(0), range);
        assert_says(&check, Mark::Note, &["tcp_tw_reuse 0", "59,287"], &["tcp_tw_reuse=2"]);
    }

    #[test]
    fn reports_a_missing_source_address() {
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
    fn cannot_connect_from_a_foreign_address() {
        assert!(connect_from(Ipv4Addr::LOCALHOST).is_ok());
        // TEST-NET-1 (RFC 5737).
        assert!(connect_from(Ipv4Addr::new(192, 0, 2, 1)).is_err());
    }

    #[test]
    fn warns_of_an_accept_queue_shorter_than_a_burst() {
        assert_eq!(accept_queue(Some(65_535)).mark, Mark::Ok);
        let short = accept_queue(Some(128));
        assert_says(&short, Mark::Warn, &["5,000", "128 fit"], &["somaxconn=6000"]);
        let nearly = accept_queue(Some(4096));
        assert_says(&nearly, Mark::Note, &["5,000", "4,096 fit"], &["somaxconn=6000", "request"]);
    }

    #[test]
    fn the_syn_queue_is_limited_only_without_cookies() {
        assert_eq!(syn_queue(Some(128), Some(1)).mark, Mark::Ok);
        assert_eq!(syn_queue(Some(4096), Some(0)).mark, Mark::Ok);
        let check = syn_queue(Some(128), None);
        assert_says(&check, Mark::Warn, &["about 128", "5,000"], &["tcp_syncookies=1", "4,096"]);
    }
}
