//! The calls of a load.

use super::{
    canned, framing,
    protobuf::Types,
    reply::{Expected, Reply},
    rules,
    stream::MessageStream,
    timeout,
};
use crate::{
    dialects::{http::requests::draw, http2::Dialect2},
    protocol::{Asks, Canned, CompileOptions, Destination, Speech},
    script::TooLarge,
};
use serde::{Deserialize, Serialize};

/// Maximum number of calls.
const MOST_CALLS: usize = 1_000;

/// Calls, drawn by weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct GrpcAsks {
    name: String,
    /// At least one, not all of weight 0.
    calls: Vec<GrpcCall>,
    /// The text of the file that describes them.
    text: Option<String>,
    /// The types of their messages. `None` if only bytes are known of them.
    types: Option<Types>,
}

/// A workload received from another process, not validated yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    name: String,
    calls: Vec<GrpcCall>,
    text: Option<String>,
    types: Option<Types>,
}

impl TryFrom<Unchecked> for GrpcAsks {
    type Error = String;

    fn try_from(Unchecked { name, calls, text, types }: Unchecked) -> Result<Self, String> {
        GrpcAsks::new(name, calls, text)?.typed(types)
    }
}

/// A call with one message, and the message or the messages that are expected.
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
    /// Whether another encoding of the expected message is right too. Needs its type.
    pub by_fields: bool,
    /// The messages of a right response, if it is a stream of them. `expected` is absent then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<MessageStream>,
}

impl GrpcCall {
    /// Creates a call of the method at this path with the empty message, which expects any message.
    pub fn new(path: &str) -> Self {
        GrpcCall {
            weight: 1,
            path: path.to_owned(),
            message: Vec::new(),
            expected: None,
            by_fields: false,
            stream: None,
        }
    }

    fn check(&self) -> Result<(), String> {
        rules::check_path(&self.path)?;
        rules::check_length(self.message.len())?;
        if self.stream.is_some() && self.expected.is_some() {
            return Err("a single message and a stream of messages are expected".into());
        }
        rules::check_length(self.expected.as_ref().map_or(0, Vec::len))
    }

    /// The request as HTTP/1.1 writes it. It is sent with `:authority` in place of Host.
    fn request(&self, place: Destination<'_>) -> Vec<u8> {
        let (path, host) = (&self.path, place.host);
        let agent = concat!("grpc-regatta/", env!("CARGO_PKG_VERSION"));
        let timeout = place.timeout.map_or(String::new(), |timeout| {
            format!("grpc-timeout: {}\r\n", timeout::in_header(timeout))
        });
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nTE: trailers\r\n{timeout}\
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
        GrpcAsks { name: format!("POST {}", call.path), calls: vec![call], text: None, types: None }
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
        Ok(GrpcAsks { name, calls, text, types: None })
    }

    /// The same workload with the types of its messages.
    ///
    /// # Errors
    /// A method that is not known, or an expected message that is not one of its type, as a sentence.
    pub fn typed(self, types: Option<Types>) -> Result<Self, String> {
        for (call, number) in self.calls.iter().zip(1..) {
            let known =
                types.as_ref().map(|types| types.check_method(&call.path, call.stream.is_some()));
            let checked = match (&types, &call.expected) {
                (None, _) if call.by_fields => Err("the types of its messages are missing".into()),
                (Some(types), Some(expected)) if call.by_fields => {
                    types.expectation(&call.path, expected).map(drop)
                }
                _ => Ok(()),
            };
            known
                .unwrap_or(Ok(()))
                .and(checked)
                .map_err(|why| format!("request {number}: {why}"))?;
        }
        Ok(GrpcAsks { types, ..self })
    }

    /// What a reply to a call must be.
    fn expected(&self, call: &GrpcCall) -> Expected {
        if let Some(stream) = &call.stream {
            return Expected::Stream(stream.clone());
        }
        match (&call.expected, &self.types) {
            (None, _) => Expected::Any,
            (Some(message), Some(types)) if call.by_fields => {
                let expectation = types.expectation(&call.path, message);
                Expected::Fields(expectation.expect("`typed` has checked it").into())
            }
            (Some(_), _) => Expected::Bytes,
        }
    }
}

impl Asks for GrpcAsks {
    type Dialect = Dialect2<Reply>;

    fn name(&self) -> &str {
        &self.name
    }

    fn compile(&self, order: &CompileOptions<'_>) -> Result<Speech<Dialect2<Reply>>, TooLarge> {
        let drawn = |call: &GrpcCall| (call.weight, call.request(order.place));
        let requests: Vec<_> = self.calls.iter().map(drawn).collect();
        let text = |chosen: usize| self.calls[chosen].expected.as_deref().unwrap_or_default();
        let (mut script, of) = draw(&requests, order.seed, text);
        script.close(order.pipeline)?;
        let kinds = self.calls.iter().map(|call| self.expected(call)).collect();
        Ok(Speech::Own(Dialect2::new(script, kinds, &of, order.pipeline as u32)))
    }

    fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// A method gets its message whole.
    fn needs_whole_requests(&self) -> bool {
        true
    }

    /// The same calls, which all expect exactly the message of the most frequent one; `None` if one expects a stream.
    fn canned(&self, _: Destination<'_>) -> Option<(Self, Canned)> {
        if self.calls.iter().any(|call| call.stream.is_some()) {
            return None;
        }
        let frequent = self.calls.iter().max_by_key(|call| call.weight)?;
        let message = frequent.expected.clone().unwrap_or_default();
        let canned = canned::of(&message)?;
        let expects = |call: &GrpcCall| {
            let expected = Some(message.clone());
            GrpcCall { expected, by_fields: false, ..call.clone() }
        };
        let calls = self.calls.iter().map(expects).collect();
        Some((GrpcAsks { calls, ..self.clone() }, canned))
    }
}
