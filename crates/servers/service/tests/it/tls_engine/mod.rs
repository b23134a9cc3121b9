//! An engine over TLS: everything arrives as without TLS, however the bytes are cut, and failures are
//! reported with their reason.

mod peer;
mod relay;
mod world;

use regatta_engine::{Limits, simulator::Random};
use rustls::version::{TLS12, TLS13};
use std::{collections::HashSet, time::Duration};
use world::{Configs, Identity, World};

const HISTORIES: u64 = 300;
/// Steps of a history; most need some thousands.
const STEPS: usize = 400_000;

/// How a client ends its side after it has sent everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ends {
    CloseNotify,
    Fin,
    Both,
}

/// What a client sends whose TLS is wrong.
const WRONG: [&[u8]; 5] = [
    b"*1\r\n$4\r\nPING\r\n",
    b"\x15\x03\x03\x00\x02\x02\x28",
    b"\x16\x03\x01\x3f\xff",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x17\x03\x03\x00\x14twenty sealed bytes!",
];

/// Some clients send random bytes, and get all answers. One, which is wrong, ends alone.
fn history(seed: u64, identity: &Identity, visited: &mut HashSet<(bool, bool, bool, Ends)>) {
    let mut random = Random::new(!seed);
    let mut configs = Configs::new(identity);
    let is_old = random.chance(300);
    let version = if is_old { &TLS12 } else { &TLS13 };
    configs.client = identity.client(version);
    let (for_clients, for_servers) = (random.chance(800), random.chance(700));
    configs.clients = configs.clients.filter(|_| for_clients);
    configs.servers = for_servers.then(|| identity.client(version));
    let mut world = World::new(seed, configs);
    let count = 1 + random.below(3);
    let most = random.magnitude(1, 400_000);
    let mut clients = Vec::new();
    for _ in 0..count {
        let length = random.magnitude(1, most) as usize;
        let data: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        let ends = random.pick(&[Ends::CloseNotify, Ends::Fin, Ends::Both]);
        visited.insert((for_clients, for_servers, is_old, ends));
        clients.push((world.client(), data, 0, ends));
    }
    let wrong = (for_clients && random.chance(500)).then(|| world.client());
    let mut wrong_at = random.below(300);
    let mut steps = 0;
    while clients.iter().any(|(place, ..)| !world.peers[*place].is_gone)
        || wrong.is_some_and(|place| !world.peers[place].is_gone)
    {
        steps += 1;
        assert!(steps < STEPS, "history {seed} never ends");
        for (place, data, sent, ends) in &mut clients {
            let peer = &mut world.peers[*place];
            if *sent > data.len() || peer.sent.len() > 100_000 {
                continue;
            }
            let end = (*sent + random.magnitude(1, 50_000) as usize).min(data.len());
            peer.say(&data[*sent..end]);
            *sent = end;
            if *sent == data.len() && !peer.is_handshaking() {
                if *ends != Ends::Fin {
                    peer.close_notify();
                }
                peer.has_ended = *ends != Ends::CloseNotify || !peer.has_tls();
                // It has nothing more to send.
                *sent = usize::MAX;
            }
        }
        if let Some(place) = wrong {
            wrong_at = wrong_at.saturating_sub(1);
            let peer = &mut world.peers[place];
            if wrong_at == 0 && !peer.is_broken {
                peer.is_broken = true;
                peer.sent.extend_from_slice(random.pick(&WRONG));
                peer.has_ended = true;
            }
        }
        world.step();
    }
    for (place, data, ..) in &clients {
        let peer = &world.peers[*place];
        let answers: Vec<u8> = data.iter().map(|byte| byte.wrapping_add(1)).collect();
        assert_eq!(peer.plain.len(), answers.len(), "history {seed}");
        assert!(peer.plain == answers, "history {seed}: other bytes");
        assert_eq!(peer.saw_end, peer.has_tls(), "history {seed}: close_notify");
    }
    assert_eq!(world.core.clients(), 0, "history {seed}");
    assert!(world.engine().most <= 2 * relay::FULL + 64 * 1024, "history {seed}");
    assert!(world.reports.lock().unwrap().is_empty(), "history {seed}: {:?}", world.reports);
}

#[test]
fn everything_arrives_over_tls_however_the_bytes_are_cut() {
    let (identity, mut visited) = (Identity::new(), HashSet::new());
    for seed in 0..HISTORIES {
        history(seed, &identity, &mut visited);
    }
    println!("{HISTORIES} histories; {} kinds", visited.len());
    assert_eq!(visited.len(), 2 * 2 * 2 * 3, "{visited:?}");
}

/// Runs until the only client is disconnected.
fn run(world: &mut World, client: usize) {
    world.peers[client].say(b"hello");
    for _ in 0..10_000 {
        if world.peers[client].is_gone {
            return;
        }
        world.step();
    }
    panic!("it is never closed");
}

#[test]
fn a_server_with_an_untrusted_certificate_is_not_used() {
    let (identity, other) = (Identity::new(), Identity::new());
    for version in [&TLS12, &TLS13] {
        let mut configs = Configs::new(&identity);
        configs.servers = Some(other.client(version));
        let mut world = World::new(1, configs);
        let client = world.client();
        run(&mut world, client);
        let reasons = &world.engine().reasons;
        let why = "the server's certificate is not signed by a trusted CA";
        assert!(reasons.len() == 1 && reasons[0].starts_with(why), "{reasons:?}");
        assert_eq!(*world.reports.lock().unwrap(), *reasons);
        let server = world.peers.iter().find(|peer| peer.is_server).unwrap();
        assert!(server.plain.is_empty(), "nothing is sent to it");
    }
}

/// With TLS 1.3, the server refuses after the client's handshake is over.
#[test]
fn a_server_that_refuses_the_certificate_has_taken_nothing() {
    let identity = Identity::new();
    for version in [&TLS12, &TLS13] {
        let mut configs = Configs::new(&identity);
        configs.server = identity.server(true);
        configs.servers = Some(identity.client(version));
        let mut world = World::new(2, configs);
        let client = world.client();
        run(&mut world, client);
        let reasons = &world.engine().reasons;
        let is_about_it = |why: &String| why.contains("certificate") || why.contains("Handshake");
        assert!(reasons.len() == 1 && reasons.iter().all(is_about_it), "{reasons:?}");
        let server = world.peers.iter().find(|peer| peer.is_server).unwrap();
        assert!(server.plain.is_empty(), "it has taken nothing");
    }
}

#[test]
fn a_server_that_does_not_speak_tls_is_not_used() {
    let identity = Identity::new();
    let mut world = World::new(3, Configs::new(&identity));
    world.are_silent = true;
    let client = world.client();
    world.peers[client].say(b"hello");
    while !world.peers.iter().any(|peer| peer.is_server && peer.is_open) {
        world.step();
    }
    let server = world.peers.iter_mut().find(|peer| peer.is_server).unwrap();
    server.sent = b"-ERR unknown command\r\n".to_vec();
    run(&mut world, client);
    let reasons = &world.engine().reasons;
    assert!(
        reasons.len() == 1 && reasons[0].starts_with("the server does not speak TLS"),
        "{reasons:?}"
    );
}

#[test]
fn a_handshake_has_a_deadline() {
    let identity = Identity::new();
    // Of a client: the request timeout. The engine never sees it.
    let mut world = World::new(4, Configs::new(&identity));
    let slow = world.client();
    world.deliver(slow, 20);
    let conn = world.peers[slow].conn;
    world.wait(Limits::default().request - Duration::from_millis(1));
    assert!(!world.is_gone(conn));
    world.wait(Duration::from_millis(1));
    assert!(world.is_gone(conn));
    assert_eq!(world.engine().clients, 0);
    // Of a server: that of connecting.
    let mut world = World::new(5, Configs::new(&identity));
    world.are_silent = true;
    let client = world.client();
    world.peers[client].say(b"hello");
    while !world.peers.iter().any(|peer| peer.is_server && peer.is_open) {
        world.step();
    }
    world.wait(Limits::CONNECT - Duration::from_millis(1));
    assert_eq!(world.engine().reasons, [""; 0]);
    world.wait(Duration::from_millis(1));
    let why = ["no TLS handshake within 5s; the server may not speak TLS"];
    assert_eq!(world.engine().reasons, why);
}

#[test]
fn the_alarms_of_the_engine_ring() {
    let after = Duration::from_secs(7);
    let mut configs = Configs::new(&Identity::new());
    configs.alarm_after = Some(after);
    let mut world = World::new(6, configs);
    let client = world.client();
    world.peers[client].say(b"hello");
    while world.peers[client].plain != b"ifmmp" {
        world.step();
    }
    world.wait(after - Duration::from_millis(1));
    assert_eq!(world.engine().rung, 0);
    world.wait(Duration::from_millis(1));
    assert_eq!(world.engine().rung, 1);
    world.wait(after);
    assert_eq!(world.engine().rung, 1, "each rings once");
}

#[test]
fn a_client_that_lingers_is_disconnected_when_the_engine_aborts_it() {
    let identity = Identity::new();
    for clients in [None, Some(identity.server(false))] {
        let configs = Configs { clients, evicts: true, ..Configs::new(&identity) };
        let mut world = World::new(7, configs);
        let [first, second] = [(); 2].map(|()| {
            let client = world.client();
            while world.peers[client].is_handshaking() {
                world.step();
            }
            client
        });
        [first, second].into_iter().for_each(|client| world.peers[client].say(b"x"));
        while !world.peers[first].is_closed {
            world.deliver(first, usize::MAX);
            world.read(first);
        }
        assert!(!world.peers[first].is_gone, "it has not closed its side");
        while !world.peers[first].is_gone {
            assert!(!world.peers[second].sent.is_empty(), "it keeps what was held for it");
            world.deliver(second, usize::MAX);
        }
    }
}
