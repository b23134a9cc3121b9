//! Replies that are streams of messages (gRPC, server streaming): their counts, and when the messages came.

use super::peer::{Asked, Got, Peer};
use crate::common::{Server, assert_undisturbed, at, bounded, in_burst, plan, run};
use regatta_http2::{
    ErrorCode,
    frame::{Kind, write},
};
use regatta_load::{Arrivals, Drive, Plan, Tally, Until};
use regatta_record::OperationCounted;
use regatta_script::Workload;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

const MS: u64 = 1_000_000;

/// A stream of four messages, whose content is the number.
const FOUR: &str = r#"
protocol = "grpc"

[[request]]
path = "/test.Items/Four"
stream = true
messages = 4
expect_hex = "08{n:varint}"
"#;

/// One connection with two streams.
fn streams(target: SocketAddr) -> Plan {
    let workload = Workload::from_text(FOUR, "four").unwrap();
    Plan { workload, host: "a.test".into(), pipeline: 2, ..plan(target) }
}

const KIND: &[(&str, &str)] = &[("content-type", "application/grpc")];

/// Adds messages, in one DATA frame.
fn messages(peer: &mut Peer, stream: u32, numbers: &[u8]) {
    let framed = |number: &u8| [0, 0, 0, 0, 2, 8, *number];
    let content: Vec<u8> = numbers.iter().flat_map(framed).collect();
    peer.data(stream, &content, false);
}

/// Adds trailers with this status.
fn end(peer: &mut Peer, stream: u32, status: &str) {
    // A block of trailers is one of a head without `:status`.
    use regatta_http2::{
        frame::flag,
        hpack::{Encoder, Indexing},
    };
    let mut block = Vec::new();
    let field = (&b"grpc-status"[..], status.as_bytes(), Indexing::Without);
    Encoder::default().encode([field], &mut block);
    peer.send(Kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block);
    peer.open -= 1;
}

/// Adds a right stream.
fn right(peer: &mut Peer, stream: u32) {
    peer.head(stream, "200", KIND, false);
    messages(peer, stream, &[1, 2, 3, 4]);
    end(peer, stream, "0");
}

fn by_name<'t>(tally: &'t Tally, name: &str) -> &'t OperationCounted {
    tally.operations.iter().find(|one| one.operation.name == name).unwrap()
}

/// The counts of all kinds, and the number of their latencies.
fn counts(tally: &Tally) -> Vec<(u64, u64)> {
    tally.operations.iter().map(|one| (one.count, one.histogram.len())).collect()
}

/// A server that sends each stream in steps: messages, after a pause of so many milliseconds.
fn in_steps(steps: &'static [(u64, &'static [u8])]) -> Server {
    super::serving(&[], move |mut peer, _| {
        peer.wait_at_most(Duration::from_millis(1));
        // The streams, when their next step is due, and its number.
        let mut begun: Vec<(u32, Instant, usize)> = Vec::new();
        while let Some(got) = peer.next() {
            let now = Instant::now();
            let after = |step: usize| now + Duration::from_millis(steps[step].0);
            if let Got::Asked(Asked { stream, .. }) = got {
                peer.head(stream, "200", KIND, false);
                begun.push((stream, after(0), 0));
            }
            for (stream, due, step) in &mut begun {
                if *due > now {
                    continue;
                }
                messages(&mut peer, *stream, steps[*step].1);
                *step += 1;
                match *step == steps.len() {
                    true => end(&mut peer, *stream, "0"),
                    false => *due = after(*step),
                }
            }
            begun.retain(|(_, _, step)| *step < steps.len());
        }
    })
}

/// The medians of the time to the first message, of the longest gap, and of the whole stream, in milliseconds.
fn medians(steps: &'static [(u64, &'static [u8])]) -> [u64; 3] {
    let server = in_steps(steps);
    let tally = run(&Plan { until: Until::Requests(20), ..streams(server.address) }).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(counts(&tally), [(80, 0), (20, 20), (20, 20)]);
    assert_eq!((tally.requests, tally.histogram.len()), (20, 20));
    let first = &by_name(&tally, "first_messages").histogram;
    let gap = &by_name(&tally, "longest_gaps").histogram;
    [first, gap, &tally.histogram].map(|times| times.value_at_quantile(0.5) / MS)
}

#[test]
fn the_first_message_and_the_longest_gap_tell_servers_apart() {
    // Evenly; all at the end; the first one early, and then a stall.
    let [first, gap, whole] = medians(&[(40, &[1]), (40, &[2]), (40, &[3]), (40, &[4])]);
    assert!((39..80).contains(&first) && (30..100).contains(&gap), "{first} {gap}");
    assert!(whole >= 155, "{whole}");
    let [first, gap, whole] = medians(&[(150, &[1, 2, 3, 4])]);
    assert!(first >= 149 && gap == 0 && whole >= first, "{first} {gap} {whole}");
    let [first, gap, whole] = medians(&[(0, &[1]), (150, &[2, 3, 4])]);
    assert!(first < 75 && (100..250).contains(&gap) && whole >= 149, "{first} {gap} {whole}");
}

#[test]
fn every_drive_counts_messages_of_the_replies_that_it_counts() {
    let server = super::server(&[], |_, peer, asked| right(peer, asked.stream));
    let plan = Plan { connections: 3, threads: 2, ..streams(server.address) };
    let churned = Plan { pipeline: 1, drive: Drive::Churn, ..plan.clone() };
    let opened = Plan { drive: at(300, Arrivals::Poisson), ..plan.clone() };
    for plan in [plan.clone(), Plan { drive: bounded(5), ..plan.clone() }, churned, opened] {
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        let [(messages, none), (first, firsts), (gap, gaps)] = counts(&tally)[..] else { panic!() };
        let requests = tally.requests;
        assert_eq!((messages, first, gap, none), (4 * requests, requests, requests, 0));
        assert!(requests > 20, "{requests}");
        assert_eq!((firsts, gaps), (tally.histogram.len(), firsts));
        assert_eq!(by_name(&tally, "messages").whole_run, 4 * tally.replies);
    }
    let tally = run(&in_burst(1, 40, plan)).unwrap();
    assert_undisturbed(&tally);
    assert_eq!(counts(&tally), [(480, 0), (120, 120), (120, 120)]);
}

#[test]
fn unary_calls_have_only_requests() {
    let server = super::server(&[], |_, peer, asked| {
        peer.head(asked.stream, "200", KIND, false);
        messages(peer, asked.stream, &[1]);
        end(peer, asked.stream, "0");
    });
    let text = "protocol = \"grpc\"\n[[request]]\npath = \"/a/b\"\nexpect_hex = \"0801\"\n";
    let workload = Workload::from_text(text, "unary").unwrap();
    let until = Until::Requests(20);
    let tally = run(&Plan { workload, until, ..streams(server.address) }).unwrap();
    assert_undisturbed(&tally);
    assert!(tally.operations.is_empty());
}

/// One stream at a time, which takes 40 ms, and 50 a second are due.
#[test]
fn in_open_loop_the_first_message_counts_from_the_intended_send() {
    let server = in_steps(&[(0, &[1, 2, 3]), (40, &[4])]);
    let plan = Plan {
        pipeline: 1,
        drive: at(50, Arrivals::Constant),
        until: Until::Elapsed(Duration::from_secs(1)),
        timeout: Duration::from_secs(20),
        ..streams(server.address)
    };
    let tally = run(&plan).unwrap();
    assert_undisturbed(&tally);
    let firsts = &by_name(&tally, "first_messages").histogram;
    assert_eq!(firsts.len(), tally.histogram.len());
    // The last ones waited for about as long as all others before them took.
    assert!(firsts.max() / MS > 300, "{}", firsts.max() / MS);
    assert!(firsts.max() + 30 * MS <= tally.histogram.max());
}

/// Some streams stall after two messages, while others continue: not the last ones, with which the connection
/// would be given up.
#[test]
fn a_stream_that_stalls_is_a_timeout_and_is_cancelled_once() {
    let (cancelled, stalled) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (seen, stalls) = (cancelled.clone(), stalled.clone());
    let mut server = super::serving(&[], move |mut peer, requests| {
        peer.wait_at_most(Duration::from_millis(1));
        let mut held = None;
        while let Some(got) = peer.next() {
            match got {
                Got::Asked(Asked { stream, .. }) => {
                    let number = requests.fetch_add(1, SeqCst);
                    if number % 10 == 9 && number < 200 && held.is_none() {
                        stalls.fetch_add(1, SeqCst);
                        peer.head(stream, "200", KIND, false);
                        messages(&mut peer, stream, &[1, 2]);
                        held = Some(stream);
                    } else {
                        thread::sleep(Duration::from_millis(10));
                        right(&mut peer, stream);
                    }
                }
                Got::Other if peer.resets > 0 => {
                    seen.fetch_add(std::mem::take(&mut peer.resets), SeqCst);
                    // What comes late belongs to nobody.
                    if let Some(stream) = held.take() {
                        messages(&mut peer, stream, &[3, 4]);
                    }
                }
                Got::Other | Got::Nothing => {}
            }
        }
    });
    let timeout = Duration::from_millis(400);
    let plan = Plan { until: Until::Requests(300), timeout, ..streams(server.address) };
    let tally = run(&plan).unwrap();
    server.die();
    let stalled = stalled.load(SeqCst);
    assert!(stalled > 1, "{stalled}");
    assert_eq!((tally.errors.timeout, tally.errors.total()), (stalled, stalled), "{tally:?}");
    assert_eq!(cancelled.load(SeqCst), stalled);
    assert_eq!(by_name(&tally, "messages").whole_run, 4 * tally.replies);
    assert_eq!(tally.replies + stalled, 300);
}

#[test]
fn messages_of_streams_that_fail_do_not_count() {
    let server = super::server(&[], |i, peer, Asked { stream, .. }| match i % 4 {
        1 => {
            peer.head(stream, "200", KIND, false);
            messages(peer, stream, &[1, 2, 3]);
            write::reset(&mut peer.out, stream, ErrorCode::NO_ERROR);
            peer.open -= 1;
        }
        2 => {
            peer.head(stream, "200", KIND, false);
            messages(peer, stream, &[1, 2, 3, 4]);
            end(peer, stream, "8");
        }
        3 => {
            peer.head(stream, "200", KIND, false);
            messages(peer, stream, &[1, 2, 4, 3]);
            end(peer, stream, "0");
        }
        _ => right(peer, stream),
    });
    let until = Until::Requests(80);
    let plan = Plan { until, tolerates: Some(1.0), ..streams(server.address) };
    let tally = run(&plan).unwrap();
    assert_eq!((tally.errors.reset, tally.errors.wrong_reply), (20, 40), "{:?}", tally.causes);
    assert_eq!(counts(&tally), [(80, 0), (20, 20), (20, 20)]);
    let cause =
        "the server reset the stream with NO_ERROR (RST_STREAM; RFC 9113, 6.4), after 3 messages";
    assert_eq!(tally.causes.get(cause), Some(&20), "{:?}", tally.causes);
    let wrong = tally.first_wrong.unwrap();
    assert_eq!(wrong.received, "grpc-status 8 (RESOURCE_EXHAUSTED), after 4 messages");
}

/// A server that begins the second stream of each connection, and says that it did not process it.
#[test]
fn a_stream_that_has_begun_is_not_sent_again() {
    let server = super::serving(&[], |mut peer, _| {
        let Some(first) = peer.ask() else { return };
        right(&mut peer, first.stream);
        let Some(second) = peer.ask() else { return };
        peer.head(second.stream, "200", KIND, false);
        messages(&mut peer, second.stream, &[1, 2, 3]);
        peer.go_away(first.stream, ErrorCode::NO_ERROR);
        peer.finish();
    });
    let plan = Plan { pipeline: 1, until: Until::Requests(20), ..streams(server.address) };
    let tally = run(&plan).unwrap();
    assert_eq!((tally.requests, tally.errors.reset, tally.sent_again), (10, 10, 0), "{tally:?}");
    let (cause, times) = tally.causes.first_key_value().unwrap();
    assert!(cause.contains("had not processed") && cause.ends_with("after 3 messages"), "{cause}");
    assert_eq!(*times, 10);
    assert_eq!(by_name(&tally, "messages").whole_run, 40);
}

/// The first stream of each connection takes long, and the server closes a connection after five.
#[test]
fn extra_requests_of_a_bounded_load_are_in_no_figure() {
    let server = super::server(&[], |i, peer, asked| {
        if i == 0 {
            thread::sleep(Duration::from_millis(100));
        }
        right(peer, asked.stream);
        if i == 4 {
            peer.finish();
        }
    });
    let until = Until::Elapsed(Duration::from_secs(1));
    let plan = Plan { connections: 2, drive: bounded(2), until, ..streams(server.address) };
    let tally = run(&plan).unwrap();
    assert!(tally.errors.closed_early + tally.errors.closed_idle > 2, "{:?}", tally.errors);
    let latencies = tally.histogram.len();
    let [_, (_, firsts), (_, gaps)] = counts(&tally)[..] else { panic!() };
    assert_eq!((firsts, gaps), (latencies, latencies));
}

/// A stream of any messages.
const ANY: &str = r#"
protocol = "grpc"

[[request]]
path = "/test.Items/Any"
stream = true
"#;

/// The first stream of a connection is right. The second one is complete after three times the timeout,
/// and the third one never pauses until then, so that bytes of it are always unread.
#[test]
fn streams_that_never_pause_and_late_ones_beside_them_time_out() {
    let timeout = Duration::from_secs(1);
    let server = super::serving(&[], move |mut peer, requests| {
        let Some(first) = peer.ask() else { return };
        right(&mut peer, first.stream);
        let (Some(late), Some(flood)) = (peer.ask(), peer.ask()) else { return };
        requests.fetch_add(3, SeqCst);
        let until = Instant::now() + 3 * timeout;
        peer.head(late.stream, "200", KIND, false);
        messages(&mut peer, late.stream, &[1]);
        peer.head(flood.stream, "200", KIND, false);
        while Instant::now() < until {
            (0..64).for_each(|_| peer.data(flood.stream, &[0; 16_000], false));
            if peer.flush().is_none() {
                return;
            }
        }
        end(&mut peer, late.stream, "0");
        end(&mut peer, flood.stream, "0");
        peer.finish();
    });
    for until in [Until::Requests(3), Until::Elapsed(Duration::from_millis(300))] {
        let workload = Workload::from_text(ANY, "any").unwrap();
        let tally = run(&Plan { workload, timeout, until, ..streams(server.address) }).unwrap();
        assert_eq!((tally.errors.timeout, tally.errors.total()), (2, 2), "{:?}", tally.causes);
        assert_eq!(tally.replies, 1);
        assert_eq!(by_name(&tally, "messages").whole_run, 4, "those of the right stream");
    }
}

#[test]
fn a_first_stream_may_take_as_long_as_the_timeout() {
    let server = super::server(&[], |i, peer, asked| {
        if i == 0 {
            thread::sleep(Duration::from_millis(700));
        }
        right(peer, asked.stream);
    });
    let (patience, timeout) = (Duration::from_millis(200), Duration::from_secs(5));
    let tally = run(&Plan { patience, timeout, ..streams(server.address) }).unwrap();
    assert_undisturbed(&tally);
}

/// A server that permits no content at first, and sends a message all the same.
#[test]
fn a_message_before_its_request_is_complete_is_wrong() {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    let server = super::serving(&[(INITIAL_WINDOW_SIZE, 0)], |mut peer, _| {
        peer.wait_at_most(Duration::from_millis(1));
        let mut guessed = Vec::new();
        while let Some(got) = peer.next() {
            if let Got::Asked(Asked { stream, .. }) = got {
                if !guessed.contains(&stream) {
                    peer.head(stream, "200", KIND, false);
                    messages(&mut peer, stream, &[1]);
                }
                messages(&mut peer, stream, &[2, 3, 4]);
                end(&mut peer, stream, "0");
            }
            for stream in peer.begun() {
                if !guessed.contains(&stream) {
                    guessed.push(stream);
                    peer.head(stream, "200", KIND, false);
                    messages(&mut peer, stream, &[1]);
                    write::window_update(&mut peer.out, stream, 1_000);
                }
            }
        }
    });
    let plan = Plan { until: Until::Requests(9), ..streams(server.address) };
    let wrong = run(&plan).unwrap().first_wrong.expect("a guess");
    let expected = "content of the response, although the server has got only 0 bytes of the \
                    request's content";
    assert_eq!(wrong.received, expected);
    let tally = run(&Plan { tolerates: Some(1.0), ..plan }).unwrap();
    // The settings of the server arrive after the first request was sent.
    assert_eq!((tally.requests, tally.errors.wrong_reply), (1, 8), "{:?}", tally.causes);
    assert_eq!(by_name(&tally, "messages").whole_run, 4);
}
