//! The calls of a load.

use super::{
    canned, framing,
    reply::{Expected, Reply},
    rules,
};
use crate::{
    dialects::{http::requests::draw, http2::Dialect2},
    protocol::{Asks, Canned, CompileOptions, Destination, Speech},
    script::TooLarge,
};
use serde::{Deserialize, Serialize};

/// Maximum number of calls.
const MOST_CALLS: usize = 1_000;

/// Unary calls, drawn by weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct GrpcAsks {
    name: String,
    /// At least one, not all of weight 0.
    calls: Vec<GrpcCall>,
    /// The text of the file that describes them.
    text: Option<String>,
}

/// A workload received from another process, not validated yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    name: String,
    calls: Vec<GrpcCall>,
    text: Option<String>,
}

impl TryFrom<Unchecked> for GrpcAsks {
    type Error = String;

    fn try_from(Unchecked { name, calls, text }: Unchecked) -> Result<Self, String> {
        GrpcAsks::new(name, calls, text)
    }
}

/// A call with one message, and the message that is expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrpcCall {
    /// How often it is sent, relative to the others.
    pub weight: u32,
    /// The path of its method: `/package.Service/Method`.
    pub path: String,
    /// The message to send, in bytes.
    #[serde(with = "crate::sent::bytes")]
    pub message: Vec<u8>,
    /// The message of a right response, in bytes. `None`: any.
    #[serde(with = "crate::sent::optional_bytes")]
    pub expected: Option<Vec<u8>>,
}

impl GrpcCall {
    /// Creates a call of the method at this path with the empty message, which expects any message.
    pub fn new(path: &str) -> Self {
        GrpcCall { weight: 1, path: path.to_owned(), message: Vec::new(), expected: None }
    }

    fn check(&self) -> Result<(), String> {
        rules::check_path(&self.path)?;
        rules::check_length(self.message.len())?;
        rules::check_length(self.expected.as_ref().map_or(0, Vec::len))
    }

    /// The request as HTTP/1.1 writes it. It is sent with `:authority` in place of Host.
    fn request(&self, host: &str) -> Vec<u8> {
        let path = &self.path;
        let agent = concat!("grpc-regatta/", env!("CARGO_PKG_VERSION"));
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nTE: trailers\r\n\
             Content-Type: application/grpc\r\nUser-Agent: {agent}\r\n\r\n"
        )
        .into_bytes();
        framing::write(&self.message, &mut request);
        request
    }
}

impl GrpcAsks {
    /// Creates a workload of one call.
    pub fn of_one(call: GrpcCall) -> Self {
        GrpcAsks { name: format!("POST {}", call.path), calls: vec![call], text: None }
    }

    /// Creates a workload of these calls.
    ///
    /// # Errors
    /// What is wrong with the calls, as a sentence.
    pub(super) fn new(
        name: String,
        calls: Vec<GrpcCall>,
        text: Option<String>,
    ) -> Result<Self, String> {
        if !(1..=MOST_CALLS).contains(&calls.len()) {
            return Err(format!(
                "it has {} requests; expected 1 to {MOST_CALLS}, each as [[request]] with path = \
                 \"/PACKAGE.SERVICE/METHOD\"",
                calls.len()
            ));
        }
        for (call, number) in calls.iter().zip(1..) {
            call.check().map_err(|why| format!("request {number}: {why}"))?;
        }
        if calls.iter().all(|call| call.weight == 0) {
            return Err(
                "all requests have weight 0, so none would ever be sent; set a weight above 0"
                    .into(),
            );
        }
        Ok(GrpcAsks { name, calls, text })
    }
}

impl Asks for GrpcAsks {
    type Dialect = Dialect2<Reply>;

    fn name(&self) -> &str {
        &self.name
    }

    fn compile(&self, order: &CompileOptions<'_>) -> Result<Speech<Dialect2<Reply>>, TooLarge> {
        let drawn = |call: &GrpcCall| (call.weight, call.request(order.place.host));
        let requests: Vec<_> = self.calls.iter().map(drawn).collect();
        let text = |chosen: usize| self.calls[chosen].expected.as_deref().unwrap_or_default();
        let (mut script, of) = draw(&requests, order.seed, text);
        script.close(order.pipeline)?;
        let kind = |call: &GrpcCall| match call.expected {
            Some(_) => Expected::Bytes,
            None => Expected::Any,
        };
        let kinds = self.calls.iter().map(kind).collect();
        Ok(Speech::Own(Dialect2::new(script, kinds, &of, order.pipeline as u32)))
    }

    fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// A method gets its message whole.
    fn needs_whole_requests(&self) -> bool {
        true
    }

    /// The same calls, which all expect the message of the most frequent one.
    fn canned(&self, _: Destination<'_>) -> Option<(Self, Canned)> {
        let frequent = self.calls.iter().max_by_key(|call| call.weight)?;
        let message = frequent.expected.clone().unwrap_or_default();
        let canned = canned::of(&message)?;
        let expects = |call: &GrpcCall| {
            let expected = Some(message.clone());
            GrpcCall { expected, ..call.clone() }
        };
        let calls = self.calls.iter().map(expects).collect();
        Some((GrpcAsks { calls, ..self.clone() }, canned))
    }
}
