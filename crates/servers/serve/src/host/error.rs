//! Why a server did not start, or stopped, with advice.

use std::{io, net::SocketAddr};

/// Why a server did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server cannot listen on the address.
    #[error("cannot listen on {addr}: {}", listen_advice(.error))]
    Listen {
        /// The requested address.
        addr: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// The model does not run this service.
    #[error("the model `{model}` does not run `{service}`: {because}")]
    Unsupported {
        /// Name of the model.
        model: &'static str,
        /// Name of the service.
        service: &'static str,
        /// Why not, and what to do.
        because: &'static str,
    },
    /// The model runs this service, but not with this option.
    #[error("the model `{model}` runs `{service}` only without {option}: {because}")]
    NoOption {
        /// Name of the model.
        model: &'static str,
        /// Name of the service.
        service: &'static str,
        /// The option.
        option: &'static str,
        /// Why not, and what to do.
        because: &'static str,
    },
    /// There is nothing to offload, or offloading would gain nothing.
    #[error("--offload has no use for `{service}` on the model `{model}`: {because}")]
    NoOffload {
        /// Name of the model.
        model: &'static str,
        /// Name of the service.
        service: &'static str,
        /// Why not, and what to do.
        because: &'static str,
    },
    /// The kernel refuses a system call that the model needs.
    #[error("the model `{model}` cannot run here: {because}")]
    Refused {
        /// Name of the model.
        model: &'static str,
        /// What is refused, the probable reason, and what to do.
        because: String,
    },
    /// An essential system call failed, or a process of the server ended early.
    #[error("the server stopped")]
    Io(#[from] io::Error),
}

fn listen_advice(error: &io::Error) -> String {
    if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) {
        return "out of file descriptors; use fewer --cores, or raise the limit (ulimit -n)".into();
    }
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is in use; stop the program that uses it, or choose another port (0 lets the \
             system choose)"
                .into()
        }
        io::ErrorKind::PermissionDenied => {
            "not permitted; ports below 1024 need root privileges or CAP_NET_BIND_SERVICE".into()
        }
        io::ErrorKind::AddrNotAvailable => {
            "no network interface of this machine has that address".into()
        }
        _ => error.to_string(),
    }
}
