//! Request methods (RFC 9110, section 9).

/// The methods of RFC 9110, section 9, and PATCH of RFC 5789. A server answers CONNECT and all other
/// methods with 501.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are those of the RFC
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Connect,
    Options,
    Trace,
    Patch,
}

impl Method {
    /// The method as sent. Methods are case-sensitive.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Connect => "CONNECT",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Patch => "PATCH",
        }
    }

    /// Length of the longest method here, in bytes.
    pub(super) const MAX_KNOWN: usize = "CONNECT".len();

    /// Length in bytes after which a method is refused without waiting for its end. All registered
    /// methods are shorter (RFC 9110, 16.1.1).
    pub(super) const MAX_AWAITED: usize = 32;

    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "CONNECT" => Method::Connect,
            "OPTIONS" => Method::Options,
            "TRACE" => Method::Trace,
            "PATCH" => Method::Patch,
            _ => return None,
        })
    }
}
