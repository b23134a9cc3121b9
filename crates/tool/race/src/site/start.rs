//! A fresh start of a contender: picks free ports, makes a folder, starts the backends and the server
//! (`host::contender::start` spawns the processes), and waits until they are ready. A server that is already running is only found again.

use crate::{
    ask::entrant::{Entrant, StartPlace},
    contenders::{placeholders::BackendPorts, run_files},
    machine_error::MachineError,
};
use regatta_host::{NotStarted, Roles, free_port, is_taken};
use regatta_load::Node;
use regatta_record::{Asked, LoadShape, RunningServer};
use std::{
    fs::{self, Permissions},
    io,
    net::{IpAddr, SocketAddr},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tempfile::TempDir;

/// Time limit for each process of a contender to become ready. Rails on JRuby needs 15 s of one CPU.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Time limit for each process to exit after SIGTERM.
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(2);

/// What all starts of a race on a machine need.
#[derive(Clone, Copy)]
pub(crate) struct StartHere<'a> {
    pub asked: &'a Asked,
    /// The regatta binary, for the supervisor and for built-in contenders.
    pub binary: &'a Path,
    /// Set by Ctrl-C.
    pub stop: &'a AtomicBool,
    /// The address that `{host}` stands for.
    pub host: IpAddr,
}

/// The outcome of a start.
pub(crate) enum Start<T> {
    Ready(Box<T>),
    Failed { because: String },
    Interrupted,
}

/// A contender that is ready on its port. Its folder is removed when this is dropped.
pub(crate) struct Started {
    pub roles: Roles,
    pub port: u16,
    /// The ports of its further nodes.
    pub nodes: Vec<u16>,
    pub run: TempDir,
}

/// The addresses at which a load reaches a contender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub own: SocketAddr,
    /// Those of its further nodes.
    pub nodes: Vec<SocketAddr>,
}

impl Addresses {
    /// The addresses of these ports at `host`.
    pub fn at(host: IpAddr, port: u16, nodes: &[u16]) -> Addresses {
        let of = |port: &u16| SocketAddr::from((host, *port));
        Addresses { own: of(&port), nodes: nodes.iter().map(of).collect() }
    }

    /// The further nodes as a load has them; in requests they have this host.
    pub fn further(&self, host: impl Fn(SocketAddr) -> String) -> Vec<Node> {
        let node = |target: &SocketAddr| Node { target: *target, host: host(*target) };
        self.nodes.iter().map(node).collect()
    }
}

/// Starts a contender. If another program takes the port first, that is not the contender's fault:
/// the start is repeated on other ports, up to five tries. One that always listens on the same port fails if that
/// is taken.
pub(crate) fn start(
    how: StartHere<'_>,
    entrant: &Entrant,
    load: LoadShape,
) -> Result<Start<Started>, MachineError> {
    const TRIES: usize = 5;
    if let Some(server) = &entrant.running {
        return attach(server, &entrant.name);
    }
    let no_port = |error| MachineError::Io { what: "find a free port", error };
    let fixed = entrant.contender.manifest.port;
    if let Some(port) = fixed.filter(|port| is_taken(*port).unwrap_or(false)) {
        let because = format!(
            "{}: another program listens on port {port}, which is the only one that it can listen on; stop \
             that program",
            entrant.name
        );
        return Ok(Start::Failed { because });
    }
    let mut last = Start::Interrupted;
    for _ in 0..TRIES {
        let port = fixed.map_or_else(free_port, Ok).map_err(no_port)?;
        let backends = entrant.contender.backend_ports().map_err(no_port)?;
        last = start_on(port, &backends, how, entrant, load)?;
        let mut ports = backends.iter().flat_map(|backend| &backend.ports).chain([&port]);
        let may_repeat = matches!(last, Start::Failed { .. }) && fixed.is_none();
        if !may_repeat || !ports.any(|port| is_taken(*port).unwrap_or(false)) {
            break;
        }
    }
    Ok(last)
}

fn attach(server: &RunningServer, name: &str) -> Result<Start<Started>, MachineError> {
    Ok(match Roles::attach(server) {
        Ok(roles) => {
            let (port, nodes, run) = (server.port, Vec::new(), new_folder()?);
            Start::Ready(Box::new(Started { roles, port, nodes, run }))
        }
        Err(error) => Start::Failed { because: format!("{name}: {error}") },
    })
}

fn start_on(
    port: u16,
    backends: &[BackendPorts],
    how: StartHere<'_>,
    entrant: &Entrant,
    load: LoadShape,
) -> Result<Start<Started>, MachineError> {
    let run = new_folder()?;
    if how.asked.workload == "hash" {
        regatta_script::hash_file::write(&run_files::hashed(run.path()))
            .map_err(|error| MachineError::Io { what: "write the file to be hashed", error })?;
    }
    if let Some(canned) = entrant.canned(load) {
        fs::write(run_files::canned_reply(run.path()), &canned.reply)
            .map_err(|error| MachineError::Io { what: "write the canned reply", error })?;
    }
    let place = StartPlace { host: how.host, port, backends, run: run.path() };
    let launches = entrant.launches(how.asked, load, how.binary, place);
    let launches = match launches {
        Ok(launches) => launches,
        Err(error) => {
            return Ok(Start::Failed { because: format!("{}: {error}", entrant.name) });
        }
    };
    let of_manifest = entrant.contender.manifest.backends.iter().zip(backends);
    let nodes = of_manifest.filter(|(backend, _)| backend.node);
    let nodes = nodes.flat_map(|(_, ports)| ports.ports.iter().copied()).collect();
    let go_on = || !how.stop.load(Ordering::Relaxed);
    Ok(match Roles::start(how.binary, &launches, READY_WITHIN, STOP_WITHIN, &go_on) {
        Ok(roles) => Start::Ready(Box::new(Started { roles, port, nodes, run })),
        Err(NotStarted::Interrupted) => Start::Interrupted,
        Err(error) => Start::Failed { because: error.to_string() },
    })
}

fn new_folder() -> Result<TempDir, MachineError> {
    folder().map_err(|error| MachineError::Io { what: "make a folder for the round", error })
}

/// Makes a folder for a start. It is world-readable regardless of the umask, because some servers
/// switch to another user.
fn folder() -> io::Result<TempDir> {
    let run = tempfile::Builder::new().prefix("regatta-").tempdir()?;
    fs::set_permissions(run.path(), Permissions::from_mode(0o755))?;
    Ok(run)
}
