//! Options of `regatta serve null` that make it the floor of an HTTP race: one canned reply for every
//! N bytes received.

use anyhow::{Context, bail, ensure};
use regatta_serve::{Canned, Host, Model, Service, serve_canned};
use std::{fs, num::NonZeroUsize, path::PathBuf};

/// Maximum length of the reply, in bytes.
const LONGEST: usize = 1 << 20;

/// The options.
#[derive(Debug, clap::Args)]
pub struct CannedArgs {
    /// For `null`: the length of a request. For every N bytes that a connection receives, whatever they
    /// are, it sends the reply of --reply instead of echoing them
    #[arg(long, value_name = "N", requires = "reply")]
    request_bytes: Option<NonZeroUsize>,
    /// For `null`: a file with the bytes of one reply, at most 1 MiB
    #[arg(long, value_name = "PATH", requires = "request_bytes")]
    reply: Option<PathBuf>,
    /// For `null`: close each connection after its first reply, as an HTTP server does after
    /// `Connection: close`
    #[arg(long, requires = "reply", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", hide_default_value = true)]
    close_after_reply: bool,
    /// For `null`: the requests are those of HTTP/2, and the file of --reply has the frames of one reply, on any
    /// stream. It sends them on each stream that the client ends; --request-bytes and --close-after-reply have no
    /// effect
    #[arg(long, requires = "reply")]
    on_streams: bool,
}

impl CannedArgs {
    /// Serves a canned reply. Returns false if none was requested.
    pub fn serve(&self, service: Service, model: Model, host: &Host) -> anyhow::Result<bool> {
        let (Some(request_bytes), Some(path)) = (self.request_bytes, &self.reply) else {
            return Ok(false);
        };
        if (service, model) != (Service::Null, Model::Epoll) {
            bail!("--request-bytes and --reply apply only to `serve null --model epoll`");
        }
        let reply = fs::read(path)
            .with_context(|| format!("cannot read the reply from {}", path.display()))?;
        ensure!(
            (1..=LONGEST).contains(&reply.len()),
            "the reply in {} has {} bytes; expected 1 to {LONGEST}",
            path.display(),
            reply.len()
        );
        let (closes, on_streams) = (self.close_after_reply, self.on_streams);
        let canned = Canned { request_bytes, reply, closes, on_streams };
        serve_canned(&canned, host)?;
        Ok(true)
    }
}
