//! The results of broadcasts on a hub with two cores, of which the second answers late or not at
//! all: a member has a limited number in flight, and its Close frame follows its results.

use crate::hub::OPENING;
use regatta_engine::{Conn, Core, Limits, Next, Now, Sessions};
use regatta_proto::websocket::{CloseCode, Frame};
use regatta_service::hub::{Hub, Settings};
use std::time::{Duration, Instant};

struct Cores {
    now: Now,
    all: [Core<Sessions<Hub>>; 2],
}

impl Cores {
    fn new() -> Cores {
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let hub = Hub::new(Settings::default());
        let core = |own| {
            let mut core = Core::new(Sessions::new(hub.clone()), Limits::default(), now);
            core.set_core(own, 2);
            core
        };
        Cores { now, all: [core(0), core(1)] }
    }

    /// Passes letters on until none is pending.
    fn exchange(&mut self) {
        while self.all.iter().any(Core::has_letters) {
            for from in 0..2 {
                let letters: Vec<_> = self.all[from].letters().collect();
                letters.into_iter().for_each(|letter| self.all[1 - from].heard(letter));
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now.instant += time;
        let now = self.now;
        for core in &mut self.all {
            core.turn(now);
            core.tick(&());
        }
    }
}

fn member(core: &mut Core<Sessions<Hub>>) -> Conn {
    let conn = core.accept();
    core.received(conn, &mut OPENING.to_vec());
    read(core, conn);
    conn
}

/// Reads the payloads of the frames that a member receives. A Close frame is its code. Ends with
/// `FIN` if the hub has closed its side.
fn read(core: &mut Core<Sessions<Hub>>, conn: Conn) -> Vec<String> {
    let (mut got, mut closed) = (Vec::new(), false);
    loop {
        match core.next(conn, &()) {
            Next::Write { .. } => {
                let output = core.output(conn).to_vec();
                core.wrote(conn, output.len());
                got.extend(output);
            }
            Next::ShutdownWrite | Next::Close => {
                closed = true;
                break;
            }
            Next::Wait => break,
        }
    }
    let mut frames = Vec::new();
    let head = got.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |head| head + 4);
    let mut rest = &got[head..];
    while let [first, length, more @ ..] = rest {
        let (payload, next) = more.split_at(usize::from(*length));
        frames.push(match first & 15 {
            8 => u16::from_be_bytes([payload[0], payload[1]]).to_string(),
            _ => String::from_utf8(payload.to_vec()).unwrap(),
        });
        rest = next;
    }
    frames.extend(closed.then(|| "FIN".to_owned()));
    frames
}

fn masked(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.write_masked([1, 2, 3, 4], &mut out);
    out
}

fn broadcast(payload: usize) -> Vec<u8> {
    masked(&Frame::text(format!(r#"{{"type":"broadcast","payload":{payload}}}"#).as_bytes()))
}

fn close() -> Vec<u8> {
    let mut close = Vec::new();
    CloseCode::NORMAL.write("", &mut close);
    close[1] |= 0x80;
    close.splice(2..2, [0; 4]);
    close
}

fn copy(payload: usize) -> String {
    format!(r#"{{"type":"broadcast","payload":{payload}}}"#)
}

fn result(payload: usize, members: u32) -> String {
    format!(r#"{{"type":"broadcastResult","payload":{payload},"listenerCount":{members}}}"#)
}

#[test]
fn a_member_whose_results_are_missing_is_not_read_beyond_a_limit() {
    let mut cores = Cores::new();
    let sender = member(&mut cores.all[0]);
    let reader = member(&mut cores.all[1]);
    let mut sent = 0;
    while cores.all[0].wants_read(sender) {
        assert!(sent < 1000, "{sent} broadcasts without a result");
        cores.all[0].received(sender, &mut broadcast(sent));
        sent += 1;
        read(&mut cores.all[0], sender);
    }
    assert!(sent >= 100, "normal senders are not limited: {sent}");
    cores.exchange();
    assert!(cores.all[0].wants_read(sender), "it is read again");
    let expected: Vec<_> = (0..sent).map(|n| result(n, 2)).collect();
    assert_eq!(read(&mut cores.all[0], sender), expected);
    assert_eq!(read(&mut cores.all[1], reader), (0..sent).map(copy).collect::<Vec<_>>());
}

#[test]
fn large_broadcasts_without_a_result_are_limited_by_their_bytes() {
    let mut cores = Cores::new();
    let sender = member(&mut cores.all[0]);
    let text = format!(r#"{{"type":"broadcast","payload":"{}"}}"#, "x".repeat(300_000));
    let mut sent = 0;
    while cores.all[0].wants_read(sender) {
        assert!(sent < 20, "{sent} large broadcasts without a result");
        cores.all[0].received(sender, &mut masked(&Frame::text(text.as_bytes())));
        sent += 1;
        while let Next::Write { .. } = cores.all[0].next(sender, &()) {
            let length = cores.all[0].output(sender).len();
            cores.all[0].wrote(sender, length);
        }
    }
    assert_eq!(sent, 4);
}

#[test]
fn a_close_frame_right_behind_a_broadcast_is_answered_after_the_result() {
    for together in [true, false] {
        let mut cores = Cores::new();
        let sender = member(&mut cores.all[0]);
        let reader = member(&mut cores.all[1]);
        let (mut first, second) = ([broadcast(1), broadcast(2)].concat(), close());
        if together {
            first.extend(&second);
            cores.all[0].received(sender, &mut first);
        } else {
            cores.all[0].received(sender, &mut first);
            cores.all[0].received(sender, &mut second.clone());
        }
        assert_eq!(read(&mut cores.all[0], sender), [copy(1), copy(2)], "no answer yet");
        // The client may end its side already; what it still sends is ignored.
        cores.all[0].received(sender, &mut broadcast(3));
        if together {
            cores.all[0].ended(sender);
        }
        assert!(read(&mut cores.all[0], sender).is_empty());
        cores.exchange();
        let end = [result(1, 2), result(2, 2), "1000".into(), "FIN".into()];
        assert_eq!(read(&mut cores.all[0], sender), end);
        assert_eq!(read(&mut cores.all[1], reader), [copy(1), copy(2)]);
    }
}

#[test]
fn a_close_frame_right_behind_a_broadcast_is_answered_after_the_result_on_one_core() {
    let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
    let hub = Hub::new(Settings::default());
    let mut core = Core::new(Sessions::new(hub), Limits::default(), now);
    let sender = member(&mut core);
    core.received(sender, &mut [broadcast(1), broadcast(2), close()].concat());
    let all = [copy(1), copy(2), result(1, 1), result(2, 1), "1000".into(), "FIN".into()];
    assert_eq!(read(&mut core, sender), all);
}

#[test]
fn a_member_that_ends_its_side_receives_its_results_first() {
    let mut cores = Cores::new();
    let sender = member(&mut cores.all[0]);
    cores.all[0].received(sender, &mut broadcast(1));
    cores.all[0].stop(Duration::from_secs(5));
    cores.all[0].ended(sender);
    assert_eq!(read(&mut cores.all[0], sender), [copy(1)]);
    cores.exchange();
    let end = [result(1, 1), "1001".into(), "FIN".into()];
    assert_eq!(read(&mut cores.all[0], sender), end);
}

#[test]
fn a_member_that_a_drain_retires_receives_its_results_and_then_a_pause() {
    let mut cores = Cores::new();
    let [sender, reader] = [(); 2].map(|()| member(&mut cores.all[0]));
    cores.all[0].received(sender, &mut broadcast(1));
    cores.all[0].drain(Duration::from_secs(5), 1);
    cores.wait(Duration::from_secs(5));
    assert_eq!(read(&mut cores.all[0], sender), [copy(1)], "it waits for its result");
    let heard = read(&mut cores.all[0], reader);
    assert_eq!((&heard[..1], &heard[2..]), (&[copy(1)][..], &["1001".into(), "FIN".into()][..]));
    let pause = heard[1].strip_prefix(r#"{"type":"reconnect","after_ms":"#).expect(&heard[1]);
    assert!(pause.strip_suffix('}').is_some_and(|ms| ms.parse::<u16>().is_ok_and(|ms| ms <= 1000)));
    cores.exchange();
    let heard = read(&mut cores.all[0], sender);
    assert_eq!((&heard[0], heard.len()), (&result(1, 2), 4));
    assert!(heard[1].contains("reconnect"), "{heard:?}");
    assert_eq!(heard[2..], ["1001", "FIN"]);
}

#[test]
fn a_core_that_never_answers_delays_a_close_by_a_second_only() {
    for frame in [true, false] {
        let mut cores = Cores::new();
        let sender = member(&mut cores.all[0]);
        cores.all[0].received(sender, &mut broadcast(1));
        if frame {
            cores.all[0].received(sender, &mut close());
        } else {
            cores.all[0].ended(sender);
        }
        assert_eq!(read(&mut cores.all[0], sender), [copy(1)]);
        cores.all[0].settle(sender);
        cores.wait(Duration::from_millis(900));
        assert!(read(&mut cores.all[0], sender).is_empty());
        cores.all[0].settle(sender);
        cores.wait(Duration::from_millis(200));
        let code = if frame { "1000" } else { "1001" };
        assert_eq!(read(&mut cores.all[0], sender), [code, "FIN"]);
    }
}
