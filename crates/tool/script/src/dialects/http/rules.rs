//! Validates what users write in flags and workload files for HTTP: methods, paths, header fields,
//! statuses, JSON Pointers, regular expressions. An error says what was expected.

pub use crate::workload::regex::regex;

use super::reply::expected::Status;
use regatta_proto::http1::Method;

/// Maximum number of bytes of a content, and of a text that one is compared with.
pub const LONGEST_BODY: usize = 4 << 20;

/// CONNECT is excluded because the bytes after it are not HTTP.
const METHODS: [Method; 8] = [
    Method::Get,
    Method::Head,
    Method::Post,
    Method::Put,
    Method::Patch,
    Method::Delete,
    Method::Options,
    Method::Trace,
];

/// Returns the method of this name, in capitals.
pub fn method(name: &str) -> Result<Method, String> {
    METHODS.into_iter().find(|method| method.as_str() == name).ok_or_else(|| {
        let names = METHODS.map(Method::as_str).join(", ");
        format!("{name:?} is not a method; expected one of {names}")
    })
}

/// Serialises methods by their names in messages.
pub(super) mod by_name {
    use super::Method;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(method.as_str())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
        super::method(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Whether a request of this method has a Content-Length even without content (RFC 9110, 8.6).
pub fn has_length(method: Method) -> bool {
    matches!(method, Method::Post | Method::Put | Method::Patch)
}

/// Parses a status: `200`, a class such as `2xx`, or `any`.
pub fn status(text: &str) -> Result<Status, String> {
    let classes = ["2xx", "3xx", "4xx", "5xx"];
    if text == "any" {
        return Ok(Status::Any);
    }
    if let Some(at) = classes.iter().position(|class| *class == text) {
        return Ok(Status::Class(at as u16 + 2));
    }
    let number = text.parse().ok().filter(|number| (200..=599).contains(number));
    number.map(Status::Is).ok_or_else(|| {
        format!("{text:?} is not a final status; expected 200 to 599, a class such as 2xx, or any")
    })
}

/// Checks a path with its query (RFC 3986, 3.3 and 3.4).
pub fn check_path(path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err("a path starts with /, e.g. /items/7?all=1".into());
    }
    if let Some(wrong) = path.chars().find(|&c| !may_stand_in_path(c)) {
        let coded: String = wrong.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        return Err(match wrong {
            '#' => {
                "# and the text after it are not sent to a server; remove them, or write %23".into()
            }
            _ => format!("a path cannot contain {wrong:?}; write it as {coded}"),
        });
    }
    let escapes_are_whole = path.split('%').skip(1).all(|after| {
        after.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    });
    if !escapes_are_whole {
        return Err("a % must be followed by two hexadecimal digits; write %25 for % itself".into());
    }
    Ok(())
}

/// `pchar`, `/`, `?` and the `%` of an escape.
fn may_stand_in_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/?%".contains(c)
}

/// Checks the name of a header field (RFC 9110, 5.6.2).
pub fn check_name(name: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!(
            "{name:?} is not a header name; expected letters, digits and -, e.g. X-Request-Id"
        ));
    }
    Ok(())
}

/// Checks the name of a header field in a request.
pub fn check_sent_name(name: &str) -> Result<(), String> {
    check_name(name)?;
    if name.eq_ignore_ascii_case("content-length") {
        return Err(format!(
            "the load sends {name} itself, with the length of the body; remove it"
        ));
    }
    if name.eq_ignore_ascii_case("transfer-encoding") {
        return Err(format!(
            "{name} cannot be set, because bodies are sent whole, with their Content-Length; remove \
             it; in a workload file, `chunked = true` sends a body in a chunk"
        ));
    }
    Ok(())
}

/// Rejects characters that the value of a header field cannot contain (RFC 9110, 5.5), especially CR
/// and LF, which would end it.
pub fn check_value(value: &str) -> Result<(), String> {
    match value.chars().find(|&c| c.is_ascii_control() && c != '\t') {
        Some(c) => Err(format!("the value of a header cannot contain {c:?}; remove it")),
        None => Ok(()),
    }
}

/// Checks a JSON Pointer (RFC 6901).
pub fn check_pointer(pointer: &str) -> Result<(), String> {
    let is_escaped = pointer.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if !(pointer.is_empty() || pointer.starts_with('/')) || !is_escaped {
        return Err(format!(
            "{pointer:?} is not a JSON Pointer; expected an empty one for the whole text, or e.g. \
             /items/0/id, with ~0 for ~ and ~1 for / in a name"
        ));
    }
    Ok(())
}
