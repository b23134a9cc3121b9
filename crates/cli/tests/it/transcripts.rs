//! Tests of the transcript player: it passes correct servers, and reports each difference between a
//! server and a transcript, and each mistake in a transcript.

use crate::support::transcript::{Transcript, load_dir, play};

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    thread,
    time::Duration,
};

const TWO_NUMBERS: &str = r#"
about = "two numbers"
[[step]]
send = "1\n22\nend\n"
[[step]]
expect = "2\n44\n"
[[step]]
expect_close = true
[[step]]
expect_alive = true
"#;

#[test]
fn a_correct_server_passes() {
    assert_eq!(judged(TWO_NUMBERS, by_lines), Ok(()));
}

#[test]
fn a_wrong_answer_is_reported_with_its_position() {
    let why = judged(&TWO_NUMBERS.replace("44", "45"), by_lines).unwrap_err();
    assert!(why.contains(r#"step 2: byte 3 of the reply: expected "5\n", got "4\n""#), "{why}");
}

#[test]
fn a_missing_answer_is_reported() {
    let why = judged(&TWO_NUMBERS.replace(r"44\n", r"44\n6\n"), by_lines).unwrap_err();
    assert!(why.contains(r#"expected "6\n" next, got the end of the stream"#), "{why}");
}

#[test]
fn a_surplus_answer_is_reported() {
    let why = judged(&TWO_NUMBERS.replace(r"44\n", ""), by_lines).unwrap_err();
    assert!(why.contains(r#"step 3: expected the end of the stream, got "44\n""#), "{why}");
}

#[test]
fn a_surplus_answer_after_the_last_step_is_reported() {
    let text = "about = \"\"\n[[step]]\nsend = \"1\\n2\\n\"\n[[step]]\nexpect = \"2\\n\"\n";
    let why = judged(text, by_lines).unwrap_err();
    assert!(
        why.contains(r#"after the last step: expected the end of the stream, got "4\n""#),
        "{why}"
    );
}

#[test]
fn silence_is_reported_after_the_deadline() {
    let why = judged(&TWO_NUMBERS.replace(r"end\n", ""), by_lines).unwrap_err();
    assert!(why.contains("step 3: expected the end of the stream, got nothing in time"), "{why}");
}

#[test]
fn a_reset_does_not_count_as_a_close() {
    let text = "about = \"\"\n[[step]]\nsend = \"1\\n\"\n[[step]]\nexpect_close = true\n";
    let why = judged(text, |stream| {
        // A close with an unread byte is a reset.
        stream.peek(&mut [0]).expect("a byte");
    })
    .unwrap_err();
    assert!(why.contains("expected the end of the stream, got Connection reset"), "{why}");
}

#[test]
fn a_server_that_treats_each_read_as_whole_requests_fails_at_the_first_cut() {
    let by_reads = |mut stream: TcpStream| {
        let mut input = [0; 1024];
        while let Ok(n @ 1..) = stream.read(&mut input) {
            for line in String::from_utf8_lossy(&input[..n]).lines() {
                let Some(answer) = doubled(line) else { return };
                stream.write_all(answer.as_bytes()).expect("a client");
            }
        }
    };
    let why = judged(TWO_NUMBERS, by_reads).unwrap_err();
    assert!(why.starts_with("it, cut after 1 bytes sent, step 2: "), "{why}");
    assert_eq!(judged(&format!("cut = false\n{TWO_NUMBERS}"), by_reads), Ok(()));
}

#[test]
fn bytes_that_the_server_does_not_read_are_reported() {
    let text = "about = \"\"\n[[step]]\nsend = \"123\"\n[[step]]\nexpect_read = true\n";
    let why = judged(text, |mut stream| {
        stream.read_exact(&mut [0]).expect("a byte");
        thread::park();
    })
    .unwrap_err();
    assert!(why.contains("step 2: the server left 2 bytes unread"), "{why}");
}

#[test]
fn bytes_hex_and_repeats_are_sent_and_expected_as_written() {
    let text = r#"
about = "a server that echoes"
[[step]]
send_hex = "00 ff0A"
repeat = 2
[[step]]
expect_hex = "00ff0a00ff0a"
[[step]]
half_close = true
[[step]]
expect_close = true
[[step]]
reconnect = true
[[step]]
send = "é"
repeat = 2
[[step]]
expect = "éé"
[[step]]
reset = true
"#;
    let echo = |mut stream: TcpStream| {
        let mut input = [0; 1024];
        while let Ok(n @ 1..) = stream.read(&mut input) {
            stream.write_all(&input[..n]).expect("a client");
        }
    };
    assert_eq!(judged(text, echo), Ok(()));
}

#[test]
fn an_http_reply_may_have_any_framing_and_nothing_after_it_is_read() {
    for reply in [
        "HTTP/1.1 200 OK\r\nX: a b\r\nContent-Length: 3\r\n\r\nabc<end>",
        "HTTP/1.1 200 \r\nx:a b\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n<end>",
    ] {
        assert_eq!(judged_http(reply, "<end>"), Ok(()));
    }
    assert_eq!(judged_http("HTTP/1.0 200 OK\r\nX: a b\r\n\r\nabc", ""), Ok(()));
}

#[test]
fn a_wrong_http_reply_is_reported() {
    for (reply, expected) in [
        ("HTTP/1.1 404 No\r\nX: a b\r\n\r\nabc", "expected the status 200, got 404"),
        ("HTTP/1.1 200 OK\r\nX: ab\r\n\r\nabc", "expected X to match ^(?:a b)$, got ab"),
        ("HTTP/1.1 200 OK\r\n\r\nabc", "expected the field X, got none"),
        ("HTTP/1.1 200 OK\r\nX: a b\r\n\r\nabcd", "expected content that matches ^(?:a.c)$, got"),
        ("HTTP/1.1 200 OK\r\nX: a b\r\nContent-Length: 4\r\n\r\nabc", "before the whole content"),
        ("abc", "Expected a status line"),
    ] {
        let why = judged_http(reply, "").unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}

/// Plays a GET against a server that answers `reply`, after which `behind` must follow.
fn judged_http(reply: &'static str, behind: &str) -> Result<(), String> {
    let text = format!(
        r#"
about = "a reply"
cut = false
[[step]]
send = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
[[step]]
expect_http = {{ status = 200, fields = {{ X = "a b" }}, body = "a.c" }}
[[step]]
expect = "{behind}"
[[step]]
expect_close = true
"#
    );
    judged(&text, move |mut stream| {
        stream.read_exact(&mut [0; 27]).expect("a request");
        stream.write_all(reply.as_bytes()).expect("a client");
    })
}

#[test]
#[should_panic(expected = "it.toml: step 1: expected exactly one of send, send_hex")]
fn a_step_with_two_actions_is_refused() {
    let _ = judged("about = \"\"\n[[step]]\nsend = \"1\"\nexpect = \"2\"\n", by_lines);
}

#[test]
#[should_panic(expected = "it.toml: step 1: expected pairs of hex digits, got \"0\"")]
fn half_a_byte_is_refused() {
    let _ = judged("about = \"\"\n[[step]]\nsend_hex = \"0\"\n", by_lines);
}

/// Plays the transcript `it` against a server that calls `serve` for every connection.
fn judged(text: &str, serve: impl Fn(TcpStream) + Copy + Send + 'static) -> Result<(), String> {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("it.toml"), text).expect("a file");
    play(&only(dir.path()), listening(serve), Duration::from_secs(5))
}

fn only(dir: &Path) -> Transcript {
    let mut all = load_dir(dir);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Starts a server with a thread per connection, which runs until the tests exit.
fn listening(serve: impl Fn(TcpStream) + Copy + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let addr = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            thread::spawn(move || serve(stream));
        }
    });
    addr
}

fn by_lines(stream: TcpStream) {
    let mut input = BufReader::new(&stream);
    let mut line = String::new();
    while let Ok(1..) = input.read_line(&mut line) {
        let Some(answer) = doubled(line.trim_end()) else { return };
        (&stream).write_all(answer.as_bytes()).expect("a client");
        line.clear();
    }
}

fn doubled(line: &str) -> Option<String> {
    line.parse().ok().map(|n: i64| format!("{}\n", 2 * n))
}
