//! Members of a hub: a client from another crate.

use crate::support::{Server, regatta};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::{
    borrow::BorrowMut,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    mem,
    net::{SocketAddr, TcpStream},
    process::{Command, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tungstenite::{Error, Message, WebSocket, client::client, protocol::frame::coding::CloseCode};

/// Models whose connections can communicate with each other.
pub fn models() -> Vec<&'static str> {
    let mut models = super::models();
    models.retain(|model| !ALONE.contains(model));
    models
}

/// Models whose processes share nothing.
pub const ALONE: [&str; 2] = ["fork", "prefork"];

/// Declares a test for each model of [`models`]: see [`on_models!`].
macro_rules! on_hub_models {
    ($test:ident) => {
        $crate::support::on_models! {
            $test: threads, select, poll, epoll, cluster, percore, green, on_async, uring
        }
    };
}
pub(crate) use on_hub_models;

/// A stream that retries reads after a signal, e.g. when a child process of another test exits.
pub struct Patient(pub TcpStream);

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

pub type Socket = WebSocket<Patient>;

pub fn member(server: &Server) -> Socket {
    member_of(server, "/ws")
}

pub fn member_of(server: &Server, path: &str) -> Socket {
    let url = format!("ws://{}{path}", server.addr);
    client(url, Patient(server.connect())).expect("the hub opens a WebSocket").0
}

/// Returns a value of the metrics page, by its name with labels.
pub fn metric(page: SocketAddr, name: &str) -> u64 {
    let reply = metrics(page);
    let line = reply.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {reply}")).parse().unwrap()
}

/// Returns the metrics page.
pub fn metrics(page: SocketAddr) -> String {
    let mut stream = TcpStream::connect(page).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    reply
}

/// Returns the status of a page for operators, and its text.
pub fn page(addr: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(addr).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, text) = reply.split_once("\r\n\r\n").expect("a reply");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), text.to_owned())
}

/// Starts a hub with metrics. Long buffers that it frees leave the process at once.
pub fn hub(model: &str, options: &[&str]) -> (Server, SocketAddr) {
    with_metrics(hub_command(model, options))
}

/// The command that starts a hub with a page of metrics.
pub fn hub_command(model: &str, options: &[&str]) -> Command {
    let mut command = regatta!("serve hub --model {model} --metrics 127.0.0.1:0");
    command.args(options).env("MALLOC_MMAP_THRESHOLD_", "65536");
    command
}

/// Starts a server whose options ask for metrics. Returns it with the address of their page.
pub fn with_metrics(command: impl BorrowMut<Command>) -> (Server, SocketAddr) {
    let (server, page, _) = with_metrics_and_lines(command);
    (server, page)
}

/// Starts a server whose options ask for metrics. Returns it with the address of their page, and what it has printed to
/// stderr by then: it may already have reported a connection to others. What follows is in its `stderr`.
pub fn with_metrics_and_lines(
    mut command: impl BorrowMut<Command>,
) -> (Server, SocketAddr, String) {
    let command: &mut Command = command.borrow_mut();
    let mut server = Server::start(command.stderr(Stdio::piped()));
    // With this capacity, it reads nothing of the lines that follow.
    let mut stderr = BufReader::with_capacity(1, server.child.stderr.take().unwrap());
    let (mut line, mut before) = (String::new(), String::new());
    while !line.starts_with("metrics at ") {
        before.push_str(&mem::take(&mut line));
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended without a page of metrics");
    }
    // Keep the pipe open: the server may write more.
    server.child.stderr = Some(stderr.into_inner());
    let page = line.trim().strip_prefix("metrics at http://").expect(&line);
    let page = page.strip_suffix("/metrics").expect(&line).parse().unwrap();
    (server, page, before)
}

/// What a server prints to stderr. A thread of the server prints, so it may be late.
pub struct Printed {
    lines: Receiver<String>,
    /// What was printed by now.
    pub text: String,
}

impl Printed {
    /// What it prints from now on, after `before`.
    pub fn by(server: &mut Server, before: String) -> Printed {
        let stderr = BufReader::new(server.child.stderr.take().expect("it is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Printed { lines, text: before }
    }

    /// Reads up to a line with the text `last`.
    pub fn through(&mut self, last: &str) {
        const PATIENCE: Duration = Duration::from_secs(20);
        while !self.text.contains(last) {
            let line = self.lines.recv_timeout(PATIENCE);
            let line =
                line.unwrap_or_else(|_| panic!("waited for a line with {last:?}: {}", self.text));
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }
}

/// What a server prints to stderr after `before`, up to a line with the text `last`.
pub fn printed_through(server: &mut Server, before: String, last: &str) -> String {
    let mut printed = Printed::by(server, before);
    printed.through(last);
    printed.text
}

/// Writes a certificate of localhost and 127.0.0.1, and its key, to files. Returns the options for them, and a client
/// configuration that trusts the certificate.
pub fn made() -> (TempDir, [String; 4], Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
        .unwrap();
    let folder = TempDir::new().unwrap();
    let write = |name: &str, pem: String| {
        let path = folder.path().join(name);
        fs::write(&path, pem).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let cert = write("cert", made.cert.pem());
    let key = write("key", made.signing_key.serialize_pem());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let trusts = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    (folder, ["--tls-cert".into(), cert, "--tls-key".into(), key], Arc::new(trusts))
}

pub fn send(socket: &mut Socket, message: &Value) {
    socket.send(Message::text(message.to_string())).unwrap();
}

pub fn hear(socket: &mut Socket) -> Value {
    loop {
        match socket.read().unwrap() {
            Message::Text(text) => return parsed(&text),
            // On a busy machine a member may be silent for long. Reading sends the pong.
            Message::Ping(_) => {}
            other => panic!("{other:?} instead of a text"),
        }
    }
}

/// A broadcast of the number `n`, with so many bytes of padding.
pub fn long_broadcast(n: u64, padding: usize) -> Message {
    let text =
        format!(r#"{{"type":"broadcast","payload":[{n},"{}"]}}"#, PADDING.repeat(padding / 1_000));
    Message::text(text)
}

/// Parses a message, without most of the padding of [`long_broadcast`]: parsing it takes most of a test's time
/// in a build without optimizations.
pub fn parsed(text: &str) -> Value {
    serde_json::from_str(&text.replace(PADDING, "")).unwrap()
}

/// A thousand bytes.
const PADDING: &str = match std::str::from_utf8(&[b'x'; 1_000]) {
    Ok(padding) => padding,
    Err(_) => panic!("ASCII is UTF-8"),
};

/// Connects `n` members. On every model, a member has joined when the others receive its broadcast.
pub fn members(server: &Server, n: usize) -> Vec<Socket> {
    let mut members = Vec::new();
    for all in 1..=n {
        members.push(member(server));
        let (last, before) = members.split_last_mut().unwrap();
        send(last, &json!({"type": "broadcast", "payload": all}));
        let copy = json!({"type": "broadcast", "payload": all});
        assert_eq!(hear(last), copy);
        let result = hear(last);
        assert_eq!((&result["type"], &result["payload"]), (&json!("broadcastResult"), &json!(all)));
        before.iter_mut().for_each(|socket| assert_eq!(hear(socket), copy));
    }
    members
}

/// Returns the hub's close code; `None` if it closes without one. Ignores all messages before that.
pub fn closed(socket: &mut Socket) -> Option<CloseCode> {
    loop {
        match socket.read() {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code),
            Ok(_) => {}
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => return None,
            Err(error) => panic!("{error}"),
        }
    }
}
