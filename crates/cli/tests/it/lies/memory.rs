//! Limits on the memory that a server can make the load use.

use crate::lies::{
    regatta, run,
    server::{Server, read_head},
};
use std::{
    fs,
    io::{BufReader, Write},
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Returns the peak memory of a process, in bytes, or `None` when it has exited.
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// The server streams endless chunks to all connections at once.
#[test]
fn an_endless_reply_takes_bounded_memory() {
    let server = Server::start(|_, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        if read_head(&mut reader).is_none() {
            return;
        }
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let mut sent = (&stream).write_all(head.as_bytes());
        while sent.is_ok() {
            sent = (&stream).write_all(chunk.as_bytes());
        }
    });
    let url = server.http_url();
    let hash = ["--workload", "hash", "-c", "100", "-d", "5s"];
    let hello = ["--workload", "hello", "-c", "100", "-d", "5s"];
    let text = ["--expect-body", "ok", "-c", "100", "-d", "5s"];
    for more in [hash, hello, text] {
        let mut command = regatta();
        command.args(["load", &url]).args(more);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (mut most, until) = (0, Instant::now() + Duration::from_secs(30));
        while child.try_wait().unwrap().is_none() && Instant::now() < until {
            most = most.max(peak(&child).unwrap_or(0));
            thread::sleep(Duration::from_millis(1));
        }
        let _ = child.kill();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{more:?}");
        assert!(most > 0 && most < 64 << 20, "{most} bytes of memory: {more:?}");
    }
}

#[test]
fn an_endless_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let workload = folder.path().join("mine.toml");
    fs::write(&workload, "protocol = 'http'\n[[request]]\npath = '/'\nbody_file = '/dev/zero'\n")
        .unwrap();
    let workload = workload.to_str().unwrap();
    for (more, said) in [
        (
            &["--body-file", "/dev/zero"][..],
            "--body-file /dev/zero: the file is too long; expected at most 4 MiB",
        ),
        (&["--workload", workload], "/dev/zero"),
        (&["--cacert", "/dev/zero"], "/dev/zero"),
    ] {
        let scheme = if said == "/dev/zero" && more[0] == "--cacert" { "https" } else { "http" };
        let mut command = regatta();
        command.args(["load", &format!("{scheme}://127.0.0.1:1")]).args(more);
        let ended = limited(command).with_status(2);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}

/// Runs a command with at most 512 MiB of address space, so that a failure of this test does not exhaust
/// the machine's memory.
fn limited(command: std::process::Command) -> crate::lies::Ended {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -v 524288; exec \"$@\"", "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    assert!(Path::new("/dev/zero").exists());
    run(shell)
}
