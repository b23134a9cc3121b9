//! `regatta load --http2`: what it refuses, and its result.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener},
    process::{Command, Output},
    thread,
};

fn load(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_regatta")).arg("load").args(args).output().unwrap()
}

#[test]
fn what_cannot_be_sent_over_http2_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let steps = folder.path().join("steps.toml");
    let text = "protocol = \"http\"\n[[request]]\nsteps = [{ path = \"/a\" }, { path = \"/b\" }]\n";
    std::fs::write(&steps, text).unwrap();
    let steps = steps.to_str().unwrap();
    let url = "http://127.0.0.1:1";
    for (args, said) in [
        (vec!["line://127.0.0.1:1", "--http2"], "--http2 applies only to HTTP URLs"),
        (vec!["ws://127.0.0.1:1/", "--http2"], "--http2 applies only to HTTP URLs"),
        (
            vec![url, "--http2", "--workload", "hash"],
            "--http2: the workload hash writes another salt",
        ),
        (vec![url, "--http2", "--slow", "headers"], "cannot be used with"),
        (vec![url, "--http2", "-p", "2", "--workload", steps], "use a pipeline of 1"),
        (vec![url, "--http2", "-c", "100", "-p", "60000"], "more than 4194304 outstanding"),
    ] {
        let output = load(&args);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {printed}");
        assert!(printed.contains(said), "{args:?}: {printed}");
    }
}

/// A server that answers the first three requests of a connection with 204, and then announces the close.
fn serve(listener: &TcpListener) {
    // SETTINGS with at most five streams, three HEADERS, and GOAWAY.
    let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 5];
    let head = |stream: u8| [0, 0, 1, 1, 5, 0, 0, 0, stream, 0x89];
    let go_away = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0];
    while let Ok((mut socket, _)) = listener.accept() {
        let mut input = vec![0; 1 << 16];
        if socket.read(&mut input).unwrap_or(0) == 0 {
            return;
        }
        thread::spawn(move || {
            let _ = socket.write_all(&[&settings[..], &head(1)].concat());
            // At least three requests arrive before the others are answered.
            let (mut heads, mut at) = (0, 0);
            while heads < 2 {
                let n = socket.read(&mut input[at..]).unwrap_or(0);
                if n == 0 {
                    return;
                }
                at += n;
                heads = input[..at].windows(5).filter(|frame| frame[2..] == [1, 5, 0]).count();
            }
            let _ = socket.write_all(&[&head(3)[..], &head(5), &go_away].concat());
            let _ = socket.shutdown(Shutdown::Write);
            let _ = socket.read_to_end(&mut Vec::new());
        });
    }
}

#[test]
fn the_result_has_the_requests_that_were_sent_again_and_the_limit_of_streams() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || serve(&listener));
    let url = format!("http://{address}/");
    let args = [&url, "--http2", "-c", "1", "-p", "8", "-n", "30"];
    let text = load(&args);
    let printed = String::from_utf8_lossy(&text.stdout).into_owned();
    assert_eq!(text.status.code(), Some(0), "{printed} {text:?}");
    for line in ["sent again  ", "in flight   the server allows 5 on a connection; 8 asked"] {
        assert!(printed.contains(line), "{printed}");
    }
    let output = load(&[&args[..], &["--json", "-"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["requests"], &json["in_flight_limit"]), (&30.into(), &5.into()));
    assert!(json["sent_again"].as_u64().is_some_and(|n| n > 0), "{json}");
    assert_eq!(json["statuses"]["204"], 30);
    // A connection without a request ends the server.
    drop(std::net::TcpStream::connect(address));
    server.join().unwrap();
}
