//! HTTP/1.1 against small servers that do one thing each, and against independent servers.

mod ends;
mod oracles;
mod wrong;

use crate::common::{Server, asks, plan};
use regatta_load::Plan;
use regatta_script::dialects::http::HttpRequest;
use std::{
    io::{BufRead, BufReader, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::atomic::Ordering::SeqCst,
};

/// A plan of GET requests for `/` that accepts any status from 200 to 299.
fn get(target: SocketAddr) -> Plan {
    let workload = asks(HttpRequest::get("/"));
    Plan { workload, host: target.to_string(), ..plan(target) }
}

/// A server that answers request `i` of a connection with `answer(i, head)`, all buffered ones with one
/// write. If `answer` returns `true`, it closes after the reply.
fn server(answer: impl Fn(u64, &str) -> (String, bool) + Send + Sync + 'static) -> Server {
    Server::start(move |stream, requests| {
        let mut reader = BufReader::with_capacity(1 << 16, stream.try_clone().unwrap());
        let mut replies = String::new();
        for i in 0.. {
            let Some(head) = read_head(&mut reader) else { return };
            requests.fetch_add(1, SeqCst);
            let (reply, closes) = answer(i, &head);
            replies.push_str(&reply);
            if closes || !reader.buffer().ends_with(b"\r\n\r\n") {
                if (&stream).write_all(replies.as_bytes()).is_err() {
                    return;
                }
                replies.clear();
            }
            if closes {
                let _ = stream.shutdown(Shutdown::Write);
                // Closing with unread bytes would send a reset.
                while read_head(&mut reader).is_some() {}
                return;
            }
        }
    })
}

/// Reads the head of a request; no request of these tests has a body.
fn read_head(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        match reader.read_line(&mut head) {
            Ok(n) if n > 0 => {}
            _ => return None,
        }
    }
    Some(head)
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
