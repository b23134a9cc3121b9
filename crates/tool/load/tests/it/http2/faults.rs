//! Servers that answer wrongly, once. Each fault is found, and named.

use super::{items, peer::Peer, server};
use crate::common::{Server, assert_undisturbed, run};
use regatta_http2::{
    ErrorCode,
    frame::{Kind, flag, write},
};
use regatta_load::{Plan, Tally, Until};
use std::{
    io::{Read, Write},
    net::Shutdown,
    sync::{Mutex, atomic::Ordering::SeqCst},
    time::Duration,
};

/// The request of a connection whose response is wrong.
const NTH: u64 = 21;

/// Sends 200 requests to a server that calls `wrong` for one of them, and answers all others correctly.
fn with_a_fault(wrong: impl Fn(&mut Peer, u32, u64) + Send + Sync + 'static) -> Tally {
    let server = server(&[], move |i, peer, asked| match i {
        NTH => wrong(peer, asked.stream, asked.number()),
        _ => peer.right(&asked),
    });
    run(&Plan { until: Until::Requests(200), ..items(server.address) }).unwrap()
}

/// Checks that the reply of the fault was the first wrong one, and what was seen of it.
fn is_found(tally: &Tally, seen: &str) {
    let wrong = tally.first_wrong.as_ref().unwrap_or_else(|| panic!("not found: {seen}"));
    assert!(wrong.received.contains(seen), "{seen}: {wrong:?}");
    assert_eq!(tally.errors.wrong_reply, tally.errors.total(), "{:?}", tally.errors);
    assert!(tally.replies >= NTH - 4, "{}", tally.replies);
}

#[test]
fn an_honest_server_has_no_faults_in_any_pieces() {
    for in_bytes in [false, true] {
        let server = super::serving(&[], move |mut peer, _| {
            peer.in_bytes = in_bytes;
            while let Some(asked) = peer.ask() {
                peer.right(&asked);
            }
        });
        let tally = run(&Plan { until: Until::Requests(500), ..items(server.address) }).unwrap();
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, tally.histogram.len()), (500, 500));
        assert_eq!(tally.statuses.get(&200), Some(&500));
    }
}

#[test]
fn a_wrong_content_is_found() {
    let tally = with_a_fault(|peer, stream, number| {
        peer.answer(stream, &format!("Item {number}"));
    });
    is_found(&tally, "the status 200 and the content Item ");
    let wrong = tally.first_wrong.unwrap();
    assert!(wrong.sent.contains(" HTTP/2\\r\\nHost: a.test"), "{}", wrong.sent);
    assert!(wrong.expected.contains("status 200, the content item "), "{}", wrong.expected);
}

#[test]
fn a_content_that_is_too_short_or_too_long_is_found() {
    let short = with_a_fault(|peer, stream, number| {
        let content = format!("item {number}");
        peer.answer(stream, &content[..content.len() - 1]);
    });
    is_found(&short, "the status 200 and the content item ");
    let long = with_a_fault(|peer, stream, number| {
        peer.head(stream, "200", &[], false);
        peer.data(stream, format!("item {number}").as_bytes(), false);
        peer.data(stream, b"!", true);
    });
    is_found(&long, "bytes of content");
}

#[test]
fn a_wrong_status_is_found() {
    let tally = with_a_fault(|peer, stream, _| peer.head(stream, "503", &[], true));
    is_found(&tally, ":status: 503");
}

#[test]
fn swapped_responses_are_found() {
    static FIRST: Mutex<Option<(u32, u64)>> = Mutex::new(None);
    let server = server(&[], |i, peer, asked| match i {
        NTH => *FIRST.lock().unwrap() = Some((asked.stream, asked.number())),
        _ => match FIRST.lock().unwrap().take() {
            Some((stream, number)) => {
                peer.answer(stream, &format!("item {}", asked.number()));
                peer.answer(asked.stream, &format!("item {number}"));
            }
            None => peer.right(&asked),
        },
    });
    let tally = run(&Plan { until: Until::Requests(200), ..items(server.address) }).unwrap();
    is_found(&tally, "the status 200 and the content item ");
}

/// Answers a request on a stream.
type Answer = fn(&mut Peer, u32, &str);

#[test]
fn violations_of_rules_end_the_run_with_their_section() {
    let faults: [(&str, Answer); 10] = [
        ("RFC 9113, 5.1)", |peer, _, _| peer.head(1_000_001, "200", &[], false)),
        ("RFC 9113, 5.1)", |peer, stream, right| {
            peer.answer(stream, right);
            peer.send(Kind::DATA, flag::END_STREAM, stream, b"again");
        }),
        ("RFC 9113, 6.6)", |peer, stream, _| {
            peer.send(Kind::PUSH_PROMISE, flag::END_HEADERS, stream, &[0, 0, 0, 2, 0x82]);
        }),
        ("RFC 9113, 8.1)", |peer, stream, _| peer.data(stream, b"no head", true)),
        ("RFC 9113, 8.1.1)", |peer, stream, right| {
            peer.head(stream, "200", &[("content-length", "99")], false);
            peer.data(stream, right.as_bytes(), true);
        }),
        ("RFC 9113, 8.2.2)", |peer, stream, _| {
            peer.head(stream, "200", &[("connection", "close")], true);
        }),
        ("RFC 9113, 8.3.2)", |peer, stream, _| {
            peer.send(Kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &[]);
        }),
        ("RFC 7541, 2.3.3)", |peer, stream, _| {
            peer.send(Kind::HEADERS, flag::END_HEADERS, stream, &[0xff, 0x20]);
        }),
        ("RFC 9113, 6.9)", |peer, _, _| peer.send(Kind::WINDOW_UPDATE, 0, 0, &[0; 4])),
        // The frame is shown that violates the rule, and not those in front of it.
        ("frame PING, flags 0x0, stream 0, 7 bytes", |peer, stream, right| {
            peer.answer(stream, right);
            peer.send(Kind::PING, 0, 0, &[0; 7]);
        }),
    ];
    for (section, fault) in faults {
        let tally = with_a_fault(move |peer, stream, number| {
            fault(peer, stream, &format!("item {number}"));
        });
        is_found(&tally, section);
    }
}

#[test]
fn a_reset_is_an_error_of_its_own_with_its_code() {
    for (code, name) in
        [(ErrorCode::REFUSED_STREAM, "REFUSED_STREAM"), (ErrorCode::CANCEL, "CANCEL")]
    {
        let tally = with_a_fault(move |peer, stream, _| {
            write::reset(&mut peer.out, stream, code);
            peer.open -= 1;
        });
        assert_eq!((tally.errors.reset, tally.errors.total()), (1, 1), "{:?}", tally.errors);
        assert_eq!((tally.requests, tally.first_wrong.as_ref()), (199, None));
        let cause = format!("the server reset the stream with {name} (RST_STREAM; RFC 9113, 6.4)");
        assert_eq!(tally.causes.get(&cause), Some(&1), "{:?}", tally.causes);
    }
}

#[test]
fn a_stream_without_an_end_times_out_alone() {
    let server = server(&[], |i, peer, asked| match i {
        NTH => peer.head(asked.stream, "200", &[], false),
        _ => peer.right(&asked),
    });
    let timeout = Duration::from_secs(2);
    let until = Until::Elapsed(Duration::from_secs(1));
    let tally = run(&Plan { timeout, until, ..items(server.address) }).unwrap();
    assert_eq!((tally.errors.timeout, tally.errors.total()), (1, 1), "{:?}", tally.errors);
    assert_eq!(tally.connections_opened, 1, "the other streams continue");
    assert_eq!(tally.causes.get("no reply within 2s"), Some(&1), "{:?}", tally.causes);
}

#[test]
fn a_head_that_was_refused_is_not_known_as_right_when_it_comes_again() {
    let server = server(&[], |i, peer, asked| {
        let length = [("content-length", "10")];
        match i {
            ..NTH => peer.right(&asked),
            // A rule of the stream is violated, before anything is compared.
            NTH => peer.head(asked.stream, "500", &length, true),
            _ => {
                peer.head(asked.stream, "500", &length, false);
                peer.data(asked.stream, format!("item {}", asked.number()).as_bytes(), true);
            }
        }
    });
    let until = Until::Requests(200);
    let plan = Plan { until, pipeline: 1, tolerates: Some(1.0), ..items(server.address) };
    let tally = run(&plan).unwrap();
    assert_eq!((tally.requests, tally.errors.wrong_reply), (NTH, 200 - NTH), "{tally:?}");
}

#[test]
fn wrong_responses_are_tolerated_on_the_same_connection() {
    let server = server(&[], |i, peer, asked| match i % 10 {
        3 => peer.answer(asked.stream, "wrong"),
        5 => peer.head(asked.stream, "404", &[], true),
        7 => peer.head(asked.stream, "200", &[("Upper", "case")], true),
        _ => peer.right(&asked),
    });
    let plan = Plan { tolerates: Some(0.5), ..items(server.address) };
    let tally = run(&Plan { until: Until::Requests(1_000), ..plan }).unwrap();
    assert_eq!((tally.requests, tally.errors.wrong_reply), (700, 300), "{:?}", tally.errors);
    assert_eq!((tally.connections_opened, tally.errors.total()), (1, 300));
    assert_eq!(server.requests(), 1_000);
}

#[test]
fn a_server_of_http_1_1_is_recognised() {
    let server = Server::start(|mut stream, _| {
        let _ = stream.read(&mut [0; 24]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let tally = run(&items(server.address)).unwrap();
    let wrong = tally.first_wrong.unwrap();
    assert!(wrong.received.contains("the server answers in HTTP/1.1"), "{wrong:?}");
    assert!(wrong.received.contains("RFC 9113, 3.4"), "{wrong:?}");
    assert_eq!(server.accepted.load(SeqCst), 1);
}
