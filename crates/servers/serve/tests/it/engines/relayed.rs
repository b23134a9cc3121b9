//! The relay over real sockets. The test plays its clients and its upstream.

mod stops;

use crate::{
    DEADLINE,
    client::{Client, that_run},
    engines::{
        relay::{CLIENT_MOST, DOWN, LOST, Relay, Seen, UPSTREAM_FULL},
        upstream::{Closed, Upstream},
    },
    models::on_engine_models,
    server::{self, Server, Setting},
};
use regatta_engine::Limits;
use regatta_serve::{Model, Stop, serve_engine};
use std::{
    io::{ErrorKind, Write},
    net::{SocketAddr, TcpStream},
    ops::Deref,
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

on_engine_models!(
    replies_go_to_the_right_clients_in_order_with_many_pipelining_clients,
    only_the_unanswered_requests_get_an_error_when_the_upstream_dies,
    a_reset_of_the_upstream_is_handled_like_a_close,
    replies_in_pieces_are_put_together,
    service_returns_when_an_upstream_that_refused_connections_accepts_them,
    a_connect_that_fails_at_once_is_reported_in_the_same_turn,
    a_client_that_does_not_read_blocks_no_other_and_is_aborted_at_its_limit,
    clients_are_not_read_while_the_upstream_is_slow,
    no_client_gets_a_wrong_reply_however_often_either_side_disconnects,
    a_half_closed_client_gets_all_replies_and_then_the_end,
    an_upstream_that_does_not_answer_is_closed_after_the_idle_timeout,
);

/// The models that run engines.
const ENGINES: [Model; 5] =
    [Model::Select, Model::Poll, Model::Epoll, Model::Percore, Model::Uring];

/// A running relay.
struct Running {
    server: Server,
    seen: Arc<Seen>,
}

impl Deref for Running {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

fn start(model: Model, upstream: SocketAddr) -> Running {
    start_with(model, upstream, Setting::default())
}

fn start_with(model: Model, upstream: SocketAddr, setting: Setting) -> Running {
    let seen = Arc::<Seen>::default();
    let by = Arc::clone(&seen);
    let relay = move || Relay::seen_by(upstream, Arc::clone(&by));
    let server = Server::of_engines(model, &setting, relay);
    Running { server, seen }
}

/// Starts a relay that connects only once during a test.
fn start_patient(model: Model, upstream: SocketAddr, setting: Setting) -> Running {
    let seen = Arc::<Seen>::default();
    let by = Arc::clone(&seen);
    let server = Server::of_engines(model, &setting, move || {
        Relay::seen_by(upstream, Arc::clone(&by)).patient(Duration::from_secs(3600))
    });
    Running { server, seen }
}

fn replies_go_to_the_right_clients_in_order_with_many_pipelining_clients(model: Model) {
    let upstream = Upstream::new().answer(|line| format!("re {line}"));
    let server = start_with(model, upstream, Setting { cores: 2, ..Setting::default() });
    thread::scope(|scope| {
        for client in 0..50 {
            let mut connection = server.client();
            scope.spawn(move || {
                for round in 0..10 {
                    let requests: String =
                        (0..=round * 10).map(|i| format!("{client} {round} {i}\n")).collect();
                    connection.send(&requests);
                    for request in requests.lines() {
                        assert_eq!(connection.line(), format!("re {request}"));
                    }
                }
                connection.end();
                connection.expect_end();
            });
        }
    });
    let connects = server.seen.connects.load(Relaxed);
    assert!((1..=2).contains(&connects), "one per core: {connects}");
    server.stop();
    server.join();
}

fn only_the_unanswered_requests_get_an_error_when_the_upstream_dies(model: Model) {
    let upstream = Upstream::new();
    let server = start(model, upstream.addr);
    let (mut a, mut b) = (server.client(), server.client());
    let mut link = upstream.accept();
    a.send("a1\na2\na3\n");
    assert_eq!(link.lines(3), ["a1", "a2", "a3"]);
    b.send("b1\nb2\n");
    assert_eq!(link.lines(2), ["b1", "b2"]);
    a.send("a4\n");
    assert_eq!(link.line(), "a4");
    link.send("A1\nA2\nA3\nB1\nB2 is cut of");
    drop(link);
    assert_eq!(a.lines(4), ["A1", "A2", "A3", LOST]);
    assert_eq!(b.lines(2), ["B1", LOST]);
    // The upstream is back.
    let mut link = upstream.accept();
    b.send("b3\n");
    assert_eq!(link.line(), "b3");
    link.send("B3\n");
    assert_eq!(b.line(), "B3");
}

fn a_reset_of_the_upstream_is_handled_like_a_close(model: Model) {
    let upstream = Upstream::new();
    let server = start(model, upstream.addr);
    let mut client = server.client();
    let mut link = upstream.accept();
    client.send("1\n2\n");
    assert_eq!(link.line(), "1");
    rustix::net::sockopt::set_socket_linger(&link.stream, Some(Duration::ZERO)).unwrap();
    drop(link);
    assert_eq!(client.lines(2), [LOST, LOST]);
    let mut link = upstream.accept();
    client.send("3\n");
    assert_eq!(link.line(), "3");
}

fn replies_in_pieces_are_put_together(model: Model) {
    let upstream = Upstream::new();
    let server = start(model, upstream.addr);
    let (mut a, mut b) = (server.client(), server.client());
    let mut link = upstream.accept();
    a.send("a1\n");
    assert_eq!(link.line(), "a1");
    b.send("b1\n");
    assert_eq!(link.line(), "b1");
    for byte in "first\nsecond\n".chars() {
        link.send(byte.to_string());
    }
    assert_eq!((a.line(), b.line()), ("first".into(), "second".into()));
}

fn service_returns_when_an_upstream_that_refused_connections_accepts_them(model: Model) {
    let closed = Closed::new();
    let server = start(model, closed.addr);
    let mut client = server.client();
    for _ in 0..10 {
        client.send("x\n");
        assert_eq!(client.line(), DOWN);
    }
    let start = Instant::now();
    while server.seen.connects.load(Relaxed) < 3 {
        assert!(start.elapsed() < DEADLINE, "it does not retry");
        thread::sleep(Duration::from_millis(1));
    }
    let upstream = closed.listen();
    let mut link = upstream.accept();
    client.send("y\n");
    assert_eq!(link.line(), "y");
    link.send("Y\n");
    assert_eq!(client.line(), "Y");
}

fn a_connect_that_fails_at_once_is_reported_in_the_same_turn(model: Model) {
    // TCP does not connect to a broadcast address.
    let broadcast = "255.255.255.255:1".parse().unwrap();
    // The request arrives before its client is accepted, so it is waiting when the connect
    // fails. The checks of waiting clients would report the failure late, after 250 ms.
    let fastest = (0..10).map(|_| {
        let setting = Setting { early: Some("x\n"), ..Setting::default() };
        let start = Instant::now();
        let mut relay = start_patient(model, broadcast, setting);
        assert_eq!(relay.server.early.as_mut().expect("a client").line(), DOWN);
        let elapsed = start.elapsed();
        let mut late = relay.client();
        late.send("x\n");
        assert_eq!(late.line(), DOWN);
        assert_eq!(relay.seen.connects.load(Relaxed), 1);
        elapsed
    });
    let fastest = fastest.min().unwrap();
    assert!(fastest < Limits::LIVENESS_INTERVAL / 2, "{fastest:?}");
}

#[test]
fn an_unanswered_connect_times_out_and_is_abandoned() {
    thread::scope(|scope| {
        for model in that_run(ENGINES) {
            scope.spawn(move || {
                let (upstream, _queued) = unanswering();
                let server = start_patient(model, upstream.addr, Setting::default());
                let mut client = server.client();
                let start = Instant::now();
                client.send("x\n");
                assert_eq!(client.line(), DOWN);
                let elapsed = start.elapsed();
                assert!(elapsed >= Limits::CONNECT - Duration::from_secs(1), "{elapsed:?}");
                assert!(elapsed < Limits::CONNECT * 3, "{elapsed:?}");
                expect_given_up(upstream.addr);
            });
        }
    });
}

/// Returns an upstream whose accept queue is full, so it does not answer.
fn unanswering() -> (Upstream, Vec<TcpStream>) {
    let upstream = Closed::new().listen_with(0);
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&upstream.addr, Duration::from_millis(300)) {
        queued.push(stream);
    }
    (upstream, queued)
}

/// Checks that the kernel no longer tries to connect to `addr`.
fn expect_given_up(addr: SocketAddr) {
    let start = Instant::now();
    while connecting_to(addr) > 0 {
        assert!(start.elapsed() < DEADLINE, "it is still connecting");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns how many sockets of this machine are connecting to `addr` (proc_net_tcp(5)).
fn connecting_to(addr: SocketAddr) -> usize {
    const SYN_SENT: &str = "02";
    let remote = format!("0100007F:{:04X}", addr.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields.filter(|fields| fields[2] == remote && fields[3] == SYN_SENT).count()
}

fn a_client_that_does_not_read_blocks_no_other_and_is_aborted_at_its_limit(model: Model) {
    let upstream = Upstream::new().answer(|line| match line {
        "big" => "x".repeat(64 * 1024),
        small => format!("re {small}"),
    });
    let server = start(model, upstream);
    let (mut slow, mut other) = (server.client(), server.client());
    // 32 MiB of replies are more than the kernel and the relay buffer.
    slow.send("big\n".repeat(512));
    for i in 0..200 {
        other.send(format!("{i}\n"));
        assert_eq!(other.line(), format!("re {i}"));
    }
    let start = Instant::now();
    while server.seen.aborted.load(Relaxed) == 0 {
        assert!(start.elapsed() < DEADLINE, "it is not aborted");
        other.send("y\n");
        assert_eq!(other.line(), "re y");
    }
    let most = server.seen.to_client.load(Relaxed);
    assert!(most <= CLIENT_MOST + 64 * 1024 + 1, "{most} bytes were buffered for it");
    slow.expect_gone();
    assert_eq!(server.seen.aborted.load(Relaxed), 1);
}

fn clients_are_not_read_while_the_upstream_is_slow(model: Model) {
    // Long lines: the number of a client's requests that may wait is bounded too.
    const LINE: usize = 16 * 1024;
    // More than the kernel buffers.
    const MOST: usize = 64 << 20;
    let upstream = Closed::new().small().listen();
    let server = start(model, upstream.addr);
    let mut clients = [server.client(), server.client()];
    let mut link = upstream.accept();
    let request = format!("{}\n", "x".repeat(LINE - 1));
    let [a, b] = &mut clients;
    let sent = [a, b].map(|client| send_until_full(client, &request, &server.seen));
    assert!(sent.iter().sum::<usize>() < MOST, "{sent:?} bytes were accepted");
    let most = server.seen.to_upstream.load(Relaxed);
    // Input that was already read when it became full is added: on the ring, up to all its
    // buffers.
    let bounds = UPSTREAM_FULL..=UPSTREAM_FULL + 512 * 1024;
    assert!(bounds.contains(&most), "{most} bytes were buffered for the upstream");
    let whole = sent.map(|bytes| bytes.div_ceil(LINE));
    thread::scope(|scope| {
        for ((client, sent), &whole) in clients.iter_mut().zip(sent).zip(&whole) {
            scope.spawn(move || {
                client.send(request_rest(sent, LINE));
                for _ in 0..whole {
                    assert_eq!(client.line(), "ok");
                }
            });
        }
        for _ in 0..whole.iter().sum::<usize>() {
            assert_eq!(link.line().len(), LINE - 1);
            link.send("ok\n");
        }
    });
}

/// Returns the missing part of the last request.
fn request_rest(sent: usize, line: usize) -> String {
    match sent % line {
        0 => String::new(),
        begun => format!("{}\n", "x".repeat(line - 1 - begun)),
    }
}

/// Sends `request` repeatedly until the relay buffers its maximum for the upstream, and accepts
/// nothing for a while. Returns the number of bytes accepted.
fn send_until_full(client: &mut Client, request: &str, seen: &Seen) -> usize {
    const STUCK: Duration = Duration::from_millis(500);
    let bytes = request.repeat(5).into_bytes();
    client.stream.set_write_timeout(Some(STUCK)).unwrap();
    let mut sent = 0;
    let start = Instant::now();
    loop {
        let full = seen.to_upstream.load(Relaxed) > UPSTREAM_FULL;
        match client.stream.write(&bytes[sent % request.len()..]) {
            Ok(taken) => sent += taken,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if full {
                    break;
                }
                assert!(start.elapsed() < DEADLINE, "the relay does not fill up");
            }
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 256 << 20, "the relay accepts input without limit");
    }
    client.stream.set_write_timeout(Some(DEADLINE)).unwrap();
    sent
}

/// Numbers from a seed (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn no_client_gets_a_wrong_reply_however_often_either_side_disconnects(model: Model) {
    const CLIENTS: u64 = 20;
    // Each connection to the upstream answers some lines, and closes inside a reply.
    let upstream = Upstream::new().answer_until(|connection| {
        let mut random = Random(connection + 1);
        let lines = random.below(500);
        (lines, random.below(2) == 0)
    });
    let setting = Setting { cores: 2, ..Setting::default() };
    let server = start_with(model, upstream, setting);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let addr = server.addr;
            scope.spawn(move || {
                let mut random = Random(0x9e37_79b9 + client);
                let mut connection = Client::connect(addr);
                let mut answered = 0;
                let start = Instant::now();
                for round in 0.. {
                    if answered >= 500 {
                        break;
                    }
                    assert!(start.elapsed() < DEADLINE, "{answered} were answered");
                    let depth = 1 + random.below(30);
                    let request = |i| format!("{client} {round} {i}");
                    (0..depth).for_each(|i| connection.send(format!("{}\n", request(i))));
                    if random.below(10) == 0 {
                        // The client does not wait for its replies.
                        connection = Client::connect(addr);
                        continue;
                    }
                    for i in 0..depth {
                        let reply = connection.line();
                        if reply == format!("re {}", request(i)) {
                            answered += 1;
                        } else {
                            assert!([DOWN, LOST].contains(&&*reply), "{}: {reply}", request(i));
                        }
                    }
                }
            });
        }
    });
    server.stop();
    server.join();
}

fn a_half_closed_client_gets_all_replies_and_then_the_end(model: Model) {
    let upstream = Upstream::new();
    let server = start(model, upstream.addr);
    let mut client = server.client();
    let mut link = upstream.accept();
    client.send("1\n2\n3\n");
    client.end();
    assert_eq!(link.lines(3), ["1", "2", "3"]);
    link.send("one\ntwo\n");
    assert_eq!(client.lines(2), ["one", "two"]);
    link.send("three\n");
    assert_eq!(client.line(), "three");
    client.expect_end();
}

fn an_upstream_that_does_not_answer_is_closed_after_the_idle_timeout(model: Model) {
    let upstream = Upstream::new();
    let idle = Duration::from_secs(1);
    let limits = Limits { idle, ..Limits::default() };
    let server = start_with(model, upstream.addr, Setting { limits, ..Setting::default() });
    let mut client = server.client();
    let mut link = upstream.accept();
    client.send("1\n");
    assert_eq!(link.line(), "1");
    // The client waits longer than its own idle timeout, but waiting for a reply does not count
    // as idle.
    assert_eq!(client.line(), LOST);
    link.expect_gone();
}

#[test]
fn models_that_run_no_engines_explain_why() {
    let no_upstream = "127.0.0.1:1".parse().unwrap();
    for model in Model::ALL {
        if ENGINES.contains(&model) {
            continue;
        }
        let host = server::host(&Setting::default(), Stop::new().unwrap());
        let error = serve_engine(|| Relay::new(no_upstream), model, &host).unwrap_err().to_string();
        assert!(error.contains(model.name()), "{error}");
        assert!(error.contains("percore"), "does not name an alternative: {error}");
    }
}
