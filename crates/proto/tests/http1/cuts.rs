//! Valid pipelined requests, cut in every way, and bytes that are no requests at all.

use crate::served::serve;
use proptest::{collection::vec, prelude::*, sample::select};

/// A request that is in order, content included.
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

/// The last fields of a head, its end, and a content: none, of a length, or in chunks.
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

/// `bytes` in pieces of these lengths, over and over.
pub fn pieces<'a>(bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let (mut rest, mut lengths) = (bytes, lengths.iter().cycle());
    std::iter::from_fn(move || {
        let length = rest.len().min(*lengths.next()?);
        let (piece, later) = rest.split_at(length);
        rest = later;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Bytes that look like HTTP and are not.
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
    /// Each request is answered once, in order, however the stream is cut.
    #[test]
    fn requests_that_are_in_order_are_answered_alike(
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

    /// Whatever comes: no panic, no more held than the limit, and the same answer however it is cut.
    #[test]
    fn debris_is_answered_alike(bytes in debris(), lengths in vec(1usize..30, 1..8)) {
        let whole = serve([&bytes[..]]);
        prop_assert_eq!(serve(pieces(&bytes, &lengths)), whole, "{}", bytes.escape_ascii());
    }

    /// The same of bytes at random.
    #[test]
    fn noise_is_answered_alike(bytes: Vec<u8>, lengths in vec(1usize..30, 1..8)) {
        let whole = serve([&bytes[..]]);
        prop_assert_eq!(serve(pieces(&bytes, &lengths)), whole);
    }

    /// A request in which one byte was changed: the same answer however it is cut.
    #[test]
    fn one_wrong_byte_is_answered_alike(
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

/// Endless input of every kind is refused, or answered, before it fills a buffer.
#[test]
fn nothing_is_held_without_bound() {
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
