//! The options that describe one gRPC call and its expected reply. Several calls need a workload file.

use super::url::Target;
use anyhow::{Context, anyhow, bail};
use regatta_script::{
    Workload,
    dialects::grpc::{
        ExpectedMessage, GrpcAsks, GrpcCall, MessageStream, Template, Types, from_hex, rules,
    },
    read_at_most,
};
use std::path::PathBuf;

/// The call to send, and the expected reply.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "gRPC call and expected reply")]
pub struct GrpcArgs {
    /// The file with the service of the method, for --message and --expect. At most 4 MiB with all
    /// imports, which are looked up in its folder and in the folders above it that the path names. The
    /// well-known types are built in
    #[arg(long, value_name = "FILE.proto")]
    proto: Option<PathBuf>,
    /// The message to send, as JSON. Needs --proto. Default: the empty message
    #[arg(long, value_name = "JSON", requires = "proto",
          conflicts_with_all = ["message_hex", "message_file"])]
    message: Option<String>,
    /// The message that the reply must have, as JSON. Needs --proto. Default: any message
    ///
    /// Its fields are compared, because a message has many encodings. Fields that are not given must be absent;
    /// without presence, they may also have their default. With --stream, each message. Then n in braces is the
    /// number of the message in its stream, counted from 1, in a text or in place of a number; also {n-1} and
    /// {n+100}.
    #[arg(long, value_name = "JSON", requires = "proto", conflicts_with = "expect_hex")]
    expect: Option<String>,
    /// The message to send, as hex digits. Default: the empty message
    #[arg(long, value_parser = message, value_name = "HEX", conflicts_with = "message_file")]
    message_hex: Option<Message>,
    /// The file with the message to send, without the prefix of gRPC
    #[arg(long, value_name = "FILE")]
    message_file: Option<PathBuf>,
    /// The exact message that the reply must have, as hex digits. Default: any message
    ///
    /// With --stream, each message. Then {n:varint} between digits is the number of the message in its
    /// stream, counted from 1, as Protocol Buffers encodes it; also {n:fixed32}, {n:fixed64}, {n-1:varint}
    /// and {n+100:varint}.
    #[arg(long, value_parser = expected, value_name = "HEX")]
    expect_hex: Option<String>,
    /// The reply is a stream of messages (server streaming)
    ///
    /// Also reports the number of messages, the time to the first one, and the longest gap of each stream.
    /// --timeout applies to the whole stream.
    #[arg(long)]
    stream: bool,
    /// The exact number of messages of each stream. Default: any number, also 0
    #[arg(long, value_name = "N", requires = "stream")]
    messages: Option<u32>,
}

/// A message, in bytes.
#[derive(Clone, Debug)]
struct Message(Vec<u8>);

impl GrpcArgs {
    /// Applies these options to the target and workload. The URL has the path of the method, or none if a workload
    /// file has the paths.
    pub fn applied(&self, target: Target, workload: Option<&Workload>) -> anyhow::Result<Target> {
        let Workload::Grpc(_) = target.workload else {
            if let Some(flag) = self.given().first() {
                bail!(
                    "{flag} applies only to URLs of gRPC, e.g. grpc://HOST:PORT/a.Service/Method"
                );
            }
            return Ok(target);
        };
        let path = target.path.as_deref().unwrap_or("/");
        if let Some(workload) = workload {
            let name = workload.name();
            if let Some(flag) = self.given().first() {
                bail!(
                    "{flag} cannot be used with --workload {name}, which defines messages itself: \
                     remove one of the two, or write it into the workload file"
                );
            }
            if path != "/" {
                bail!(
                    "the workload {name} defines its own paths, so the URL cannot have the path \
                     {path}: write grpc://HOST:PORT"
                );
            }
            return Ok(Target { path: None, ..target });
        }
        rules::check_path(path).map_err(anyhow::Error::msg)?;
        Ok(Target { workload: self.workload(path)?.into(), path: None, ..target })
    }

    /// The workload that the options describe, for the method at this path.
    fn workload(&self, path: &str) -> anyhow::Result<GrpcAsks> {
        let types = self.proto.as_deref().map(|file| {
            let refused = |why| anyhow!("--proto {}: {why}", file.display());
            let types = Types::read(file).map_err(refused)?;
            types.check_method(path, self.stream).map_err(refused)?;
            anyhow::Ok(types)
        });
        let types = types.transpose()?;
        // Clap has refused JSON without types.
        let named = |flag: &'static str| move |why: String| anyhow!("{flag}: {why}");
        let message = match (&self.message, &types) {
            (Some(json), Some(types)) => types.message(path, json).map_err(named("--message"))?,
            (None, Some(types)) if self.message_hex.is_none() && self.message_file.is_none() => {
                types.check_empty(path).map_err(named("without --message"))?;
                Vec::new()
            }
            _ => self.message()?,
        };
        let (flag, each) = match (&self.expect, &self.expect_hex) {
            (Some(json), _) => ("--expect", Some(ExpectedMessage::Json(json.clone()))),
            (None, Some(hex)) => ("--expect-hex", Some(ExpectedMessage::Hex(hex.clone()))),
            (None, None) => ("--messages", None),
        };
        let described = MessageStream { messages: self.messages, each };
        let call = GrpcCall { message, ..GrpcCall::new(path) };
        let call = call.expecting(self.stream, described, types.as_ref()).map_err(named(flag))?;
        GrpcAsks::of_one(call).typed(types).map_err(anyhow::Error::msg)
    }

    fn message(&self) -> anyhow::Result<Vec<u8>> {
        let Some(path) = &self.message_file else {
            return Ok(self.message_hex.clone().map_or(Vec::new(), |Message(bytes)| bytes));
        };
        let shown = path.display();
        read_at_most(path, rules::LONGEST_MESSAGE as u64)
            .with_context(|| format!("--message-file {shown}"))?
            .with_context(|| {
                format!("--message-file {shown}: the file is too long; expected at most 4 MiB")
            })
    }

    /// The flags that were given.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--proto", self.proto.is_some()),
            ("--message", self.message.is_some()),
            ("--expect", self.expect.is_some()),
            ("--message-hex", self.message_hex.is_some()),
            ("--message-file", self.message_file.is_some()),
            ("--expect-hex", self.expect_hex.is_some()),
            ("--stream", self.stream),
            ("--messages", self.messages.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag).collect()
    }
}

/// Checks expected bytes, as hex digits with placeholders.
fn expected(text: &str) -> Result<String, String> {
    Template::parse(text).map(|_| text.to_owned())
}

/// Parses a message in hex digits.
fn message(text: &str) -> Result<Message, String> {
    let bytes = from_hex(text)?;
    rules::check_length(bytes.len())?;
    Ok(Message(bytes))
}
