//! Origins of pages that may open a WebSocket.

use std::{fmt, net::Ipv6Addr, str::FromStr};

/// The origin of a page: scheme, host and port (RFC 6454), e.g. `https://example.com`. Case and an
/// explicit default port make no difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(Box<str>);

/// Why a text is not an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOrigin {
    /// The scheme is missing.
    #[error("an origin starts with a scheme; write {0}")]
    NoScheme(Origin),
    /// Text follows the host and port.
    #[error("an origin ends with its host or port, without a slash or a path; write {0}")]
    Path(Origin),
    /// Malformed in another way.
    #[error("expected SCHEME://HOST or SCHEME://HOST:PORT, e.g. https://example.com")]
    Malformed,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    /// Parses the ASCII serialization (RFC 6454, 6.2). Browsers send non-ASCII host names in
    /// Punycode.
    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        if text == "null" {
            // The origin of pages without one (RFC 6454, 7.3).
            return Ok(Origin(text.into()));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(match format!("https://{text}").parse() {
                Ok(origin) | Err(InvalidOrigin::Path(origin)) => InvalidOrigin::NoScheme(origin),
                Err(other) => other,
            });
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let origin = read(scheme, authority).ok_or(InvalidOrigin::Malformed)?;
        if path.is_empty() { Ok(origin) } else { Err(InvalidOrigin::Path(origin)) }
    }
}

fn read(scheme: &str, authority: &str) -> Option<Origin> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match port {
        Some(port) => Some(number(port)?),
        None => None,
    };
    let scheme = scheme.to_ascii_lowercase();
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if !scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        || !scheme.bytes().all(is_of_scheme)
    {
        return None;
    }
    let host = match host.strip_prefix('[') {
        Some(rest) => format!("[{}]", rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?),
        None => host.to_ascii_lowercase(),
    };
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if !host.starts_with('[') && (host.is_empty() || !host.bytes().all(is_of_name)) {
        return None;
    }
    let usual = match &*scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    Some(Origin(match port.filter(|port| Some(*port) != usual) {
        Some(port) => format!("{scheme}://{host}:{port}").into(),
        None => format!("{scheme}://{host}").into(),
    }))
}

/// Parses a port.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origin(text: &str) -> Result<Origin, InvalidOrigin> {
        text.parse()
    }

    #[test]
    fn origins_ignore_case_and_default_ports() {
        let same = |a: &str, b: &str| origin(a).unwrap() == origin(b).unwrap();
        assert!(same("HTTPS://Example.COM", "https://example.com"));
        assert!(same("https://example.com:443", "https://example.com"));
        assert!(same("http://example.com:80", "http://example.com"));
        assert!(same("http://[::0001]:8080", "http://[::1]:8080"));
        assert!(!same("https://example.com:80", "https://example.com"));
        assert!(!same("http://example.com", "https://example.com"));
        assert!(!same("https://example.com", "https://example.com:8443"));
        assert!(!same("null", "https://null"));
        assert_eq!(origin("chrome-extension://ab").unwrap().to_string(), "chrome-extension://ab");
    }

    #[test]
    fn an_invalid_origin_is_refused_with_a_suggestion() {
        for (text, expected) in [
            ("example.com", "write https://example.com"),
            ("localhost:3000", "write https://localhost:3000"),
            ("example.com/chat", "write https://example.com"),
            ("https://example.com/", "write https://example.com"),
            ("http://EXAMPLE.com:80/chat?a#b", "write http://example.com"),
        ] {
            let why = origin(text).unwrap_err().to_string();
            assert!(why.ends_with(expected), "{text}: {why}");
        }
        let malformed = "* |  | https:// | https://*.example.com | https://me@example.com | \
                         https://example.com: | https://example.com:x | https://example.com:65536 | \
                         https://example.com:+1 | https://exämple.com | https://[::1 | 1http://a | a b";
        for text in malformed.split(" | ") {
            assert_eq!(origin(text), Err(InvalidOrigin::Malformed), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_suggested_origin_is_valid(text in "(https?://|)[a-zA-Z:/?#.\\[\\]0-9*@ ]{0,12}") {
            match origin(&text) {
                Ok(origin) | Err(InvalidOrigin::NoScheme(origin) | InvalidOrigin::Path(origin)) => {
                    prop_assert_eq!(origin.to_string().parse(), Ok(origin));
                }
                Err(InvalidOrigin::Malformed) => {}
            }
        }
    }
}
