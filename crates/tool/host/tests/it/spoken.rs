//! Servers that give no right reply are asked what they speak.

use regatta_host::what_is_spoken as look;
use regatta_script::Workload;
use regatta_testkit::client::refusing;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

/// What `look` says of a server that handles each connection in this way, for the workload `double`.
fn said(serve: fn(TcpStream)) -> Option<String> {
    look(serving(serve), &Workload::parse("double").unwrap(), None)
}

/// The address of a server that handles each connection in this way.
fn serving(serve: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

/// Reads the first bytes of a request.
fn first(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = vec![0; 1024];
    let n = stream.read(&mut request).unwrap_or(0);
    request.truncate(n);
    request
}

#[test]
fn a_server_of_another_protocol_is_named_with_the_workloads_for_it() {
    let said = said(|mut stream| {
        if first(&mut stream).starts_with(b"version") {
            let _ = stream.write_all(b"VERSION 1.6.0\r\n");
        }
    });
    let said = said.unwrap();
    let expected = "but the workload `double` sends lines of integers: use `--workload cache`";
    assert!(said.starts_with("it speaks ") && said.ends_with(expected), "{said}");
}

#[test]
fn a_server_that_speaks_the_protocol_but_wrongly_gets_no_remark() {
    let wrong = |mut stream: TcpStream| {
        first(&mut stream);
        let _ = stream.write_all(b"7\n");
    };
    assert_eq!(said(wrong), None);
}

#[test]
fn a_server_that_hangs_closes_or_answers_garbage_is_described() {
    // Leaks the connection: it stays open.
    let hangs = said(std::mem::forget).unwrap();
    assert!(hangs.ends_with("accepted each connection and answered nothing"), "{hangs}");
    let closes = said(|mut stream| drop(first(&mut stream))).unwrap();
    assert!(closes.ends_with("it closed connections without an answer"), "{closes}");
    let garbage = said(|mut stream| {
        first(&mut stream);
        let _ = stream.write_all(&[b"\x1b[2J<b>\xff".as_slice(), &[b'x'; 4096]].concat());
    });
    let garbage = garbage.unwrap();
    assert!(garbage.contains("starts with \"\\x1b[2J<b>\\xffxxx"), "{garbage}");
    assert!(garbage.len() < 400 && garbage.is_ascii(), "{garbage}");
    let tls = said(|mut stream| {
        first(&mut stream);
        let _ = stream.write_all(&[0x15, 3, 3, 0, 2, 2, 10]);
    });
    assert!(tls.unwrap().starts_with("it speaks TLS"));
}

#[test]
fn a_port_without_a_server_gets_no_remark() {
    let nobody = refusing();
    assert_eq!(look(nobody.addr, &Workload::parse("double").unwrap(), None), None);
}

#[test]
fn a_redis_server_is_recognised() {
    let said = said(|mut stream| {
        let answer: &[u8] = match first(&mut stream).as_slice() {
            b"*1\r\n$4\r\nPING\r\n" => b"+PONG\r\n",
            _ => b"-ERR Protocol error: invalid request\r\n",
        };
        let _ = stream.write_all(answer);
    });
    let expected = "it speaks the protocol of Redis, but the workload `double` sends lines of integers: \
                    use `--workload shard`";
    assert_eq!(said.as_deref(), Some(expected));
}

#[test]
fn a_websocket_server_is_recognised_beside_the_http_that_it_speaks_too() {
    let said = said(|stream| upgrades("/ws", stream)).unwrap();
    assert!(said.contains("WebSocket at /ws") && said.contains("`--workload hub`"), "{said}");
}

#[test]
fn a_websocket_server_that_answers_wrongly_at_its_own_path_gets_no_remark() {
    let address = serving(|stream| upgrades("/connection/websocket", stream));
    let hub = Workload::parse("hub").unwrap();
    assert_eq!(look(address, &hub, Some("/connection/websocket")), None);
    assert!(look(address, &hub, None).is_some_and(|said| said.starts_with("it speaks HTTP")));
}

/// A WebSocket server at `path`, which answers 404 to other HTTP requests.
fn upgrades(path: &str, mut stream: TcpStream) {
    let request = first(&mut stream);
    let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
    let answer: &[u8] = match () {
        () if !text.starts_with("get /") => b"",
        () if text.contains("upgrade: websocket") && text.starts_with(&format!("get {path} ")) => {
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
              Connection: Upgrade\r\n\r\n"
        }
        () => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    };
    let _ = stream.write_all(answer);
}
