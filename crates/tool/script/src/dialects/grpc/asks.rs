//! The calls of a load.

use super::{
    canned, framing,
    placeholder::Text,
    protobuf::Types,
    reply::{Expected, Reply},
    rules,
    stream::{ExpectedMessage, MessageStream, StreamExpectation},
    template::Template,
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

/// What a placeholder needs.
const NEEDS_STREAM: &str =
    "{n} is the number of a message in a stream, and needs `--stream` (`stream = true`)";

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

    /// The same call, which expects a stream of these messages, or one such message. JSON needs the types of its
    /// messages.
    ///
    /// # Errors
    /// What is wrong with the messages, or needs a stream although there is none.
    pub fn expecting(
        self,
        is_stream: bool,
        described: MessageStream,
        types: Option<&Types>,
    ) -> Result<GrpcCall, String> {
        if is_stream {
            StreamExpectation::new(&described, &self.path, types)?;
            return Ok(GrpcCall { stream: Some(described), ..self });
        }
        let MessageStream { messages, each } = described;
        if messages.is_some() {
            return Err("a number of messages needs `--stream` (`stream = true`)".into());
        }
        let (expected, by_fields) = match (each, types) {
            (None, _) => (None, false),
            (Some(ExpectedMessage::Hex(text)), _) => {
                (Some(Template::parse(&text)?.into_bytes().ok_or(NEEDS_STREAM)?), false)
            }
            (Some(ExpectedMessage::Json(_)), None) => return Err(rules::NEEDS_TYPES.into()),
            (Some(ExpectedMessage::Json(text)), Some(types)) => {
                let has_placeholder = Text::parse(&text).map_or(true, |text| !text.is_constant());
                let encoded = types.reply(&self.path, &text).map_err(|why| match has_placeholder {
                    true => format!("{why}; {NEEDS_STREAM}"),
                    false => why,
                });
                (Some(encoded?), true)
            }
        };
        Ok(GrpcCall { expected, by_fields, ..self })
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
        let asks = GrpcAsks { types, ..self };
        for (call, number) in asks.calls.iter().zip(1..) {
            let known = asks
                .types
                .as_ref()
                .map_or(Ok(()), |types| types.check_method(&call.path, call.stream.is_some()));
            known
                .and_then(|()| asks.expected(call).map(drop))
                .map_err(|why| format!("request {number}: {why}"))?;
        }
        Ok(asks)
    }

    /// What a reply to a call must be.
    fn expected(&self, call: &GrpcCall) -> Result<Expected, String> {
        if let Some(stream) = &call.stream {
            let stream = StreamExpectation::new(stream, &call.path, self.types.as_ref())?;
            return Ok(Expected::Stream(stream));
        }
        Ok(match &call.expected {
            None => Expected::Any,
            Some(message) if call.by_fields => {
                let types = self.types.as_ref().ok_or(rules::NEEDS_TYPES)?;
                Expected::Fields(types.expectation(&call.path, message)?.into())
            }
            Some(_) => Expected::Bytes,
        })
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
        let expected = |call| self.expected(call).expect("`typed` has checked it");
        let kinds = self.calls.iter().map(expected).collect();
        Ok(Speech::Own(Dialect2::new(script, kinds, &of, order.pipeline as u32)))
    }

    fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    fn most_messages(&self) -> Option<u32> {
        let sent = self.calls.iter().filter(|call| call.weight > 0);
        let streams = sent.filter_map(|call| call.stream.as_ref());
        streams.map(|stream| stream.messages.unwrap_or(u32::MAX)).max()
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
