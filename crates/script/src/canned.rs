//! What the null server of an HTTP race is given: the length of a request and one reply. It can then
//! serve without looking at a byte.

use crate::http::{self, Place};

/// A length and a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canned {
    /// Length of every request, in bytes.
    pub request_bytes: usize,
    /// The reply to every request.
    pub reply: &'static str,
}

/// For the workload `hello` under a plan with this `host` and `path`. `closes`: every request comes
/// on a connection of its own and says `Connection: close`, and so does the reply.
pub fn hello(host: &str, path: Option<&str>, closes: bool) -> Canned {
    let place = Place { host, path, closes };
    Canned { request_bytes: http::hello(place).longest(place), reply: reply(closes) }
}

/// A reply of regatta's own `hello`, as it was at 1234567890 s.
pub(crate) fn reply(closes: bool) -> &'static str {
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
    use crate::Workload;

    #[test]
    fn every_request_has_the_length_that_is_told_and_every_reply_is_the_canned_one() {
        for closes in [false, true] {
            let place = Place { host: "127.0.0.1:40001", path: None, closes };
            let canned = hello(place.host, place.path, closes);
            let script = Workload::CannedHello.script(1, 16, place).unwrap();
            let hello = Workload::Hello.script(1, 16, place).unwrap();
            for i in 0..script.count() + 16 {
                assert_eq!(script.request(i), hello.request(i));
                assert_eq!(script.request(i).len(), canned.request_bytes);
                assert_eq!(script.reply(i), canned.reply.as_bytes());
            }
        }
    }
}
