//! A server that answers a request of HTTP/2 before its last byte has arrived is detected, and an honest one is not
//! accused.

use super::{items, over_http2, peer::Peer};
use crate::common::{Server, assert_undisturbed, run};
use regatta_http2::frame::{Header, Kind, flag, write};
use regatta_load::{Drive, Plan, WarmUp};
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

/// A request whose response is always the same, so that it can be guessed.
const ONE: &str = "protocol = 'http'\n[[request]]\npath = '/'\nstatus = 200\nexact = 'hi'\n";

/// A server that answers a request when all but the last `missing` bytes of its HEADERS frame have arrived. Also returns
/// how often a read ended one byte before the end of such a frame.
fn server(missing: usize) -> (Server, Arc<AtomicU64>) {
    let seen = Arc::new(AtomicU64::new(0));
    let counted = seen.clone();
    let server = Server::start(move |mut stream: TcpStream, requests: &AtomicU64| {
        let mut preface = [0; 24];
        let _ = stream.read_exact(&mut preface);
        let (mut input, mut out, mut is_answered) = (Vec::new(), Vec::new(), false);
        write::settings(&mut out, &[]);
        let mut buffer = [0; 4096];
        loop {
            if stream.write_all(&out).is_err() {
                return;
            }
            out.clear();
            match stream.read(&mut buffer) {
                Ok(n @ 1..) => input.extend_from_slice(&buffer[..n]),
                _ => return,
            }
            while let Some(header) = input.first_chunk().map(Header::read) {
                let whole = Header::SIZE + header.length as usize;
                let is_head = header.kind == Kind::HEADERS;
                if is_head && input.len() + 1 == whole {
                    counted.fetch_add(1, SeqCst);
                }
                if is_head && !is_answered && input.len() + missing >= whole {
                    is_answered = true;
                    requests.fetch_add(1, SeqCst);
                    out.extend_from_slice(&response(header.stream));
                }
                if input.len() < whole {
                    break;
                }
                if header.kind == Kind::SETTINGS && !header.has(flag::ACK) {
                    write::settings_ack(&mut out);
                }
                input.drain(..whole);
                is_answered = false;
            }
        }
    });
    (server, seen)
}

/// The frames of a correct response.
fn response(stream: u32) -> Vec<u8> {
    Peer::response(stream, "hi")
}

fn withholding(server: &Server, pipeline: usize) -> Plan {
    let warm_up = WarmUp::Fixed(Duration::from_millis(300));
    let workload = over_http2(ONE);
    Plan { connections: 8, pipeline, workload, warm_up, withholds: true, ..items(server.address) }
}

#[test]
fn a_response_before_the_last_byte_of_its_request_disqualifies() {
    for pipeline in [1, 8] {
        let (server, _) = server(1);
        let tally = run(&withholding(&server, pipeline)).unwrap();
        let wrong = tally.first_wrong.clone().unwrap_or_else(|| panic!("{pipeline}: not found"));
        assert!(wrong.expected.contains("last byte of the request"), "{wrong:?}");
        assert!(wrong.sent.contains(" HTTP/2"), "{wrong:?}");
    }
}

#[test]
fn a_server_that_waits_for_the_last_byte_is_not_accused() {
    for pipeline in [1, 8] {
        let (server, seen) = server(0);
        let tally = run(&withholding(&server, pipeline)).unwrap();
        assert_undisturbed(&tally);
        assert!(seen.load(SeqCst) > 0, "the last byte of some requests was held back");
    }
}

#[test]
fn churn_is_checked_too() {
    let (server, _) = server(1);
    let tally = run(&Plan { drive: Drive::Churn, ..withholding(&server, 1) }).unwrap();
    assert!(tally.first_wrong.is_some());
}
