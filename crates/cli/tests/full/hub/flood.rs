//! Other rooms beside a member that floods its own, over TLS, where each copy is encrypted.

use crate::support::{
    Server,
    cpus::{on_cpu, two_cpus},
    hub::{Patient, made},
    on_models,
};
use regatta_testkit::{machine, skip};
use rustix::process::{getpriority_process, setpriority_process};
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};
use std::{
    io::{ErrorKind, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
use tungstenite::{Message, WebSocket, client::client};

type Sealed = WebSocket<StreamOwned<ClientConnection, Patient>>;

/// Members of the flooded room.
const MEMBERS: usize = 50;
/// Echoes in the other room.
const ECHOES: usize = 300;
/// Maximum of their median.
const LIMIT: Duration = Duration::from_millis(60);

fn member(server: &Server, trusts: &Arc<ClientConfig>, room: &str) -> Sealed {
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientConnection::new(Arc::clone(trusts), name).unwrap();
    let stream = StreamOwned::new(tls, Patient(server.connect()));
    client(format!("wss://localhost/ws/{room}"), stream).expect("the hub opens a WebSocket").0
}

/// Lets the other room's client run before this thread, so that only the hub makes it wait.
fn be_nicer() {
    let nice = getpriority_process(None).expect("a thread has a priority") + 10;
    setpriority_process(None, nice).expect("a thread may lower its priority");
}

on_models!(other_rooms_do_not_wait_for_a_flood_over_tls: percore, uring, epoll);

fn other_rooms_do_not_wait_for_a_flood_over_tls(model: &str) {
    let _turn = machine::alone();
    let Some((server_cpu, client_cpu)) = two_cpus() else {
        return skip("server and clients need one CPU each, and there is only one");
    };
    let (_folder, options, trusts) = made();
    let options = [&options.each_ref().map(String::as_str)[..], &["--cores", "1"]].concat();
    let server = on_cpu(server_cpu, || Server::of("hub", model, &options));
    let members: Vec<Sealed> = (0..MEMBERS).map(|_| member(&server, &trusts, "flood")).collect();
    let (mut sender, mut other) =
        (member(&server, &trusts, "flood"), member(&server, &trusts, "other"));
    let over = AtomicBool::new(false);
    let echo = || {
        let began = Instant::now();
        other.send(Message::text(r#"{"type":"echo","payload":0}"#)).unwrap();
        assert!(other.read().unwrap().is_text());
        began.elapsed()
    };
    let mut times: Vec<Duration> = on_cpu(client_cpu, || {
        thread::scope(|scope| {
            // They discard what comes, without decrypting it, so that the hub is what is busy.
            let raw = |socket: &Sealed| socket.get_ref().sock.0.try_clone().unwrap();
            for mut stream in members.iter().chain([&sender]).map(raw) {
                let over = &over;
                stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
                scope.spawn(move || {
                    be_nicer();
                    let mut bytes = vec![0; 1 << 18];
                    while !over.load(Relaxed) {
                        match stream.read(&mut bytes) {
                            Ok(0) => return,
                            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
                            _ => {}
                        }
                    }
                });
            }
            scope.spawn(|| {
                be_nicer();
                let text = r#"{"type":"broadcast","payload":1}"#;
                while !over.load(Relaxed) {
                    if sender.write(Message::text(text)).is_err() {
                        return;
                    }
                }
            });
            let times = std::iter::repeat_with(echo).take(ECHOES).collect();
            over.store(true, Relaxed);
            times
        })
    });
    times.sort_unstable();
    let (median, p99, longest) = (times[ECHOES / 2], times[ECHOES * 99 / 100], times[ECHOES - 1]);
    println!(
        "{model}: beside a flood, an echo in another room takes {median:?}, p99 {p99:?}, at most {longest:?}"
    );
    assert!(median < LIMIT, "{model}: {median:?}");
}
