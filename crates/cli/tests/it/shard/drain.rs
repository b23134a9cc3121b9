//! A paced drain of the proxy: idle clients are closed one after the other, and clients that ask for it are requested to
//! reconnect. None of this needs a node.

use crate::support::{
    Server, on_models, refused, regatta,
    shard::{client, client::Client},
    until,
};
use std::{
    net::TcpStream,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

/// Long enough that what a busy machine delays is a small part of it.
const DRAIN: Duration = Duration::from_secs(4);

/// A proxy without nodes on two cores that drains for [`DRAIN`].
fn proxy(model: &str) -> Server {
    Server::start(regatta!(
        "shard --model {model} --cores 2 --nodes 127.0.0.1:1 --drain {}s",
        DRAIN.as_secs()
    ))
}

on_models!(idle_clients_are_closed_evenly_over_the_drain: select, poll, epoll, percore, uring);

fn idle_clients_are_closed_evenly_over_the_drain(model: &str) {
    const CLIENTS: usize = 100;
    const PARTS: u32 = 4;
    let mut server = proxy(model);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| client(&server)).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.say("PING"), "+PONG\r\n"));
    thread::sleep(Duration::from_millis(1100)); // they count as silent after a second
    let begins = Barrier::new(CLIENTS + 1);
    let mut start = Instant::now();
    let closed: Vec<Instant> = thread::scope(|scope| {
        let each = |mut client: Client| {
            let begins = &begins;
            scope.spawn(move || {
                begins.wait();
                assert_eq!(client.next(), None);
                Instant::now()
            })
        };
        let threads: Vec<_> = clients.into_iter().map(each).collect();
        begins.wait();
        start = Instant::now();
        server.signal("-TERM");
        until("nobody is admitted", || TcpStream::connect(server.addr).is_err());
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let even = CLIENTS / PARTS as usize;
    for part in 0..PARTS {
        let from = start + DRAIN / PARTS * part;
        let here = closed.iter().filter(|at| (from..from + DRAIN / PARTS).contains(*at)).count();
        assert!(here <= even * 7 / 5, "{model}: {here} in part {part}, {even} are even");
    }
    assert!(server.ended().success(), "{model}");
}

on_models!(clients_that_send_requests_leave_before_the_end: select, poll, epoll, percore, uring);

/// Right behind a reply: see the tests in `proxy::drain`.
fn clients_that_send_requests_leave_before_the_end(model: &str) {
    let mut server = proxy(model);
    let mut clients: Vec<Client> = (0..10).map(|_| client(&server)).collect();
    let start = Instant::now();
    server.signal("-TERM");
    until("nobody is admitted", || TcpStream::connect(server.addr).is_err());
    while start.elapsed() < DRAIN * 3 / 4 {
        clients.retain_mut(|client| {
            // One that was closed may notice only now.
            let reply = client.try_send(&["PING"]).and_then(|()| client.try_next());
            let reply = reply.ok().flatten();
            assert!(reply.as_ref().is_none_or(|reply| reply == b"+PONG\r\n"), "{model}: {reply:?}");
            reply.is_some()
        });
        thread::sleep(Duration::from_millis(10)); // the pace of the clients
    }
    assert!(clients.len() < 8, "{model}: {} clients are left", clients.len());
    drop(clients);
    assert!(server.ended().success(), "{model}");
}

on_models!(a_client_that_asks_for_it_is_requested_to_reconnect: select, poll, epoll, percore, uring);

fn a_client_that_asks_for_it_is_requested_to_reconnect(model: &str) {
    let mut server = proxy(model);
    let [mut asks, mut other] = [(); 2].map(|()| client(&server));
    for client in [&mut asks, &mut other] {
        assert!(client.say("HELLO 3").starts_with("%7\r\n"), "{model}");
    }
    let request = "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip";
    assert_eq!(asks.say(request), "+OK\r\n", "{model}");
    let start = Instant::now();
    server.signal("-TERM");
    let push = String::from_utf8(asks.next().expect("a push")).unwrap();
    let words: Vec<&str> = push.split("\r\n").collect();
    let within = format!(":{}", DRAIN.as_secs());
    assert_eq!((&words[..3], &words[4..]), (&[">4", "$6", "MOVING"][..], &[&within, "_", ""][..]));
    assert!(words[3].strip_prefix(':').is_some_and(|word| word.parse::<u64>().is_ok()), "{push}");
    // It is served until the end of the drain. The other one is closed before.
    while start.elapsed() < DRAIN * 3 / 4 {
        assert_eq!(asks.say("PING"), "+PONG\r\n", "{model}");
        thread::sleep(Duration::from_millis(20)); // the pace of the client
    }
    assert_eq!((other.next(), asks.next()), (None, None), "{model}");
    assert!(start.elapsed() >= DRAIN, "{model}: {:?}", start.elapsed());
    assert!(server.ended().success(), "{model}");
}

/// Without a drain nobody would be asked to reconnect. And what is unknown on one connection is unknown on all.
#[test]
fn without_a_drain_the_command_is_unknown() {
    let server = Server::start(regatta!("shard --nodes 127.0.0.1:1"));
    for _ in 0..5 {
        let mut client = client(&server);
        client.say("HELLO 3");
        let reply = client.say("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none");
        assert!(reply.starts_with('-'), "{reply}");
    }
}

#[test]
fn models_that_close_all_clients_at_once_refuse_a_drain() {
    for model in ["threads", "green", "fork", "prefork"] {
        let error = refused(regatta!("shard --model {model} --nodes 127.0.0.1:1 --drain 1s"));
        assert!(error.contains(&format!("`{model}` runs `shard` only without --drain")), "{error}");
    }
}
