//! A small JSON server over HTTP/1.1 for `workloads/api.toml`, correct except for at most one planted
//! fault. Blocking, a thread per connection.

use regatta_testkit::server::Server;
use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

/// The planted fault, which starts after the server's first 20 requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    Total,
    NumberAsText,
    NoTags,
    NoJson,
    NoLocation,
    Location,
    Status,
    ETag,
    Content,
}

struct Request {
    method: String,
    path: String,
    headers: Vec<String>,
    body: String,
}

/// Starts the server.
pub fn start(fault: Fault) -> Server {
    let requests = AtomicU64::new(0);
    Server::start(move |_, stream| serve(&stream, fault, &requests))
}

fn serve(stream: &TcpStream, fault: Fault, requests: &AtomicU64) {
    // The timeout ends the thread if the client does not close.
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let mut items = HashMap::new();
    while let Some(request) = read(&mut reader) {
        let fault = if requests.fetch_add(1, SeqCst) < 20 { Fault::None } else { fault };
        let (status, headers, body) = answer(&request, &mut items, fault);
        let length = match status {
            204 => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let reply = format!("HTTP/1.1 {status} -\r\n{headers}{length}\r\n{body}");
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a request. Returns `None` at the end of the connection, or if a read fails.
fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.strip_suffix("\r\n").expect("lines end with CR LF");
        if line.is_empty() {
            break;
        }
        lines.push(line.to_owned());
    }
    let first = lines.remove(0);
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap().into(), words.next().unwrap().into());
    let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).unwrap();
    Some(Request { method, path, headers: lines, body })
}

/// Returns the status, the header lines and the body.
fn answer(
    request: &Request,
    items: &mut HashMap<String, String>,
    fault: Fault,
) -> (u16, String, String) {
    let wrong = |of: Fault| fault == of;
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/items") => {
            let sent: serde_json::Value = serde_json::from_str(&request.body).unwrap();
            let total = sent["price"].as_u64().unwrap() * 2 + u64::from(wrong(Fault::Total));
            let total = if wrong(Fault::NumberAsText) {
                total.to_string().into()
            } else {
                serde_json::Value::from(total)
            };
            let tags = if wrong(Fault::NoTags) { &[][..] } else { &["new"] };
            let reply = serde_json::json!({
                "id": 7, "name": sent["name"], "total": total, "tags": tags,
            });
            let reply = if wrong(Fault::NoJson) { "{".into() } else { reply.to_string() };
            let location = match fault {
                Fault::NoLocation => "",
                Fault::Location => "Location: /items/seven\r\n",
                _ => "Location: /items/7\r\n",
            };
            (if wrong(Fault::Status) { 200 } else { 201 }, location.into(), reply)
        }
        ("PUT", path) => {
            items.insert(path.into(), request.body.clone());
            (204, String::new(), String::new())
        }
        ("GET", path) if items.contains_key(path) => {
            let id = path.strip_prefix("/items/").unwrap();
            let tag = if wrong(Fault::ETag) { "0" } else { id };
            let word = if wrong(Fault::Content) { "?".into() } else { items[path].to_uppercase() };
            (200, format!("ETag: \"{tag}\"\r\n"), format!("{id}: {word}"))
        }
        // Any other request is echoed as JSON.
        (method, path) => {
            let asked = serde_json::json!({
                "method": method, "path": path, "headers": request.headers, "body": request.body,
            });
            (200, "X-Of: a test\r\n".into(), asked.to_string())
        }
    }
}
