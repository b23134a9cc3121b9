//! The Unix socket of the proxy.

use anyhow::Context;
use regatta_serve::UnixSocket;
use std::path::PathBuf;

/// Options for a Unix socket.
#[derive(Debug, clap::Args)]
pub struct UnixArgs {
    /// Listen on a Unix socket with this path, too. One more thread serves its clients; with --tls-cert, over TLS. The
    /// socket that an earlier process has left behind is replaced, unless one still listens there. Its lock is in a file
    /// beside it, PATH.lock, which remains. Only on percore and uring
    #[arg(long = "unix", value_name = "PATH")]
    unix: Option<PathBuf>,
    /// The permissions of its file, in octal: a client needs the one to write, e.g. 660 for those of the group
    #[arg(long, default_value = "600", value_parser = mode, value_name = "MODE", requires = "unix")]
    unix_mode: Mode,
}

/// Permissions of a file.
#[derive(Clone, Copy, Debug)]
struct Mode(u32);

impl UnixArgs {
    /// The option, if it was given.
    pub fn option(&self) -> Option<&'static str> {
        self.unix.is_some().then_some("--unix")
    }

    /// Listens on the socket, if one is requested.
    pub fn listen(&self) -> anyhow::Result<Option<UnixSocket>> {
        let Some(path) = &self.unix else { return Ok(None) };
        let socket = UnixSocket::listen(path, self.unix_mode.0);
        Ok(Some(socket.with_context(|| format!("cannot listen on --unix {}", path.display()))?))
    }
}

fn mode(text: &str) -> Result<Mode, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.map(Mode).ok_or_else(|| "expected three octal digits, e.g. 660".into())
}
