//! The fast parser agrees with the careful one on every head that it accepts.

use super::*;
use crate::http1::{Fault, scan::Limits, scan::Scan};
use proptest::{collection::vec, prelude::*, sample::select};

/// Parses the same bytes with the careful parser.
fn read_carefully(input: &[u8]) -> Option<(RequestHead, usize)> {
    let limits = Limits { first_line: MAX_LINE, block: MAX_HEAD };
    let end = Scan::default().end(input, limits).ok()??;
    let read = |head: &[u8]| -> Result<RequestHead, Fault> {
        RequestHead::check_start(head)?;
        RequestHead::read(head)
    };
    Some((read(&input[..end]).ok()?, end))
}

/// Asserts that both parsers return the same.
fn assert_agrees(input: &[u8]) {
    assert_eq!(read(input), read_carefully(input), "{}", input.escape_ascii());
}

/// Asserts that the fast parser accepts the head, whatever follows, but no prefix of it.
fn assert_read(head: &[u8]) {
    let expected = read_carefully(head);
    assert!(expected.is_some(), "{}", head.escape_ascii());
    for after in [&b""[..], b"GET / HTTP/1.1\r\n", &[0; 100], &[b'\n'; 100], &[b'a'; 100]] {
        let input = [head, after].concat();
        assert_eq!(read(&input), expected, "{}", input.escape_ascii());
    }
    for cut in 0..head.len() {
        assert_eq!(read(&head[..cut]), None, "{}, cut at {cut}", head.escape_ascii());
    }
}

fn any_case(text: &str) -> impl Strategy<Value = String> + use<> {
    let text = text.to_owned();
    vec(any::<bool>(), text.len()).prop_map(move |upper| {
        text.chars()
            .zip(upper)
            .map(|(letter, upper)| if upper { letter.to_ascii_uppercase() } else { letter })
            .collect()
    })
}

fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        "/[a-zA-Z0-9/&'()*+,:;=?@_.-]{0,50}",
        "/[a-z/]{10,20}[?]?[a-z?=]{0,20}",
        "/[a-z!$%~]{0,20}",
        "/(%[0-9a-fA-F]{2}|[a-z]){0,20}",
        "https?://[a-z.]{1,10}(:[0-9]{0,4})?(/[a-z]{0,4})?([?][a-z?]{0,4})?",
        "[*]",
        "[ -~]{0,6}",
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        " [a-z0-9/.;=, -]{0,80}",
        "[ \t]{0,3}[a-z\t ]{0,20}[ \t]{0,3}",
        " [a-z\u{e9}\u{4e2d}]{0,30}",
        "[ -~\t]{0,5}",
    ]
}

/// A relevant field, usually well-formed.
fn known_field() -> impl Strategy<Value = String> {
    let space = || select(vec!["", " ", " ", " ", "\t", "  "]);
    let named = |name: &str, values: BoxedStrategy<String>| {
        (any_case(name), space(), values, select(vec!["", "", "", " ", "\t"]))
            .prop_map(|(name, before, value, after)| format!("{name}:{before}{value}{after}\r\n"))
            .boxed()
    };
    let list = |text: &'static [&'static str]| {
        let element = select(text).prop_flat_map(any_case);
        vec(element, 0..3).prop_map(|elements| elements.join(", ")).boxed()
    };
    prop_oneof![
        named("host", "[a-zA-Z0-9.-]{0,20}(:[0-9]{0,5})?".boxed()),
        named("host", "[a-z:\\[\\]_%0-9!]{0,8}".boxed()),
        named("connection", list(&["close", "keep-alive", "upgrade", "x", ""])),
        named("content-length", "[0-9]{0,6}|[0-9]{18,24}|[+a-z0-9-]{1,3}".boxed()),
        named("transfer-encoding", list(&["chunked", "gzip", "chunked;a=b", ""])),
        named("expect", list(&["100-continue", "x"])),
        named("upgrade", list(&["websocket", "h2c", ""])),
    ]
}

fn other_field() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[A-Za-z][A-Za-z0-9-]{0,40}", "[!#$%&'*+.^_`|~a-zA-Z0-9-]{1,20}"];
    (name, value()).prop_map(|(name, value)| format!("{name}:{value}\r\n"))
}

fn head() -> impl Strategy<Value = Vec<u8>> {
    let method = select(vec![
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "get",
        "BREW",
    ]);
    let version =
        prop_oneof![8 => Just("1.1"), 1 => Just("1.0"), 1 => select(vec!["1.2", "1.9", "2.0"])];
    let host = select(vec!["Host: a\r\n", "Host: 127.0.0.1:8080\r\n", ""]);
    let field = prop_oneof![1 => known_field(), 2 => other_field()];
    (method, target(), version, host, vec(field, 0..8)).prop_map(
        |(method, target, version, host, fields)| {
            let fields = fields.concat();
            format!("{method} {target} HTTP/{version}\r\n{host}{fields}\r\n").into_bytes()
        },
    )
}

proptest! {
    #[test]
    fn both_parsers_agree_on_heads(head in head(), after: Vec<u8>) {
        assert_agrees(&head);
        assert_agrees(&[&head[..], &after].concat());
    }

    #[test]
    fn both_parsers_agree_on_modified_heads(
        head in head(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..4),
        likely in select(b" \t\r\n:\0\x7f\x80,;/?%*".to_vec()),
        cut: Option<prop::sample::Index>,
    ) {
        let mut head = head;
        for (n, (at, byte, kind)) in changes.into_iter().enumerate() {
            let (at, byte) = (at.index(head.len()), if n % 2 == 0 { likely } else { byte });
            match kind {
                0 => head[at] = byte,
                1 => head.insert(at, byte),
                _ => drop(head.remove(at)),
            }
        }
        assert_agrees(&head);
        if let Some(cut) = cut {
            assert_agrees(&head[..cut.index(head.len())]);
        }
    }
}

#[test]
fn usual_heads_do_not_need_the_careful_parser() {
    let host = "Host: 127.0.0.1:8080\r\n";
    let browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
        Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
        Accept-Language: en-US,en;q=0.5\r\nUpgrade-Insecure-Requests: 1\r\n\
        sec-ch-ua-mobile: ?0\r\nX_Y.z: \r\nX:\tb\tc \r\n";
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        for target in ["/", "/a?b?c", "/%20!$~?%41", "http://a/b?c", "https://a"] {
            for fields in ["", browser, "Content-Length: 12\r\n", "TRANSFER-encoding: Chunked\r\n"]
            {
                assert_read(format!("{method} {target} HTTP/1.1\r\n{host}{fields}\r\n").as_bytes());
            }
        }
    }
    for fields in [
        "host:\ta\t\r\n",
        "HOST: [::1]:80\r\n",
        "X: ?\r\nHost: a\r\n",
        "Host: a-rather-long.name.example:8080\r\n",
        "Host:\r\nConnection: x, close\r\n",
        "Host: a\r\nConnection: Keep-Alive\r\n",
        "Host: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n",
        "Host: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n",
        "Hose: a\r\nUpgrabe: b\r\nConnectiom: close\r\nExpecs: x\r\nContent-Lengti: x\r\nHost: a\r\n",
    ] {
        assert_read(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes());
    }
    for version in ["1.0", "1.2", "1.9"] {
        let connection = "Connection: keep-alive\r\n";
        assert_read(format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n").as_bytes());
    }
    assert_read(b"GET / HTTP/1.0\r\n\r\n");
    assert_read(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
}

/// All lengths, so that the end of a name, value, target or host meets every edge of a block.
#[test]
fn heads_of_any_length_are_accepted() {
    for length in 0..150 {
        let text = "a".repeat(length);
        assert_read(format!("GET /{text} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert_read(format!("GET /{text}?{text} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert_read(format!("GET / HTTP/1.1\r\nHost: {text}\r\n\r\n").as_bytes());
        assert_read(format!("GET / HTTP/1.1\r\nHost: {text}:80\r\n\r\n").as_bytes());
        assert_read(format!("GET / HTTP/1.1\r\na{text}: b\r\nHost: a\r\n\r\n").as_bytes());
        assert_read(format!("GET / HTTP/1.1\r\na: {text}\r\nHost: a\r\n\r\n").as_bytes());
        let tabs = "\t".repeat(length);
        assert_read(format!("GET / HTTP/1.1\r\na: b{tabs}c\r\nHost: a\r\n\r\n").as_bytes());
    }
}

#[test]
fn limits_match_those_of_the_careful_parser() {
    let line = |length: usize| {
        let path = "a".repeat(length - "GET / HTTP/1.1\r\n".len());
        format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
    };
    let head = |length: usize| {
        let start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
        format!("{start}{}\r\n\r\n", "a".repeat(length - start.len() - 4)).into_bytes()
    };
    let fields = |count: usize| {
        let fields = "X: a\r\n".repeat(count - 1);
        format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
    };
    for (most, more) in [
        (line(MAX_LINE), line(MAX_LINE + 1)),
        (head(MAX_HEAD), head(MAX_HEAD + 1)),
        (fields(MAX_FIELDS), fields(MAX_FIELDS + 1)),
    ] {
        let (read_most, read_more) = (read(&most), read(&more));
        assert!(read_most.is_some() && read_most == read_carefully(&most));
        assert!(read_more.is_none() && read_carefully(&more).is_none());
    }
}

#[test]
fn a_plain_host_is_a_name_with_at_most_a_port() {
    let is_plain = |value: &[u8]| {
        let head = [b" ", value, b"\r\n\r\n", &[b'a'; 32]].concat();
        is_plain_host(&head, 0, 1 + value.len())
    };
    for plain in [&b"a"[..], b"a.test", b"a:", b"a:80", b"127.0.0.1:80"] {
        assert!(is_plain(plain), "{}", plain.escape_ascii());
    }
    for other in [&b"a/"[..], b"a@80", b"a[", b"a:80/", b"a:b", b"a:80:80"] {
        assert!(!is_plain(other), "{}", other.escape_ascii());
    }
}
