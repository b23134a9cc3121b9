//! Valid requests: replies are checked byte for byte, however the input is split.

use crate::served::serve;

/// Asserts that `input` is answered with these contents, and whether the connection then closes.
fn assert_served(input: &[u8], contents: &[&str], closed: bool) {
    let whole = serve([input]);
    let shown = input.escape_ascii();
    assert_eq!(whole.closed, closed, "{shown}: {}", whole.text());
    let text = whole.text();
    let replies: Vec<_> = text.split("HTTP/1.1 200 OK").skip(1).collect();
    let summary: Vec<_> = replies.iter().map(|r| r.split_once("\r\n\r\n").unwrap().1).collect();
    assert_eq!(summary, contents, "{shown}");
    for cut in 1..input.len() {
        assert_eq!(serve([&input[..cut], &input[cut..]]), whole, "{shown}, cut at {cut}");
    }
    assert_eq!(serve(input.chunks(1)), whole, "{shown}, byte by byte");
}

#[test]
fn targets_are_parsed() {
    for (line, summary) in [
        ("GET /", "GET /;"),
        ("GET /hash?n=1000", "GET /hash query n=1000;"),
        ("GET //a/../b;c=d/%7Euser", "GET //a/../b;c=d/%7Euser;"),
        ("GET http://b:80/c?d", "GET /c query d;"),
        ("GET HTTPS://b", "GET /;"),
        ("OPTIONS *", "OPTIONS *;"),
        ("DELETE /x", "DELETE /x;"),
        ("TRACE /", "TRACE /;"),
    ] {
        assert_served(format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes(), &[summary], false);
    }
}

#[test]
fn fields_are_parsed() {
    for (lines, summary) in [
        ("Host:a\r\n", "GET /;"),
        ("Host:\r\n", "GET /;"),
        ("Host: \t [::1]:80 \t \r\n", "GET /;"),
        ("hOsT: a\r\nX:\r\n", "GET / x ;"),
        ("X: b  c\r\nHost: a\r\nX: d\r\n", "GET / x b  c;"),
        ("Host: a\r\nX: \u{e9}\r\n", "GET / x \\xc3\\xa9;"),
        ("Host: a\r\n!#$%&'*+-.^_`|~: b\r\n", "GET /;"),
        ("Host: a\r\nContent_Length: 9\r\n", "GET /;"),
    ] {
        assert_served(format!("GET / HTTP/1.1\r\n{lines}\r\n").as_bytes(), &[summary], false);
    }
}

#[test]
fn contents_are_parsed() {
    for (rest, summary) in [
        ("Content-Length: 0\r\n\r\n", "POST /;"),
        ("Content-Length: 3\r\n\r\nabc", "POST / [abc];"),
        ("content-length:\t003 \r\n\r\nabc", "POST / [abc];"),
        ("Content-Length: 5\r\n\r\n0\r\n\r\n", "POST / [0\\r\\n\\r\\n];"),
        ("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "POST /;"),
        (
            "Transfer-Encoding:\tCHUNKED \r\n\r\n2\r\nab\r\n01;x=\"y\"\r\nc\r\n0\r\n\r\n",
            "POST / [ab] [c];",
        ),
        ("Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\nZ:\r\n\r\n", "POST / [a];"),
        ("Expect: 100-Continue\r\n\r\n", "POST /;"),
    ] {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{rest}");
        let behind = format!("{request}GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_served(request.as_bytes(), &[summary], false);
        assert_served(behind.as_bytes(), &[summary, "GET /next;"], false);
    }
}

#[test]
fn content_that_looks_like_a_request_is_content() {
    let inner = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let request =
        format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{inner}", inner.len());
    let summary = format!("GET / [{}];", inner.as_bytes().escape_ascii());
    assert_served(request.as_bytes(), &[&summary], false);
}

#[test]
fn connections_persist_or_close() {
    for (version, field, kept) in [
        ("1.1", "", true),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x, CLOSE ,y\r\n", false),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let request = format!("GET / HTTP/{version}\r\nHost: a\r\n{field}\r\n");
        let twice = request.repeat(2);
        let summary = ["GET /;", "GET /;"];
        let expected = if kept { &summary[..] } else { &summary[..1] };
        assert_served(twice.as_bytes(), expected, !kept);
    }
}

/// RFC 9110, 2.5 and 6.2. Regression: this was answered with 505.
#[test]
fn reads_a_higher_minor_version_as_1_1() {
    for minor in 2..=9 {
        let request = format!("GET /a HTTP/1.{minor}\r\nHost: a\r\nX: y\r\n\r\n");
        assert_served(request.repeat(2).as_bytes(), &["GET /a x y;", "GET /a x y;"], false);
    }
    let last = b"GET / HTTP/1.2\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_served(last, &["GET /;"], true);
    let chunked =
        b"PUT / HTTP/1.9\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    assert_served(chunked, &["PUT / [a];"], false);
}

#[test]
fn http_1_0_needs_no_host() {
    assert_served(b"GET / HTTP/1.0\r\n\r\n", &["GET /;"], true);
}

#[test]
fn one_empty_line_is_allowed_before_each_request() {
    let request = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_served(&request.repeat(2), &["GET /;", "GET /;"], false);
}

#[test]
fn continue_is_sent_as_soon_as_the_head_is_read() {
    let head = b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(serve([&head[..]]).replies, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_served(&[&head[..], b"abc"].concat(), &["PUT / [abc];"], false);
    let old = b"PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(serve([&old[..]]).replies, b"");
    let empty = b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n";
    assert!(serve([&empty[..]]).replies.starts_with(b"HTTP/1.1 200 "));
}

#[test]
fn replies_to_head_have_no_content() {
    let request = b"HEAD /abc HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_served(&request.repeat(2), &["", ""], false);
    let text = serve([&request[..]]).text();
    assert!(text.contains("\r\nContent-Length: 10\r\n"), "{text}");
    let refused = serve([&b"HEAD / HTTP/1.1\r\n\r\n"[..]]).text();
    assert!(refused.starts_with("HTTP/1.1 400 ") && refused.ends_with("\r\n\r\n"), "{refused}");
}

#[test]
fn requests_at_the_limits_are_accepted() {
    use regatta_proto::http1::{MAX_BODY, MAX_FIELDS, MAX_HEAD, MAX_LINE};
    let status = |request: &str| serve([request.as_bytes()]).statuses();
    let line = |length: usize| {
        let path = "a".repeat(length - "GET / HTTP/1.1\r\n".len());
        format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")
    };
    assert_eq!(status(&line(MAX_LINE)), [200]);
    assert_eq!(status(&line(MAX_LINE + 1)), [414]);
    let head = |length: usize| {
        let start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
        format!("{start}{}\r\n\r\n", "a".repeat(length - start.len() - 4))
    };
    assert_eq!(status(&head(MAX_HEAD)), [200]);
    assert_eq!(status(&head(MAX_HEAD + 1)), [431]);
    let fields =
        |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: a\r\n".repeat(count - 1));
    assert_eq!(status(&fields(MAX_FIELDS)), [200]);
    assert_eq!(status(&fields(MAX_FIELDS + 1)), [431]);
    let content = |length: usize| {
        let content = "a".repeat(length);
        format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{content}")
    };
    assert_eq!(status(&content(MAX_BODY)), [200]);
    assert_eq!(status(&content(MAX_BODY + 1)), [413]);
    // Everything counts except the empty line at the end, which belongs to the trailers.
    let chunk = |length: usize| {
        let content = "a".repeat(length - "fff5\r\n\r\n0\r\n".len());
        let start = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{start}{:04x}\r\n{content}\r\n0\r\n\r\n", content.len())
    };
    assert_eq!(status(&chunk(MAX_BODY)), [200]);
    assert_eq!(status(&chunk(MAX_BODY + 1)), [413]);
}

/// A repeated head is recognised. A head that differs by a byte is parsed.
#[test]
fn repeated_heads_keep_their_meaning_and_others_are_parsed() {
    let get = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    let post = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n";
    let last = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let input = [get, get, get, post, "xy", post, "zz", get, get, "\r\n", get, get, last, get];
    let a = "GET /a;";
    let summary = [a, a, a, "POST /a [xy];", "POST /a [zz];", a, a, a, a, a];
    assert_served(input.concat().as_bytes(), &summary, true);
}

/// RFC 9110, 7.8. A WebSocket request is an example (RFC 6455, 1.3).
#[test]
fn a_request_for_an_upgrade_is_marked() {
    use regatta_proto::http1::server::{Decoder, Event};
    let asks = |version: &str, fields: &str| {
        let head = format!("GET /chat HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        let mut decoder = Decoder::default();
        // Parsed at once, recognised, and parsed in pieces.
        let mut seen = Vec::new();
        for _ in 0..4 {
            let Some((Event::Request(request), _)) = decoder.decode(head.as_bytes()) else {
                panic!("{head}");
            };
            seen.push(request.wants_upgrade);
            if !request.terms.keep_alive {
                decoder = Decoder::default();
            }
        }
        let (a, b) = (&head.as_bytes()[..head.len() - 1], head.as_bytes());
        assert!(decoder.decode(a).is_none());
        let Some((Event::Request(request), _)) = decoder.decode(b) else { panic!("{head}") };
        seen.push(request.wants_upgrade);
        assert!(seen.iter().all(|asks| *asks == seen[0]), "{head}");
        seen[0]
    };
    for (version, fields, expected) in [
        ("1.1", "Upgrade: websocket\r\nConnection: Upgrade\r\n", true),
        ("1.1", "connection: keep-alive, UPGRADE\r\nUPGRADE: h2c, websocket\r\n", true),
        ("1.1", "Connection: close\r\nConnection: upgrade\r\nUpgrade: x\r\n", true),
        ("1.2", "Upgrade: websocket\r\nConnection: Upgrade\r\n", true),
        ("1.1", "", false),
        ("1.1", "Upgrade: websocket\r\n", false),
        ("1.1", "Connection: Upgrade\r\n", false),
        ("1.1", "Upgrade: \r\nConnection: Upgrade\r\n", false),
        ("1.1", "Upgrade: websocket\r\nConnection: keep-alive\r\n", false),
        ("1.1", "Upgrade: websocket\r\nConnection: upgraded\r\n", false),
        ("1.1", "Upgrades: websocket\r\nConnection: upgrade\r\n", false),
        ("1.0", "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n", false),
    ] {
        assert_eq!(asks(version, fields), expected, "{version} {fields}");
    }
}
