//! Valid pipelined requests, split in every way, and input that is not HTTP.

use crate::served::serve;
use proptest::{collection::vec, prelude::*, sample::select};

/// A valid request with its content.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let method = select(vec!["GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE"]);
    let target = select(vec!["/", "/hash?n=1", "http://b/c?d", "/a%20b"]);
    let field = select(vec![
        "",
        "X: y\r\n",
        "x:\t\r\n",
        "Connection: keep-alive\r\n",
        "Expect: 100-continue\r\n",
        "Accept: text/html, */*\r\nUser-Agent: test\r\nX: \u{e9}\r\n",
    ]);
    let empty_line = any::<bool>();
    (empty_line, method, target, field, content()).prop_map(
        |(empty_line, method, target, field, content)| {
            let empty = if empty_line { "\r\n" } else { "" };
            let head = format!("{empty}{method} {target} HTTP/1.1\r\nHost: a\r\n{field}");
            [head.as_bytes(), &content].concat()
        },
    )
}

/// The last fields of a head, its end, and its content: none, with a length, or in chunks.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || vec(prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n')], 0..40);
    let chunk = (vec(any::<u8>(), 1..20), select(vec!["", ";a", " ; a=\"b;c\"", ";a=b;c"]));
    let trailer = select(vec!["", "X-Sum: 1\r\n"]);
    prop_oneof![
        Just(b"\r\n".to_vec()),
        bytes().prop_map(|content| {
            let length = format!("Content-Length: {}\r\n\r\n", content.len());
            [length.as_bytes(), &content].concat()
        }),
        (vec(chunk, 0..4), trailer).prop_map(|(chunks, trailer)| {
            let mut all = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
            for (content, extension) in chunks {
                all.extend(format!("{:x}{extension}\r\n", content.len()).bytes());
                all.extend(content);
                all.extend(b"\r\n");
            }
            all.extend(format!("0\r\n{trailer}\r\n").bytes());
            all
        }),
    ]
}

/// Splits `bytes` into pieces of these lengths, repeatedly.
pub fn pieces<'a>(bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let (mut rest, mut lengths) = (bytes, lengths.iter().cycle());
    std::iter::from_fn(move || {
        let length = rest.len().min(*lengths.next()?);
        let (piece, later) = rest.split_at(length);
        rest = later;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Parts of HTTP in random order.
fn debris() -> impl Strategy<Value = Vec<u8>> {
    let part = select(vec![
        "GET ",
        "POST ",
        "/ ",
        "HTTP/1.1",
        "HTTP/1.0",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "\r",
        "Host: a\r\n",
        "Host",
        ": ",
        ":",
        " ",
        "Content-Length: ",
        "3",
        "Transfer-Encoding: ",
        "chunked",
        "gzip, ",
        "0\r\n",
        "5\r\nhello\r\n",
        "5;a=\"",
        "Expect: 100-continue\r\n",
        "Connection: close\r\n",
        "\0",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    ]);
    let part = part.prop_map(|text| text.as_bytes().to_vec());
    vec(prop_oneof![9 => part, 1 => vec(any::<u8>(), 0..8)], 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    /// Each request is answered once, in order, however the stream is split.
    #[test]
    fn valid_requests_are_answered_the_same_however_they_are_split(
        requests in vec(request(), 1..6),
        lengths in vec(1usize..60, 1..12),
    ) {
        let stream = requests.concat();
        let whole = serve([&stream[..]]);
        prop_assert_eq!(whole.statuses(), vec![200; requests.len()], "{}", stream.escape_ascii());
        prop_assert!(!whole.closed);
        let alone: Vec<u8> =
            requests.iter().flat_map(|request| serve([&request[..]]).replies).collect();
        prop_assert_eq!(&whole.replies, &alone, "{}", stream.escape_ascii());
        let cut = serve(pieces(&stream, &lengths));
        prop_assert_eq!(&cut.replies, &whole.replies, "{}", stream.escape_ascii());
    }

    /// Any input: no panic, no more input held than the limit, and the same replies however it is
    /// split.
    #[test]
    fn invalid_input_is_answered_the_same_however_it_is_split(
        bytes in debris(),
        lengths in vec(1usize..30, 1..8),
    ) {
        let whole = serve([&bytes[..]]);
        prop_assert_eq!(serve(pieces(&bytes, &lengths)), whole, "{}", bytes.escape_ascii());
    }

    /// The same for random bytes.
    #[test]
    fn random_bytes_are_answered_the_same_however_they_are_split(
        bytes: Vec<u8>,
        lengths in vec(1usize..30, 1..8),
    ) {
        let whole = serve([&bytes[..]]);
        prop_assert_eq!(serve(pieces(&bytes, &lengths)), whole);
    }

    /// Two requests with one changed byte: the same replies however they are split.
    #[test]
    fn one_wrong_byte_is_answered_the_same_however_it_is_split(
        request in request(),
        at: prop::sample::Index,
        byte: u8,
        lengths in vec(1usize..30, 1..8),
    ) {
        let mut bytes = request.repeat(2);
        let at = at.index(request.len());
        bytes[at] = byte;
        let whole = serve([&bytes[..]]);
        prop_assert_eq!(serve(pieces(&bytes, &lengths)), whole, "{}", bytes.escape_ascii());
    }
}

/// Endless input of any kind is refused or answered before it fills a buffer.
#[test]
fn memory_is_bounded_for_endless_input() {
    let post = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (start, again) in [
        ("", "a"),
        ("", "GET "),
        ("GET / HTTP/1.1\r\n", "X: y\r\n"),
        ("GET / HTTP/1.1\r\nX: ", "y"),
        (post, "1\r\na\r\n"),
        (post, "1;a=b\r\na\r\n"),
        (post, "0"),
        (post, "0;a=\"aaaaaaaaaaaaaaaaaa"),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n"),
        ("", "\r\n"),
    ] {
        let again = again.as_bytes();
        let endless = std::iter::repeat_n(again, 200_000 / again.len());
        let served = serve(std::iter::once(start.as_bytes()).chain(endless));
        assert!(served.closed, "{start} {}", again.escape_ascii());
    }
}
