//! Options of `regatta serve null`: one reply for each full length of a request, which makes it the
//! floor of an HTTP race.

use anyhow::{Context, bail, ensure};
use regatta_serve::{Canned, Host, Model, Service, serve_canned};
use std::{fs, num::NonZeroUsize, path::PathBuf};

/// Longest reply, in bytes.
const LONGEST: usize = 1 << 20;

/// The options.
#[derive(Debug, clap::Args)]
pub struct CannedArgs {
    /// For `null`: the length of a request. It sends the reply of --reply once for every N bytes of
    /// a connection, whatever they are, instead of sending them back
    #[arg(long, value_name = "N", requires = "reply")]
    request_bytes: Option<NonZeroUsize>,
    /// For `null`: a file that holds the bytes of one reply, at most 1 MiB
    #[arg(long, value_name = "PATH", requires = "request_bytes")]
    reply: Option<PathBuf>,
    /// For `null`: close each connection after its first reply, as an HTTP server does after
    /// `Connection: close`
    #[arg(long, requires = "reply", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", hide_default_value = true)]
    close_after_reply: bool,
}

impl CannedArgs {
    /// Serves a canned reply; false where none was asked for.
    pub fn serve(&self, service: Service, model: Model, host: &Host) -> anyhow::Result<bool> {
        let (Some(request_bytes), Some(path)) = (self.request_bytes, &self.reply) else {
            return Ok(false);
        };
        if (service, model) != (Service::Null, Model::Epoll) {
            bail!("--request-bytes and --reply are for `serve null --model epoll` alone");
        }
        let reply = fs::read(path)
            .with_context(|| format!("cannot read the reply from {}", path.display()))?;
        ensure!(
            (1..=LONGEST).contains(&reply.len()),
            "the reply in {} has {} bytes; expected 1 to {LONGEST}",
            path.display(),
            reply.len()
        );
        let canned = Canned { request_bytes, reply, closes: self.close_after_reply };
        serve_canned(&canned, host)?;
        Ok(true)
    }
}
