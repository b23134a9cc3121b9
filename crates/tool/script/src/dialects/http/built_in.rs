//! The built-in workloads over HTTP: `hello` and `hash`, and the reply of a server that answers `hello`
//! without parsing requests.

use super::{
    heads,
    reply::{
        expected::{Content, Status},
        receive::Http,
        salted::{self, Salted},
        seen,
    },
    requests::HttpRequest,
};
use crate::{
    hash_file::HashedFile,
    protocol::{CompileOptions, Destination, Sample},
    script::{Conversations, Script, TooLarge},
};
use regatta_proto::http1::client::Ask;
use regatta_record::Heads;

/// The request for the time, which must match this machine's clock.
fn hello(place: Destination<'_>) -> HttpRequest {
    let mut request = HttpRequest::get(place.path.unwrap_or("/"));
    request.expected.status = Status::Is(200);
    request.expected.content = Content::Clock { within: 2 };
    request
}

/// The request for a digest of [`crate::hash_file`] in `n` rounds, with a placeholder for the salt.
fn hash(n: u32, place: Destination<'_>) -> HttpRequest {
    let mut request = HttpRequest::get(&(before_salt(n, place) + salted::PLACE));
    request.expected.status = Status::Is(200);
    request.expected.content = Content::Digest;
    request
}

/// The target of `hash` before its salt.
fn before_salt(n: u32, place: Destination<'_>) -> String {
    format!("{}?n={n}&salt=", place.path.unwrap_or("/hash"))
}

/// Compiles the exchanges of `hello`.
pub(super) fn compile_hello(heads: Heads, order: &CompileOptions<'_>) -> Result<Http, TooLarge> {
    compile(&hello(order.place), heads, order)
}

/// Compiles the exchanges of `hash`; each request has its own salt.
pub(super) fn compile_hash(
    n: u32,
    heads: Heads,
    order: &CompileOptions<'_>,
) -> Result<Http, TooLarge> {
    let at = "GET ".len() + before_salt(n, order.place).len();
    let salted = Salted { seed: order.seed, n, at, file: HashedFile::new() };
    Ok(compile(&hash(n, order.place), heads, order)?.salted(salted))
}

/// Composes the requests of `hello` for a server that only counts bytes: the same number of requests,
/// all of the mean length. Each is answered by [`canned_reply`].
pub(super) fn compose_canned(heads: Heads, seed: u64, place: Destination<'_>) -> Script {
    let script = compose(&hello(place), heads, seed, place).levelled();
    script.answered_with(canned_reply(place.closes).as_bytes())
}

/// Returns one request of `hello`.
pub(super) fn sample_hello(place: Destination<'_>) -> Sample {
    sample(&hello(place), place)
}

/// Returns one request of `hash`.
pub(super) fn sample_hash(place: Destination<'_>) -> Sample {
    sample(&hash(1, place), place)
}

fn sample(request: &HttpRequest, place: Destination<'_>) -> Sample {
    let script = compose(request, Heads::Identical, 0, place);
    Sample { asks: script.request(0).to_vec(), seen: seen::reply, is_only: false }
}

fn compile(
    request: &HttpRequest,
    heads: Heads,
    order: &CompileOptions<'_>,
) -> Result<Http, TooLarge> {
    let mut script = compose(request, heads, order.seed, order.place);
    script.close(order.pipeline)?;
    Ok(Http::new(script, vec![request.expected.clone()], &[0]))
}

/// Number of exchanges before a script of identical requests repeats: few enough to fit into the
/// nearest cache, and enough to wrap around rarely.
const IDENTICAL: usize = 64;

/// Composes exchanges of one request. Not closed.
fn compose(request: &HttpRequest, heads: Heads, seed: u64, place: Destination<'_>) -> Script {
    let heads = match heads {
        Heads::Varied => heads::varied(seed, place.closes),
        Heads::Identical => {
            let closes = place.closes.then(|| ("Connection", "close".to_owned()));
            vec![closes.into_iter().collect(); IDENTICAL]
        }
    };
    let (method, target) = (request.expected.method, request.target.as_str());
    let mut script = Script::new(Conversations::Each(1));
    let mut bytes = Vec::new();
    for fields in heads {
        bytes.clear();
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Ask { method, target, host: place.host, fields: &fields, content: None }.write(&mut bytes);
        script.push(&bytes, &request.text);
    }
    script
}

/// Returns a reply of regatta's own `hello`, as it was at 1234567890 s. If `closes`, it has
/// `Connection: close`.
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
mod tests;
