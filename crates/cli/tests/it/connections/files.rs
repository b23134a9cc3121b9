//! A file that `hash` cannot read blocks no other request.

use crate::support::{Server, on_every_shared, regatta, until};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

/// Opening a FIFO without a writer blocks (fifo(7)), except with O_NONBLOCK. A server may refuse the
/// file at its start. If it starts, it answers with an error and keeps serving.
#[test]
fn a_fifo_as_the_file_does_not_block_other_requests() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    on_every_shared(|model| {
        let Some(mut server) = start(model, &fifo) else { return };
        for n in [1, 100] {
            let mut asks = server.connect();
            ask(&mut asks, &format!("/hash?n={n}"), "500 ");
        }
        ask(&mut server.connect(), "/hash?n=none", "400 ");
        server.signal("-TERM");
        assert_eq!(server.ended().code(), Some(0));
    });
}

/// Starts the server. Returns `None` if it refuses the file with a message that names it.
fn start(model: &str, file: &Path) -> Option<Server> {
    let mut command = regatta!("serve hash --model {model} --cores 1 --file");
    command.arg(file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = command.process_group(0).spawn();
    let mut child = started.unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    match line.trim().strip_prefix("listening on ") {
        Some(addr) => Some(Server { addr: addr.parse().unwrap(), child }),
        None => {
            refuses(child, file);
            None
        }
    }
}

fn refuses(mut child: Child, file: &Path) {
    let mut status = None;
    until("a server that does not listen ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!status.unwrap().success() && said.contains(file.to_str().unwrap()), "{said}");
}

fn ask(stream: &mut TcpStream, target: &str, status: &str) {
    write!(stream, "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    if let Err(error) = stream.read_to_string(&mut reply) {
        panic!("{target}: expected {status}, but: {error}, after {reply:?}");
    }
    assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{target}: {reply}");
    assert!(reply.ends_with('.'), "a sentence: {reply}");
}
