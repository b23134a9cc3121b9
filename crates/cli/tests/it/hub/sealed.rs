//! The hub over TLS, on every model, with a client from another crate.

use crate::{
    hub::stop::{LONG, MANY, slow_connection},
    support::{
        DEADLINE, Server,
        hub::{Patient, long_broadcast, made, on_hub_models, parsed},
        json, on_models, regatta, run, until,
    },
};
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};
use serde_json::{Value, json};
use std::{
    fs,
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};
use tungstenite::{
    Message, Utf8Bytes, WebSocket, client::client, error::Error, protocol::frame::coding::CloseCode,
};

type Sealed = WebSocket<StreamOwned<ClientConnection, Patient>>;

fn member(server: &Server, trusts: &Arc<ClientConfig>) -> Sealed {
    member_on(server.connect(), trusts)
}

fn member_on(stream: TcpStream, trusts: &Arc<ClientConfig>) -> Sealed {
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientConnection::new(Arc::clone(trusts), name).unwrap();
    let stream = StreamOwned::new(tls, Patient(stream));
    client("wss://localhost/ws", stream).expect("the hub opens a WebSocket").0
}

fn hear(socket: &mut Sealed) -> Value {
    serde_json::from_str(&hear_text(socket)).unwrap()
}

fn hear_text(socket: &mut Sealed) -> Utf8Bytes {
    match socket.read().unwrap() {
        Message::Text(text) => text,
        other => panic!("{other:?} instead of a text"),
    }
}

on_hub_models!(members_hear_each_other_over_tls_and_a_stop_sends_a_close_frame);

fn members_hear_each_other_over_tls_and_a_stop_sends_a_close_frame(model: &str) {
    let (_folder, options, trusts) = made();
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.extend(["--cores", "2"]);
    let mut server = Server::of("hub", model, &options);
    let mut members: Vec<Sealed> = (0..3).map(|_| member(&server, &trusts)).collect();
    for socket in &mut members {
        socket.send(Message::text(r#"{"type":"echo","payload":0}"#)).unwrap();
        assert_eq!(hear(socket)["type"], "echo", "{model}");
    }
    // Larger than a TLS record and than a read.
    let payload = "x".repeat(900_000);
    let broadcast = json!({"type": "broadcast", "payload": payload});
    members[0].send(Message::text(broadcast.to_string())).unwrap();
    for socket in &mut members {
        assert_eq!(hear(socket), broadcast, "{model}");
    }
    assert_eq!(hear(&mut members[0])["listenerCount"], 3, "{model}");
    server.signal("-TERM");
    for socket in &mut members {
        let code = loop {
            match socket.read() {
                Ok(Message::Close(frame)) => break frame.map(|frame| frame.code),
                Ok(_) => {}
                Err(Error::ConnectionClosed) => break None,
                Err(error) => panic!("{model}: {error}"),
            }
        };
        assert_eq!(code, Some(CloseCode::Away), "{model}");
    }
    assert!(server.ended().success(), "{model}");
}

on_hub_models!(a_member_that_is_behind_gets_all_queued_messages_over_tls);

/// A client that closes its side ends the server's input twice: in TLS and in TCP. A stop ends it once.
fn a_member_that_is_behind_gets_all_queued_messages_over_tls(model: &str) {
    let (_folder, options, trusts) = made();
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.extend(["--cores", "2", "--backlog", "10000000"]);
    for stops in [true, false] {
        let server = Server::of("hub", model, &options);
        let mut slow = member_on(slow_connection(&server), &trusts);
        let mut quick = member(&server, &trusts);
        slow.send(Message::text(r#"{"type":"echo","payload":0}"#)).unwrap();
        assert_eq!(hear(&mut slow)["type"], "echo", "{model}");
        for n in 0..MANY {
            quick.send(long_broadcast(n, LONG)).unwrap();
            assert_eq!(parsed(&hear_text(&mut quick))["payload"][0], n, "{model}");
            assert_eq!(parsed(&hear_text(&mut quick))["listenerCount"], 2, "{model}");
        }
        if stops {
            server.signal("-TERM");
        } else {
            let stream = slow.get_mut();
            stream.conn.send_close_notify();
            stream.flush().unwrap();
            stream.sock.0.shutdown(Shutdown::Write).unwrap();
        }
        for n in 0..MANY {
            assert_eq!(parsed(&hear_text(&mut slow))["payload"][0], n, "{model}: stops: {stops}");
        }
        let last = slow.read().unwrap();
        let Message::Close(Some(close)) = last else { panic!("{model}: {last:?}") };
        assert_eq!(close.code, CloseCode::Away, "{model}: stops: {stops}");
    }
}

/// Members of a load come and go over TLS.
#[test]
fn members_come_and_go_over_tls() {
    let (_folder, options, _) = made();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    for model in ["epoll", "async"] {
        let server = Server::of("hub", model, &options);
        let url = format!("wss://{}/ws", server.addr);
        let load = "-c 4 --passing 20 --json - -d 2s --warm-up 100ms";
        let ended = run(regatta!("load {url} --insecure {load}"));
        let result = json(&ended.with_status(0));
        assert!(result["passed"].as_u64().unwrap() > 10, "{model}: {result}");
    }
}

on_hub_models!(a_client_that_does_not_speak_tls_is_closed_and_others_are_served);

/// A client that sends something other than TLS gets an alert. A client that starts a record and does
/// not finish it is closed after the request timeout.
fn a_client_that_does_not_speak_tls_is_closed_and_others_are_served(model: &str) {
    let (_folder, options, trusts) = made();
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.extend(["--request-timeout", "1s"]);
    let server = Server::of("hub", model, &options);
    let mut plain = server.connect();
    plain.write_all(b"GET /ws HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut received = Vec::new();
    let _ = plain.read_to_end(&mut received);
    // A record of the type alert (RFC 8446, 5.1).
    assert_eq!(received.first(), Some(&21), "{model}: {received:?}");
    let mut silent = server.connect();
    silent.write_all(&[22]).unwrap();
    let began = Instant::now();
    let _ = silent.read_to_end(&mut received);
    assert!(began.elapsed() < DEADLINE, "{model}");
    // Half a record counts as half a request, even if another byte arrives now and then.
    let mut slow = member(&server, &trusts).get_mut().sock.0.try_clone().unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let (began, record) = (Instant::now(), [23, 3, 3, 0, 200]);
    let mut sent = record.iter().chain([&0].into_iter().cycle());
    let is_closed = |read: &io::Result<usize>| match read {
        Ok(read) => *read == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    };
    loop {
        let _ = slow.write(&[*sent.next().unwrap()]);
        if is_closed(&slow.read(&mut [0; 4096])) {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "{model}: half a record");
    }
    let mut good = member(&server, &trusts);
    good.send(Message::text(r#"{"type":"echo","payload":1}"#)).unwrap();
    assert_eq!(hear(&mut good)["payload"], 1, "{model}");
}

on_models!(a_renewed_certificate_is_used_without_a_restart: percore, cluster, threads, on_async);

/// The files are replaced one after the other, as programs that renew certificates do.
fn a_renewed_certificate_is_used_without_a_restart(model: &str) {
    let (folder, options, trusts) = made();
    let (renewed, _, trusts_renewed) = made();
    let printed = folder.path().join("stderr");
    let mut command = regatta!("hub --model {model}");
    command.args(options).stderr(fs::File::create(&printed).unwrap());
    let server = Server::start(command);
    let mut before = member(&server, &trusts);
    let replace = |name: &str| {
        fs::rename(renewed.path().join(name), folder.path().join(name)).unwrap();
    };
    replace("cert");
    until("a certificate that does not match the key is reported", || {
        // The previous pair stays in use.
        drop(member(&server, &trusts));
        fs::read_to_string(&printed).unwrap().contains("the previous certificate stays in use")
    });
    replace("key");
    until("the renewed certificate is used", || {
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::clone(&trusts_renewed), name).unwrap();
        let stream = StreamOwned::new(tls, Patient(server.connect()));
        client("wss://localhost/ws", stream).is_ok()
    });
    let echo = json!({"type": "echo", "payload": 1});
    before.send(Message::text(echo.to_string())).unwrap();
    assert_eq!(hear(&mut before), echo, "{model}");
}
