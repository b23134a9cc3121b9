//! Request targets (RFC 9112, 3.2) and authorities (RFC 3986, 3.2): the allowed characters, and the
//! position of the path.

use super::{Fault, MAX_LINE, Method};
use memchr::memchr;
use std::net::Ipv6Addr;

/// The method and the target of a request, for codecs of other versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// The method.
    pub method: Method,
    /// The target's path, not decoded. `/` if it is missing, `*` for `*`.
    pub path: &'a str,
    /// The target's text after `?`.
    pub query: Option<&'a str>,
}

impl<'a> Ask<'a> {
    /// Reads a method and a target, with the rules of HTTP/1.1.
    ///
    /// # Errors
    /// Returns the fault with which HTTP/1.1 refuses such a request.
    #[inline]
    pub fn read(method: &[u8], target: &'a [u8]) -> Result<Self, Fault> {
        let method = std::str::from_utf8(method).ok().and_then(Method::parse);
        let method = method.filter(|method| *method != Method::Connect).ok_or(Fault::METHOD)?;
        if target.len() > MAX_LINE {
            return Err(Fault::LINE_TOO_LONG);
        }
        check(method, target)?;
        let text = std::str::from_utf8(target).map_err(|_| BYTES)?;
        let (path, query) = Split::of(target).path_and_query(text);
        Ok(Ask { method, path, query })
    }
}

/// Checks the host, with an optional port, that a request of another version of HTTP names: like that of a
/// target with a scheme, it is not empty, and has no user name (RFC 9110, 4.2.1 and 4.2.4).
///
/// # Errors
/// Returns the fault with which HTTP/1.1 refuses such a host.
#[inline]
pub fn check_authority(text: &[u8]) -> Result<(), Fault> {
    if text.is_empty() || text[0] == b':' || !is_host(text) { Err(AUTHORITY) } else { Ok(()) }
}

/// Checks a target. It must have the form required by the method and contain only what RFC 3986
/// permits: a recipient should answer 400 rather than repair it (RFC 9112, 3.2).
#[inline]
pub(super) fn check(method: Method, target: &[u8]) -> Result<(), Fault> {
    match target {
        [b'/', ..] => path(target),
        [b'*'] if method == Method::Options => Ok(()),
        [b'*'] => Err(ASTERISK),
        _ => absolute(target),
    }
}

/// The position of the path in a checked target. The target is shorter than `MAX_LINE`. The path is
/// followed by `?` and the query, or by nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    path_at: u16,
    path_end: u16,
}

impl Split {
    /// The split of a target that starts with its path.
    #[inline]
    pub(super) fn at(path_end: usize) -> Self {
        Split { path_at: 0, path_end: path_end as u16 }
    }

    /// The split of any checked target.
    pub(super) fn of(target: &[u8]) -> Self {
        let path_at = match target {
            [b'/' | b'*', ..] => 0,
            _ => {
                let host =
                    target.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
                let path = target[host..].iter().position(|b| matches!(b, b'/' | b'?'));
                path.map_or(target.len(), |length| host + length)
            }
        };
        let path_end = memchr(b'?', &target[path_at..]).map_or(target.len(), |at| path_at + at);
        Split { path_at: path_at as u16, path_end: path_end as u16 }
    }

    /// Returns the path and the query, without the `?`. The path of `*` is `*`; a missing path is
    /// `/` (RFC 9110, 4.2.3).
    #[inline]
    pub(super) fn path_and_query(self, target: &str) -> (&str, Option<&str>) {
        let (path_at, path_end) = (usize::from(self.path_at), usize::from(self.path_end));
        let path = target.get(path_at..path_end).unwrap_or_default();
        (if path.is_empty() { "/" } else { path }, target.get(path_end + 1..))
    }
}

/// Returns whether `text` is a host with an optional port, or empty (RFC 9110, 7.2; RFC 3986, 3.2.2
/// and 3.2.3).
#[inline]
pub(super) fn is_host(text: &[u8]) -> bool {
    let (host, port) = match text {
        [b'[', rest @ ..] => match memchr(b']', rest) {
            Some(end) if is_ip_literal(&rest[..end]) => (&[][..], &rest[end + 1..]),
            _ => return false,
        },
        _ => text.split_at(text.iter().position(|&b| b == b':').unwrap_or(text.len())),
    };
    let port_is_fine = match port {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    port_is_fine && host.iter().all(|&b| IN_HOST[usize::from(b)]) && escapes_are_whole(host)
}

const ASTERISK: Fault = Fault::bad("The target * is only allowed with OPTIONS.");
const FORM: Fault = Fault::bad("Expected a target that starts with / or http://host.");
const BYTES: Fault = Fault::bad("The target contains a character that must be percent-encoded.");
const ESCAPE: Fault = Fault::bad("A % in the target is not followed by two hexadecimal digits.");
const AUTHORITY: Fault = Fault::bad("The target's host is missing or invalid.");

/// `absolute-path [ "?" query ]`. A fragment is not part of a target, so `#` is refused, too.
fn path(text: &[u8]) -> Result<(), Fault> {
    if !text.iter().all(|&b| IN_PATH[usize::from(b)]) {
        return Err(BYTES);
    }
    if escapes_are_whole(text) { Ok(()) } else { Err(ESCAPE) }
}

/// `http://host[:port]` or `https://host[:port]`, with or without a path and a query. A user name is
/// an error (RFC 9110, 4.2.4).
fn absolute(target: &[u8]) -> Result<(), Fault> {
    let after = |scheme: &[u8]| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let Some(rest) = after(b"http://").or_else(|| after(b"https://")) else {
        return Err(FORM);
    };
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(end);
    check_authority(host)?;
    path(rest)
}

fn escapes_are_whole(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr(b'%', rest) {
        match rest[at + 1..] {
            [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => rest = &rest[at + 3..],
            _ => return false,
        }
    }
    true
}

fn is_ip_literal(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// `unreserved` and `sub-delims` of RFC 3986, 2.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
        )
}

/// Bytes that are allowed in a host name (RFC 3986, 3.2.2).
const IN_HOST: [bool; 256] = with_plain(b"%");

/// Bytes that are allowed in a path and its query (RFC 3986, 3.3 and 3.4).
const IN_PATH: [bool; 256] = with_plain(b"/?:@%");

/// The plain bytes and `others`.
const fn with_plain(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_plain(byte as u8);
        byte += 1;
    }
    let mut other = 0;
    while other < others.len() {
        table[others[other] as usize] = true;
        other += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_has_its_target_forms() {
        for (method, target, expected) in [
            (Method::Get, "/", Ok(())),
            (Method::Get, "/hash?n=1000", Ok(())),
            (Method::Get, "//a/../b;c=d/%7Euser?x=/?y", Ok(())),
            (Method::Get, "http://a.b:80/c?d", Ok(())),
            (Method::Get, "HTTP://a", Ok(())),
            (Method::Get, "https://[::1]:443?d", Ok(())),
            (Method::Options, "*", Ok(())),
            (Method::Get, "*", Err(ASTERISK)),
            (Method::Options, "**", Err(FORM)),
            (Method::Get, "a.b:80", Err(FORM)),
            (Method::Get, "index.html", Err(FORM)),
            (Method::Get, "", Err(FORM)),
            (Method::Get, "ftp://a/", Err(FORM)),
            (Method::Get, "http:/a", Err(FORM)),
            (Method::Get, "http:///a", Err(AUTHORITY)),
            (Method::Get, "http://:80/a", Err(AUTHORITY)),
            (Method::Get, "http://u:p@a/", Err(AUTHORITY)),
            (Method::Get, "http://a:80:80/", Err(AUTHORITY)),
            (Method::Get, "/a#b", Err(BYTES)),
            (Method::Get, "/a\\b", Err(BYTES)),
            (Method::Get, "/\u{e9}", Err(BYTES)),
            (Method::Get, "/a\"<>", Err(BYTES)),
            (Method::Get, "/%", Err(ESCAPE)),
            (Method::Get, "/%2", Err(ESCAPE)),
            (Method::Get, "/%zz", Err(ESCAPE)),
        ] {
            assert_eq!(check(method, target.as_bytes()), expected, "{target}");
        }
    }

    #[test]
    fn splits_paths_and_queries() {
        for (target, expected) in [
            ("/", ("/", None)),
            ("/hash?n=1", ("/hash", Some("n=1"))),
            ("/a?", ("/a", Some(""))),
            ("/a?b?c", ("/a", Some("b?c"))),
            ("/a?u=http://b/c", ("/a", Some("u=http://b/c"))),
            ("http://a/b?c", ("/b", Some("c"))),
            ("http://a", ("/", None)),
            ("http://a?b", ("/", Some("b"))),
            ("http://a?", ("/", Some(""))),
            ("http://a/b", ("/b", None)),
            ("*", ("*", None)),
        ] {
            let split = Split::of(target.as_bytes());
            assert_eq!(split.path_and_query(target), expected, "{target}");
        }
    }

    #[test]
    fn other_versions_have_the_same_faults() {
        let read = |method: &str, target: &str| {
            Ask::read(method.as_bytes(), target.as_bytes())
                .map(|ask| (ask.path.to_owned(), ask.query.map(str::to_owned)))
        };
        let found = ("/hash".to_owned(), Some("n=1".to_owned()));
        assert_eq!(read("GET", "/hash?n=1"), Ok(found));
        assert_eq!(read("CONNECT", "a:1"), Err(Fault::METHOD));
        assert_eq!(read("get", "/"), Err(Fault::METHOD));
        assert_eq!(read("GET", "*"), Err(ASTERISK));
        assert_eq!(read("GET", "/a b"), Err(BYTES));
        assert_eq!(read("GET", &"/".repeat(MAX_LINE)).map(|_| ()), Ok(()));
        assert_eq!(read("GET", &"/".repeat(MAX_LINE + 1)), Err(Fault::LINE_TOO_LONG));
    }

    #[test]
    fn hosts_are_recognised() {
        for host in ["", "a", "a.b:80", "a:", "127.0.0.1:8080", "[::1]", "[::1]:80", "a_b", "%41"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for other in
            ["a b", "a/", "a@b", "a:b", "a:80:80", "[::1", "[1]", "[::1]80", "a:-1", "%4", "\u{e9}"]
        {
            assert!(!is_host(other.as_bytes()), "{other}");
        }
    }
}
