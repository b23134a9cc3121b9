//! The calls of a load.

use super::{
    framing,
    reply::{Expected, Reply},
};
use crate::{
    dialects::{http::requests::draw, http2::Dialect2},
    protocol::{Asks, CompileOptions, Speech},
    script::TooLarge,
};
use serde::{Deserialize, Serialize};

/// Unary calls, drawn by weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrpcAsks {
    name: String,
    /// At least one, not all of weight 0.
    calls: Vec<GrpcCall>,
    /// The text of the file that describes them.
    text: Option<String>,
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

    /// Creates the workload of a file; at least one call has a weight above 0.
    pub(super) fn of_file(name: String, calls: Vec<GrpcCall>, text: String) -> Self {
        GrpcAsks { name, calls, text: Some(text) }
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
}
