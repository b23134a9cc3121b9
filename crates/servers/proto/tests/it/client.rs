//! The client side: responses that are accepted, and responses that are refused.

use proptest::{collection::vec, prelude::*, sample::select};
use regatta_proto::http1::{
    Method, Version,
    client::{Ask, Decoder, Event, Framing, MAX_INTERIM, Malformed},
};

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub status: u16,
    pub framing: Framing,
    pub x: Option<Vec<u8>>,
    pub content: Vec<u8>,
    pub keep_alive: bool,
}

/// Decodes the responses to requests with the method `asked`, from a connection that delivers these
/// pieces and then closes or not. An incomplete response is omitted.
pub fn read<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    asked: Method,
    ends: bool,
) -> Result<Vec<Seen>, Malformed> {
    let (mut decoder, mut held, mut all) = (Decoder::default(), Vec::new(), Vec::new());
    let mut current = None;
    for piece in pieces {
        held.extend_from_slice(piece);
        let mut rest = &held[..];
        while let Some(event) = decoder.next(&mut rest, asked)? {
            see(event, &mut current, &mut all);
        }
        let left = rest.len();
        held.drain(..held.len() - left);
    }
    if ends && let Some(event) = decoder.end_of_input()? {
        see(event, &mut current, &mut all);
    }
    Ok(all)
}

fn see(event: Event<'_>, current: &mut Option<Seen>, all: &mut Vec<Seen>) {
    match event {
        Event::Head(head) => {
            assert!(current.is_none(), "a head within a response");
            *current = Some(Seen {
                status: head.status,
                framing: head.framing,
                x: head.fields.get("x").map(<[u8]>::to_vec),
                content: Vec::new(),
                keep_alive: false,
            });
        }
        Event::Content(piece) => {
            assert!(!piece.is_empty());
            current.as_mut().unwrap().content.extend_from_slice(piece);
        }
        // A 101 is complete with its head, and no other response follows.
        Event::Switched(head) => all.push(seen(head.status, head.framing, "", false)),
        Event::End { keep_alive } => {
            all.push(Seen { keep_alive, ..current.take().unwrap() });
        }
    }
}

/// Decodes all of `bytes` at once, byte by byte, and split at every position below 300. The results
/// must be equal.
fn read_all_ways(bytes: &[u8], asked: Method, ends: bool) -> Result<Vec<Seen>, Malformed> {
    let whole = read([bytes], asked, ends);
    assert_eq!(read(bytes.chunks(1), asked, ends), whole, "{}", bytes.escape_ascii());
    for cut in 1..bytes.len().min(300) {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(read([a, b], asked, ends), whole, "{}, cut at {cut}", bytes.escape_ascii());
    }
    whole
}

fn seen(status: u16, framing: Framing, content: &str, keep_alive: bool) -> Seen {
    Seen { status, framing, x: None, content: content.as_bytes().to_vec(), keep_alive }
}

#[test]
fn contents_end_according_to_their_framing() {
    for (bytes, expected) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            seen(200, Framing::Length(3), "abc", true),
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", seen(200, Framing::Length(0), "", true)),
        ("HTTP/1.1 404 \r\nContent-Length: 1\r\n\r\na", seen(404, Framing::Length(1), "a", true)),
        ("HTTP/1.1 404\r\nContent-Length: 1\r\n\r\na", seen(404, Framing::Length(1), "a", true)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\nA: b\r\n\r\n",
            seen(200, Framing::Chunked, "abc", true),
        ),
        (
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
            seen(200, Framing::Length(1), "a", false),
        ),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
            seen(200, Framing::Length(1), "a", false),
        ),
        (
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na",
            seen(200, Framing::Length(1), "a", true),
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", seen(204, Framing::None, "", true)),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
            seen(304, Framing::None, "", true),
        ),
        ("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", seen(101, Framing::None, "", false)),
    ] {
        let read = read_all_ways(bytes.as_bytes(), Method::Get, false);
        assert_eq!(read, Ok(vec![expected.clone()]), "{bytes}");
        if expected.keep_alive {
            let twice = read_all_ways(bytes.repeat(2).as_bytes(), Method::Get, false);
            assert_eq!(twice, Ok(vec![expected.clone(), expected]), "{bytes}");
        } else {
            let twice = read_all_ways(bytes.repeat(2).as_bytes(), Method::Get, true);
            assert_eq!(twice, Ok(vec![expected]), "{bytes}");
        }
    }
}

/// RFC 9110, 2.5 and 6.2. Regression: this was refused.
#[test]
fn reads_a_higher_minor_version_as_1_1() {
    for minor in 2..=9 {
        let bytes = format!("HTTP/1.{minor} 200 OK\r\nX: y\r\nContent-Length: 3\r\n\r\nabc");
        let expected =
            Seen { x: Some(b"y".to_vec()), ..seen(200, Framing::Length(3), "abc", true) };
        let twice = read_all_ways(bytes.repeat(2).as_bytes(), Method::Get, false);
        assert_eq!(twice, Ok(vec![expected.clone(), expected]), "{bytes}");
    }
    for malformed in
        ["HTTP/1.2 20 OK\r\n\r\n", "HTTP/1.20 200 OK\r\n\r\n", "HTTP/1.2 200 OK\r\nX : y\r\n\r\n"]
    {
        assert!(read_all_ways(malformed.as_bytes(), Method::Get, false).is_err(), "{malformed}");
    }
}

#[test]
fn without_a_length_the_content_ends_with_the_connection() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"] {
        for content in ["", "abc", "HTTP/1.1 200 OK\r\n\r\n"] {
            let bytes = [head, content].concat();
            assert_eq!(read_all_ways(bytes.as_bytes(), Method::Get, false), Ok(vec![]));
            assert_eq!(
                read_all_ways(bytes.as_bytes(), Method::Get, true),
                Ok(vec![seen(200, Framing::UntilEnd, content, false)])
            );
        }
    }
}

#[test]
fn replies_to_head_have_no_content() {
    for field in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", ""] {
        let bytes = format!("HTTP/1.1 200 OK\r\n{field}\r\n").repeat(2);
        let one = seen(200, Framing::None, "", true);
        assert_eq!(
            read_all_ways(bytes.as_bytes(), Method::Head, false),
            Ok(vec![one.clone(), one]),
            "{field}"
        );
    }
}

#[test]
fn interim_responses_are_skipped() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 1\r\n\r\na";
    let expected = Seen { x: Some(b"y".to_vec()), ..seen(200, Framing::Length(1), "a", true) };
    let bytes = [interim, last].concat();
    assert_eq!(read_all_ways(bytes.as_bytes(), Method::Get, false), Ok(vec![expected.clone()]));
    let most = [interim.repeat(MAX_INTERIM as usize / 2), last.to_owned()].concat();
    let twice = read([most.repeat(2).as_bytes()], Method::Get, false);
    assert_eq!(twice, Ok(vec![expected.clone(), expected]));
    assert!(
        read([["HTTP/1.1 100 \r\n\r\n", &most].concat().as_bytes()], Method::Get, false).is_err()
    );
}

/// RFC 9110, 15.2.2: bytes after a 101 belong to another protocol. Regression: they were parsed as
/// HTTP.
#[test]
fn takes_no_byte_after_a_101() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nContent-Length: 3\r\n\r\n";
    for behind in ["", "\x01\x02", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"] {
        for method in [Method::Get, Method::Head] {
            let bytes = [interim, head, behind].concat();
            let (mut decoder, mut rest) = (Decoder::default(), bytes.as_bytes());
            let Ok(Some(Event::Switched(response))) = decoder.next(&mut rest, method) else {
                panic!("no switch");
            };
            assert_eq!((response.status, response.framing), (101, Framing::None));
            assert_eq!(response.fields.get("upgrade"), Some(&b"x"[..]));
            for _ in 0..2 {
                assert_eq!(rest, behind.as_bytes());
                assert!(matches!(decoder.next(&mut rest, method), Ok(None)));
            }
            assert!(matches!(decoder.end_of_input(), Ok(None)));
            let read = read_all_ways(bytes.as_bytes(), method, true);
            assert_eq!(read, Ok(vec![seen(101, Framing::None, "", false)]));
        }
    }
}

/// Each other 1xx is followed by the final response (RFC 9110, 15.2).
#[test]
fn every_other_interim_response_is_followed_by_a_final_one() {
    let last = "HTTP/1.1 204 No Content\r\n\r\n";
    for status in (100..200).filter(|&status| status != 101) {
        let bytes = format!("HTTP/1.1 {status} \r\n\r\n{last}");
        let read = read([bytes.as_bytes()], Method::Get, false);
        assert_eq!(read, Ok(vec![seen(204, Framing::None, "", true)]), "{status}");
    }
}

#[test]
fn a_truncated_response_is_refused() {
    for (bytes, whole) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", true),
        ("HTTP/1.1 100 Continue\r\n\r\n", false),
        ("", false),
    ] {
        for cut in 0..bytes.len() {
            let read = read([&bytes.as_bytes()[..cut]], Method::Get, true);
            assert!(read.is_err(), "{} at {cut}: {read:?}", bytes.escape_default());
        }
        // On a persistent connection, the close comes while the next response is awaited.
        assert!(read([bytes.as_bytes()], Method::Get, true).is_err());
        let count = read([bytes.as_bytes()], Method::Get, false).unwrap().len();
        assert_eq!(count, usize::from(whole));
    }
}

#[test]
fn malformed_responses_are_refused() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let long = |length: usize| "a".repeat(length);
    let mut cases = vec![
        "\r\nHTTP/1.1 200 OK\r\n\r\n".to_owned(),
        " HTTP/1.1 200 OK\r\n\r\n".to_owned(),
        "ICY 200 OK\r\n\r\n".to_owned(),
        "Hello. The time is 1\r\n".to_owned(),
        "HTTP/2.0 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1  200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 20 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 2000 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 +20 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 099 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 600 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 200 O\0K\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\n\n".to_owned(),
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 {}", long(9000)),
        format!("{ok}X: {}\r\n\r\n", long(17000)),
        format!("{ok}{}\r\n", "X: a\r\n".repeat(101)),
    ];
    for fields in [
        "X : a",
        " X: a",
        "X: a\r\n b",
        "X: a\rb",
        "X: a\0",
        "X",
        "Content-Length: x",
        "Content-Length: -1",
        "Content-Length:",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 1, 1",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked",
    ] {
        cases.push(format!("{ok}{fields}\r\n\r\n"));
    }
    for chunks in
        ["x\r\n", "1\r\nab\r\n", "1\na\r\n", "1 \r\na\r\n", "0\r\nContent-Length: 1\r\n\r\n"]
    {
        cases.push(format!("{ok}Transfer-Encoding: chunked\r\n\r\n{chunks}"));
    }
    for case in cases {
        let read = read_all_ways(case.as_bytes(), Method::Get, false);
        assert!(read.is_err(), "{}: {read:?}", case.escape_default());
    }
}

#[test]
fn nothing_is_read_after_an_error() {
    let mut decoder = Decoder::default();
    assert!(decoder.next(&mut &b"nonsense"[..], Method::Get).is_err());
    let mut fine = &b"HTTP/1.1 204 No Content\r\n\r\n"[..];
    assert!(matches!(decoder.next(&mut fine, Method::Get), Ok(None)));
    assert!(matches!(decoder.end_of_input(), Ok(None)));
}

#[test]
fn writes_a_request_byte_for_byte() {
    let mut out = Vec::new();
    let ask = Ask {
        method: Method::Get,
        target: "/hash?n=1",
        host: "127.0.0.1:80",
        fields: &[("Accept", "*/*")],
        content: None,
    };
    ask.write(&mut out);
    Ask { method: Method::Post, fields: &[], content: Some(b"abc"), ..ask }.write(&mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "GET /hash?n=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nAccept: */*\r\n\r\n\
         POST /hash?n=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Length: 3\r\n\r\nabc"
    );
}

#[test]
fn reports_versions_and_fields() {
    let mut input = &b"HTTP/1.0 200 Fine\r\nServer: s\r\nX: \t1 \r\n\r\n"[..];
    let Ok(Some(Event::Head(head))) = Decoder::default().next(&mut input, Method::Get) else {
        panic!("no head");
    };
    assert_eq!(head.version, Version::Http10);
    let fields: Vec<_> = head.fields.iter().collect();
    assert_eq!(fields, [(&b"Server"[..], &b"s"[..]), (b"X", b"1")]);
}

proptest! {
    /// For any input, the client's events do not depend on how it is split.
    #[test]
    fn invalid_input_is_decoded_the_same_however_it_is_split(
        parts in vec(
            select(vec![
                "HTTP/1.1 200 OK\r\n", "HTTP/1.0 404 \r\n", "HTTP/1.1 100 \r\n\r\n", "\r\n", "\r\n\r\n",
                "Content-Length: 3\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n", "abc", "2\r\nab\r\n",
                "0\r\n\r\n", "X: y\r\n", "Connection: close\r\n", "\n", "\0", "HTTP/1.1 204 \r\n\r\n",
            ]),
            0..12,
        ),
        lengths in vec(1usize..20, 1..6),
        ends: bool,
    ) {
        let bytes = parts.concat().into_bytes();
        let whole = read([&bytes[..]], Method::Get, ends);
        let cut = read(crate::cuts::pieces(&bytes, &lengths), Method::Get, ends);
        // Events before an error may be reported earlier, but the error is the same.
        prop_assert_eq!(cut, whole, "{}", bytes.escape_ascii());
    }
}
