//! Settings and windows that change while the load runs.

use super::{items, over_http2, peer::Got};
use crate::common::{assert_undisturbed, run};
use regatta_http2::frame::write;
use regatta_load::{Plan, Until};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

/// The numbers of settings (RFC 9113, 6.5.2).
const TABLE_SIZE: u16 = 1;
const STREAMS: u16 = 3;
const WINDOW: u16 = 4;

#[test]
fn a_limit_of_streams_that_changes_is_obeyed() {
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let server = super::serving(&[(STREAMS, 3)], move |mut peer, _| {
        peer.wait_at_most(Duration::from_millis(2));
        let (mut pending, mut answered) = (Vec::new(), 0);
        while let Some(got) = peer.next() {
            match got {
                Got::Asked(asked) => pending.push(asked),
                // The client has sent all that it may.
                Got::Nothing => {
                    if answered > 0 {
                        seen.fetch_max(peer.open, SeqCst);
                    }
                    let all = pending.len();
                    pending.drain(..).for_each(|asked| peer.right(&asked));
                    answered += all;
                    if (200..210).contains(&answered) {
                        write::settings(&mut peer.out, &[(STREAMS, 1)]);
                        answered = 210;
                    }
                    if answered >= 240 && all > 0 {
                        assert_eq!(all, 1, "one stream is allowed");
                    }
                }
                Got::Other => {}
            }
        }
    });
    let plan = Plan { pipeline: 16, until: Until::Requests(300), ..items(server.address) };
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(most.load(SeqCst), 3);
    assert_eq!(tally.in_flight_limit, Some(1));
}

#[test]
fn a_limit_of_streams_that_rises_is_used() {
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let server = super::serving(&[(STREAMS, 1)], move |mut peer, _| {
        peer.wait_at_most(Duration::from_millis(2));
        let (mut pending, mut answered, mut has_risen) = (Vec::new(), 0, false);
        loop {
            match peer.next() {
                None => return,
                Some(Got::Asked(asked)) => pending.push(asked),
                Some(Got::Other) => {}
                Some(Got::Nothing) => {
                    seen.fetch_max(pending.len(), SeqCst);
                    // While nothing else happens, so that the change alone permits more.
                    if answered > 100 && !has_risen {
                        has_risen = true;
                        write::settings(&mut peer.out, &[(STREAMS, 7)]);
                        continue;
                    }
                    answered += pending.len();
                    pending.drain(..).for_each(|asked| peer.right(&asked));
                }
            }
        }
    });
    let plan = Plan { pipeline: 7, until: Until::Requests(400), ..items(server.address) };
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(most.load(SeqCst), 7);
    assert_eq!(tally.in_flight_limit, Some(1));
}

/// The server's decoder fails if a block does not announce the smaller table.
#[test]
fn a_smaller_header_table_is_obeyed() {
    for (first, later) in [(0, 0), (4096, 0), (4096, 50), (100, 4096)] {
        let server = super::server(&[], move |i, peer, asked| {
            if i == 0 || i == 50 {
                let size = if i == 0 { first } else { later };
                write::settings(&mut peer.out, &[(TABLE_SIZE, size)]);
                peer.table = Some(size as usize);
            }
            peer.right(&asked);
        });
        let plan = Plan { until: Until::Requests(200), ..items(server.address) };
        assert_undisturbed(&run(&plan).unwrap());
    }
}

/// Requests with a content of 3,000 bytes, whose response is the number in front of it.
const UPLOADS: &str = r#"
protocol = "http"

[[request]]
method = "POST"
path = "/{n=int:0..99999}"
body = "{n}:{fill}"
status = 200
exact = "item {n}"
"#;

fn uploads() -> String {
    UPLOADS.replace("{fill}", &"x".repeat(3_000))
}

#[test]
fn content_is_sent_as_the_windows_permit() {
    // Windows of a stream that the server opens by so many bytes.
    for (window, step) in [(0, 1_000), (1, 997), (65_535, 5_000)] {
        let settings: &'static [(u16, u32)] = Box::leak(Box::new([(WINDOW, window)]));
        let server = super::serving(settings, move |mut peer, _| {
            peer.wait_at_most(Duration::from_millis(1));
            let mut waits = 0;
            while let Some(got) = peer.next() {
                match got {
                    Got::Asked(asked) => {
                        let content = format!("{}:{}", asked.number(), "x".repeat(3_000));
                        assert_eq!(asked.content, content.as_bytes());
                        write::window_update(&mut peer.out, 0, asked.content.len() as u32);
                        peer.right(&asked);
                    }
                    // Everything waits: each stream may send a little more.
                    Got::Nothing => {
                        for stream in peer.begun() {
                            write::window_update(&mut peer.out, stream, step);
                        }
                        waits += 1;
                        assert!(waits < 10_000, "the load stalls");
                    }
                    Got::Other => {}
                }
            }
        });
        let workload = over_http2(&uploads());
        let plan = Plan { workload, until: Until::Requests(100), ..items(server.address) };
        assert_undisturbed(&run(&plan).unwrap());
    }
}

/// A server that answers when it has seen the start of the content, permits no more of it, and sends nothing else.
#[test]
fn a_response_before_the_end_of_its_request_frees_the_stream() {
    let server = super::serving(&[(WINDOW, 100), (STREAMS, 4)], move |mut peer, requests| {
        while let Some(got) = peer.next() {
            // The first request may be written before the settings are known.
            let whole = if let Got::Asked(asked) = got { Some(asked) } else { None };
            for asked in whole.into_iter().chain(peer.take_begun()) {
                requests.fetch_add(1, SeqCst);
                write::window_update(&mut peer.out, 0, asked.content.len() as u32);
                peer.right(&asked);
            }
        }
    });
    let workload = over_http2(&uploads());
    let plan = Plan { workload, until: Until::Requests(200), ..items(server.address) };
    assert_undisturbed(&run(&plan).unwrap());
    assert_eq!(server.requests(), 200);
}

/// A setting that makes the windows of open streams negative, and then large.
#[test]
fn an_initial_window_that_changes_applies_to_open_streams() {
    let server = super::serving(&[(WINDOW, 2_000)], move |mut peer, _| {
        peer.wait_at_most(Duration::from_millis(1));
        let mut waits = 0;
        while let Some(got) = peer.next() {
            match got {
                Got::Asked(asked) => {
                    write::window_update(&mut peer.out, 0, asked.content.len() as u32);
                    peer.right(&asked);
                }
                Got::Nothing => {
                    waits += 1;
                    let size = [1_000, 10, 4_000, 2_000][waits % 4];
                    write::settings(&mut peer.out, &[(WINDOW, size)]);
                }
                Got::Other => {}
            }
        }
    });
    let workload = over_http2(&uploads());
    let plan = Plan { workload, until: Until::Requests(60), ..items(server.address) };
    assert_undisturbed(&run(&plan).unwrap());
}
