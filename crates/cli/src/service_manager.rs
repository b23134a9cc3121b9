//! systemd, or another manager of services with its protocols: it may pass a listening socket (sd_listen_fds(3)), and
//! is notified when the service is ready (sd_notify(3)). Without one, nothing happens here.

use crate::output::{message, print_address};
use anyhow::{Context, bail, ensure};
use listenfd::ListenFd;
use regatta_serve::Model;
use sd_notify::NotifyState;
use std::{net::SocketAddr, os::fd::OwnedFd, sync::Arc};

/// Returns the listening TCP socket that the service manager passed, if it passed one.
///
/// # Errors
/// It passed something else, or the model cannot use it.
pub fn listener(model: Model) -> anyhow::Result<Option<Arc<OwnedFd>>> {
    let mut passed = ListenFd::from_env();
    ensure!(
        passed.len() <= 1,
        "the service manager passed {} sockets; expected one, with a single ListenStream=",
        passed.len()
    );
    let socket = (passed.len() == 1).then(|| passed.take_tcp_listener(0)).transpose();
    let socket =
        socket.context("expected a TCP socket from the service manager (ListenStream=)")?;
    let Some(socket) = socket.flatten() else { return Ok(None) };
    if matches!(model, Model::Threads | Model::Green | Model::Prefork) {
        bail!(
            "the model `{}` cannot use a socket of the service manager, because it shuts its socket down when it \
             stops; use another --model, or --listen without the socket unit",
            model.name()
        );
    }
    Ok(Some(Arc::new(socket.into())))
}

/// Prints the address on which a server listens, and notifies the service manager.
pub fn ready(addr: SocketAddr) {
    print_address(addr);
    let status = format!("listening on {addr}");
    if let Err(error) = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&status)]) {
        message(&format!("regatta: cannot notify the service manager (NOTIFY_SOCKET): {error}"));
    }
}

/// Notifies the service manager that the configuration is read again, until [`reloaded`].
pub fn reloading() {
    let states = NotifyState::monotonic_usec_now().map(|now| [NotifyState::Reloading, now]);
    // Without it the service manager shows the service as running, which it is.
    let _ = states.map(|states| sd_notify::notify(&states));
}

/// Notifies the service manager that the configuration was read.
pub fn reloaded() {
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}
