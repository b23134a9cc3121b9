//! Which HTTP requests a load makes: those that are built in, and a user's own, each with its share.

use super::{Content, Expected, Method, Status};
use crate::{
    hash_file,
    script::{BYTES, Conversations, Script},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use regatta_proto::http1::client::Ask;

/// Exchanges before a script repeats in which all requests are alike: as few as fit into the nearest
/// cache, and enough to go round it seldom.
const OF_ONE: usize = 64;
/// The same where requests are drawn.
const OF_SEVERAL: usize = 1 << 14;

/// Whom the requests name, and what of them follows from the plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// What Host says.
    pub host: &'a str,
    /// Target of a built-in workload instead of its own.
    pub path: Option<&'a str>,
    /// A connection serves one request, which says so: `Connection: close`.
    pub closes: bool,
}

/// HTTP requests of a user, drawn by their weights.
#[derive(Debug)]
pub struct HttpWorkload {
    name: String,
    requests: Vec<HttpRequest>,
}

/// One request, and what its reply is to be like. Host and Content-Length are added to its fields,
/// and `Connection: close` where a connection serves only one.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// How often it is made, beside the others.
    pub weight: u32,
    /// Its method: that of `expected`.
    pub expected: Expected,
    /// Its target: a path with its query.
    pub target: String,
    /// Its fields: names and values.
    pub fields: Vec<(String, String)>,
    /// Its content. `None` has no length either.
    pub content: Option<Vec<u8>>,
    /// What [`Content::Text`] and [`Content::Prefix`] compare with.
    pub text: Vec<u8>,
}

impl HttpRequest {
    /// A GET of `target`, to be answered with any status from 200 to 299.
    pub fn get(target: &str) -> Self {
        let expected = Expected {
            method: Method::Get,
            status: Status::Class(2),
            fields: Vec::new(),
            content: Content::Any,
        };
        HttpRequest {
            weight: 1,
            expected,
            target: target.to_owned(),
            fields: Vec::new(),
            content: None,
            text: Vec::new(),
        }
    }

    /// The bytes that ask for it.
    fn write(&self, place: Place<'_>, out: &mut Vec<u8>) {
        let of_own = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let fields: Vec<_> =
            of_own.chain(place.closes.then_some(("Connection", "close"))).collect();
        let (method, target) = (self.expected.method, self.target.as_str());
        let content = self.content.as_deref();
        Ask { method, target, host: place.host, fields: &fields, content }.write(out);
    }
}

impl HttpWorkload {
    /// Requests under a name. There must be at least one, at most 65,536, and not all of weight 0.
    ///
    /// # Errors
    /// A sentence, where that is not so.
    pub fn new(name: &str, requests: Vec<HttpRequest>) -> Result<Self, String> {
        if !(1..=1 << 16).contains(&requests.len()) {
            return Err(format!("{} requests; expected 1 to 65,536", requests.len()));
        }
        if requests.iter().all(|request| request.weight == 0) {
            return Err("all requests have the weight 0, so that none would ever be made".into());
        }
        Ok(HttpWorkload { name: name.to_owned(), requests })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Length of its longest request, in bytes.
    pub(crate) fn longest(&self, place: Place<'_>) -> usize {
        self.requests.iter().map(|request| bytes(request, place).len()).max().unwrap_or(0)
    }

    /// Its exchanges, drawn by weight. Not closed.
    pub(crate) fn compose(&self, seed: u64, place: Place<'_>) -> Script {
        let asks: Vec<Vec<u8>> =
            self.requests.iter().map(|request| bytes(request, place)).collect();
        let kinds = self.requests.iter().map(|request| request.expected.clone()).collect();
        let mut script = Script::http(Conversations::Each(1), kinds);
        let exchanges = if asks.len() == 1 { OF_ONE } else { OF_SEVERAL };
        let all: u64 = self.requests.iter().map(|request| u64::from(request.weight)).sum();
        let mut random = StdRng::seed_from_u64(seed);
        while script.pushed() == 0 || script.pushed() < exchanges && script.bytes() < BYTES {
            let mut drawn = random.random_range(0..all);
            let chosen = self.requests.iter().position(|request| {
                let weight = u64::from(request.weight);
                let here = drawn < weight;
                drawn = drawn.saturating_sub(weight);
                here
            });
            let chosen = chosen.expect("what is drawn is below the sum of the weights");
            script.push_http(&asks[chosen], &self.requests[chosen].text, chosen as u16);
        }
        script
    }
}

fn bytes(request: &HttpRequest, place: Place<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.write(place, &mut bytes);
    bytes
}

/// Workload `hello` of the design: the time, which must be this machine's.
pub(crate) fn hello(place: Place<'_>) -> HttpWorkload {
    let mut request = HttpRequest::get(place.path.unwrap_or("/"));
    request.expected.status = Status::Is(200);
    request.expected.content = Content::Clock { within: 2 };
    HttpWorkload { name: "hello".into(), requests: vec![request] }
}

/// Workload `hash` of the design, with `n` rounds asked for: the digest of [`hash_file`].
pub(crate) fn hash(n: u32, place: Place<'_>) -> HttpWorkload {
    let mut request = HttpRequest::get(&format!("{}?n={n}", place.path.unwrap_or("/hash")));
    request.expected.status = Status::Is(200);
    request.expected.content = Content::Text;
    request.text = hash_file::DIGEST.into();
    HttpWorkload { name: "hash".into(), requests: vec![request] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(workload: &HttpWorkload, place: Place<'_>) -> String {
        let mut script = workload.compose(1, place);
        script.close(1).unwrap();
        String::from_utf8(script.request(0).to_vec()).unwrap()
    }

    #[test]
    fn the_built_in_requests_byte_for_byte() {
        let place = Place { host: "h:1", path: None, closes: false };
        assert_eq!(first(&hello(place), place), "GET / HTTP/1.1\r\nHost: h:1\r\n\r\n");
        let asks = "GET /hash?n=7 HTTP/1.1\r\nHost: h:1\r\n\r\n";
        assert_eq!(first(&hash(7, place), place), asks);
        let place = Place { path: Some("/a.php"), closes: true, ..place };
        let asks = "GET /a.php?n=7 HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n";
        assert_eq!(first(&hash(7, place), place), asks);
    }

    #[test]
    fn requests_are_drawn_by_their_weights() {
        let of = |target: &str, weight| HttpRequest { weight, ..HttpRequest::get(target) };
        let requests = vec![of("/a", 3), of("/never", 0), of("/b", 1)];
        let workload = HttpWorkload::new("mine", requests).unwrap();
        let mut script = workload.compose(9, Place::default());
        script.close(100).unwrap();
        let replies = script.replies_in_http().unwrap();
        let mut drawn = [0; 3];
        for i in 0..script.count() {
            drawn[usize::from(replies.of[i as usize])] += 1;
            let target = ["/a", "/never", "/b"][usize::from(replies.of[i as usize])];
            let asks = format!("GET {target} HTTP/1.1\r\nHost: \r\n\r\n");
            assert_eq!(script.request(i), asks.as_bytes());
        }
        assert_eq!(drawn[1], 0);
        assert!((11_700..12_900).contains(&drawn[0]), "{drawn:?}");
        assert_eq!(replies.of[..100], replies.of[script.count() as usize..]);
    }

    #[test]
    fn what_could_never_be_drawn_is_refused() {
        let never = HttpRequest { weight: 0, ..HttpRequest::get("/") };
        assert!(HttpWorkload::new("x", vec![]).is_err());
        assert!(HttpWorkload::new("x", vec![never]).unwrap_err().contains("weight 0"));
    }
}
