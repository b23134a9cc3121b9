//! Requests without placeholders, each with a weight: those described by flags, and the default `GET`.

use super::reply::{
    expected::{Content, Expected, Status},
    receive::Http,
};
use crate::{
    protocol::{CompileOptions, Destination},
    script::{BYTES, Conversations, Script, TooLarge},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use regatta_proto::http1::{Method, client::Ask};
use serde::{Deserialize, Serialize};

/// Maximum number of exchanges before a script of identical requests repeats: few enough to fit into
/// the nearest cache, and enough to wrap around rarely.
const OF_ONE: usize = 64;
/// Maximum number of exchanges if requests are drawn by weight.
const OF_SEVERAL: usize = 1 << 14;

/// A user's HTTP requests, drawn by weight.
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct HttpWorkload {
    name: String,
    requests: Vec<HttpRequest>,
}

/// A workload received from another process, not validated yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    name: String,
    requests: Vec<HttpRequest>,
}

impl TryFrom<Unchecked> for HttpWorkload {
    type Error = String;

    fn try_from(Unchecked { name, requests }: Unchecked) -> Result<Self, String> {
        HttpWorkload::new(&name, requests)
    }
}

/// Serialises requests behind an `Arc` in messages.
pub(super) mod shared {
    use super::HttpWorkload;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub fn serialize<S: Serializer>(shared: &Arc<HttpWorkload>, to: S) -> Result<S::Ok, S::Error> {
        shared.as_ref().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<HttpWorkload>, D::Error> {
        HttpWorkload::deserialize(from).map(Arc::new)
    }
}

/// A request and its expected reply. Host and Content-Length are added to its fields, and `Connection:
/// close` if a connection serves only one request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpRequest {
    /// How often it is sent, relative to the others.
    pub weight: u32,
    /// Its expected reply, and its method.
    pub expected: Expected,
    /// Its target: a path with its query.
    pub target: String,
    /// Its fields: names and values.
    pub fields: Vec<(String, String)>,
    /// Its content. `None` sends no Content-Length.
    #[serde(with = "crate::sent::optional_bytes")]
    pub content: Option<Vec<u8>>,
    /// The text that [`Content::Text`] and [`Content::Prefix`] compare with.
    #[serde(with = "crate::sent::bytes")]
    pub text: Vec<u8>,
}

impl HttpRequest {
    /// Creates a GET of `target` that expects any status from 200 to 299.
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

    /// Appends the bytes of the request to `out`.
    fn write(&self, place: Destination<'_>, out: &mut Vec<u8>) {
        let of_own = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let fields: Vec<_> =
            of_own.chain(place.closes.then_some(("Connection", "close"))).collect();
        let (method, target) = (self.expected.method, self.target.as_str());
        let content = self.content.as_deref();
        Ask { method, target, host: place.host, fields: &fields, content }.write(out);
    }
}

impl HttpWorkload {
    /// Creates a workload. Requires 1 to 65,536 requests, not all of weight 0.
    ///
    /// # Errors
    /// The requirement that is not met, in one sentence.
    pub fn new(name: &str, requests: Vec<HttpRequest>) -> Result<Self, String> {
        if !(1..=1 << 16).contains(&requests.len()) {
            return Err(format!("{} requests; expected 1 to 65,536", requests.len()));
        }
        if requests.iter().all(|request| request.weight == 0) {
            return Err(
                "all requests have weight 0, so none would ever be sent; set a weight above 0"
                    .into(),
            );
        }
        Ok(HttpWorkload { name: name.to_owned(), requests })
    }

    /// Creates a workload of a single request.
    fn of_one(name: &str, request: HttpRequest) -> Self {
        HttpWorkload { name: name.to_owned(), requests: vec![request] }
    }

    /// Creates a workload of a GET of `target` that expects any status from 200 to 299.
    pub fn get(target: &str) -> Self {
        Self::of_one(&format!("GET {target}"), HttpRequest::get(target))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compiles its exchanges, drawn by weight.
    pub(super) fn compile(&self, order: &CompileOptions<'_>) -> Result<Http, TooLarge> {
        let (mut script, of) = self.compose(order.seed, order.place);
        script.close(order.pipeline)?;
        let kinds = self.requests.iter().map(|request| request.expected.clone()).collect();
        Ok(Http::new(script, kinds, &of))
    }

    /// Composes its exchanges, not closed, and returns which request each of them is.
    pub(super) fn compose(&self, seed: u64, place: Destination<'_>) -> (Script, Vec<u16>) {
        let drawn = |request: &HttpRequest| (request.weight, bytes(request, place));
        let asks: Vec<_> = self.requests.iter().map(drawn).collect();
        draw(&asks, seed, |chosen| &self.requests[chosen].text)
    }
}

/// Composes a script, not closed, from requests that are drawn by their weights, of which one is not 0. `text`
/// returns what the reply to each is compared with. Also returns which request each exchange is.
pub(in crate::dialects) fn draw<'t>(
    requests: &[(u32, Vec<u8>)],
    seed: u64,
    text: impl Fn(usize) -> &'t [u8],
) -> (Script, Vec<u16>) {
    let (mut script, mut of) = (Script::new(Conversations::Each(1)), Vec::new());
    let exchanges = if requests.len() == 1 { OF_ONE } else { OF_SEVERAL };
    let all: u64 = requests.iter().map(|(weight, _)| u64::from(*weight)).sum();
    let mut random = StdRng::seed_from_u64(seed);
    while script.pushed() == 0 || script.pushed() < exchanges && script.bytes() < BYTES {
        let mut drawn = random.random_range(0..all);
        let chosen = requests.iter().position(|(weight, _)| {
            let weight = u64::from(*weight);
            let here = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            here
        });
        let chosen = chosen.expect("the drawn number is below the sum of the weights");
        script.push(&requests[chosen].1, text(chosen));
        of.push(chosen as u16);
    }
    (script, of)
}

fn bytes(request: &HttpRequest, place: Destination<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.write(place, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    #[test]
    fn requests_are_drawn_by_their_weights() {
        let of = |target: &str, weight| HttpRequest { weight, ..HttpRequest::get(target) };
        let requests = vec![of("/a", 3), of("/never", 0), of("/b", 1)];
        let workload = HttpWorkload::new("mine", requests).unwrap();
        let order = CompileOptions {
            seed: 9,
            pipeline: 100,
            place: Destination::default(),
            shared: None,
            machines: None,
            pushes: crate::protocol::Pushes::default(),
        };
        let http = workload.compile(&order).unwrap();
        let script = http.script();
        let mut drawn = [0; 3];
        for i in 0..script.count() {
            let kind = usize::from(http.kind(i));
            drawn[kind] += 1;
            let target = ["/a", "/never", "/b"][kind];
            let asks = format!("GET {target} HTTP/1.1\r\nHost: \r\n\r\n");
            assert_eq!(script.request(i), asks.as_bytes());
        }
        assert_eq!(drawn[1], 0);
        assert!((11_700..12_900).contains(&drawn[0]), "{drawn:?}");
        assert!((0..100).all(|i| http.kind(i) == http.kind(script.count() + i)));
    }

    #[test]
    fn rejects_requests_that_are_never_drawn() {
        let never = HttpRequest { weight: 0, ..HttpRequest::get("/") };
        assert!(HttpWorkload::new("x", vec![]).is_err());
        assert!(HttpWorkload::new("x", vec![never]).unwrap_err().contains("weight 0"));
    }
}
