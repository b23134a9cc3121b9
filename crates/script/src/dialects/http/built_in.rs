//! The workloads over HTTP that need no file: `hello` and `hash`, and the reply that a server sends for
//! `hello` without looking. Their contract stands in the design.

use super::{
    expected::{Content, Status},
    receive::Http,
    requests::{HttpRequest, HttpWorkload},
    salted::{self, Salted},
};
use crate::{
    hash_file::HashedFile,
    protocol::{Order, Place},
    script::TooLarge,
};

/// The time, which must be this machine's.
pub(super) fn hello(place: Place<'_>) -> HttpWorkload {
    let mut request = HttpRequest::get(place.path.unwrap_or("/"));
    request.expected.status = Status::Is(200);
    request.expected.content = Content::Clock { within: 2 };
    HttpWorkload::of_one("hello", request)
}

/// A digest of [`crate::hash_file`], computed `n` times, with a place for a salt.
fn hash(n: u32, place: Place<'_>) -> HttpWorkload {
    let mut request = HttpRequest::get(&(before_salt(n, place) + salted::PLACE));
    request.expected.status = Status::Is(200);
    request.expected.content = Content::Digest;
    HttpWorkload::of_one("hash", request)
}

/// The target of `hash` up to its salt.
fn before_salt(n: u32, place: Place<'_>) -> String {
    format!("{}?n={n}&salt=", place.path.unwrap_or("/hash"))
}

/// The exchanges of `hash`, in which each request gets a salt of its own.
pub(super) fn compile_hash(n: u32, order: &Order<'_>) -> Result<Http, TooLarge> {
    let at = "GET ".len() + before_salt(n, order.place).len();
    let salted = Salted { seed: order.seed, n, at, file: HashedFile::new() };
    Ok(hash(n, order.place).compile(order)?.salted(salted))
}

/// A reply of regatta's own `hello`, as it was at 1234567890 s. `closes`: it says that the connection
/// ends with it.
pub(super) fn canned_reply(closes: bool) -> &'static str {
    match closes {
        false => {
            "HTTP/1.1 200 OK\r\n\
             Date: Fri, 13 Feb 2009 23:31:30 GMT\r\n\
             Content-Type: text/plain\r\n\
             Content-Length: 29\r\n\
             \r\n\
             Hello. The time is 1234567890"
        }
        true => {
            "HTTP/1.1 200 OK\r\n\
             Date: Fri, 13 Feb 2009 23:31:30 GMT\r\n\
             Content-Type: text/plain\r\n\
             Content-Length: 29\r\n\
             Connection: close\r\n\
             \r\n\
             Hello. The time is 1234567890"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(workload: &HttpWorkload, place: Place<'_>) -> String {
        let (mut script, _) = workload.compose(1, place);
        script.close(1).unwrap();
        String::from_utf8(script.request(0).to_vec()).unwrap()
    }

    #[test]
    fn the_built_in_requests_byte_for_byte() {
        let place = Place { host: "h:1", path: None, closes: false };
        assert_eq!(first(&hello(place), place), "GET / HTTP/1.1\r\nHost: h:1\r\n\r\n");
        let asks = "GET /hash?n=7&salt=0000000000000000 HTTP/1.1\r\nHost: h:1\r\n\r\n";
        assert_eq!(first(&hash(7, place), place), asks);
        let place = Place { path: Some("/a.php"), closes: true, ..place };
        let asks = "GET /a.php?n=7&salt=0000000000000000 HTTP/1.1\r\nHost: h:1\r\n\
                    Connection: close\r\n\r\n";
        assert_eq!(first(&hash(7, place), place), asks);
    }
}
