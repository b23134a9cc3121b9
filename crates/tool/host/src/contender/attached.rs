//! A server that already runs: finds its processes by their listening socket, and checks later that they
//! are still the same. It is neither started nor stopped.

use crate::{
    machine::{cpus::allowed_cpus_of, port::connect, sockets::Sockets},
    process::{
        clock::process_clock_ns,
        held::holders,
        tree::{Stat, descendants, threads},
    },
};
use regatta_record::{RunningProcess, RunningServer};
use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// Programs that listen for others and pass the connections on. Their CPU time is not the server's.
/// Names have at most 15 bytes.
const FORWARDERS: [&str; 9] = [
    "conmon",
    "docker-proxy",
    "kubectl",
    "pasta",
    "pasta.avx2",
    "rootlessport",
    "rootlessport-ch",
    "slirp4netns",
    "ssh",
];

/// Why a running server cannot be measured: a sentence with what to do.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// The kernel's tables cannot be read.
    #[error("cannot read the sockets of this machine: {0}")]
    Io(#[from] io::Error),
    /// No process listens.
    #[error("nothing listens on 127.0.0.1:{port}: start the server, or correct the port")]
    Nothing {
        /// The port.
        port: u16,
    },
    /// Its process cannot be seen.
    #[error(
        "a server listens on 127.0.0.1:{port}, but its process cannot be found or read, so its cost is \
         not known: run regatta as the user of the server, or as root"
    )]
    Hidden {
        /// The port.
        port: u16,
    },
    /// Its process is not the server.
    #[error(
        "127.0.0.1:{port} is served by process {pid} ({name}), which passes connections on to a server \
         whose work would not be measured: give the address of the server itself"
    )]
    Forwarder {
        /// The port.
        port: u16,
        /// The process.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// This program is one of its descendants.
    #[error(
        "127.0.0.1:{port} is served by process {pid} ({name}), which also started regatta, so its cost \
         cannot be separated from regatta's: start the server from another process"
    )]
    Ancestor {
        /// The port.
        port: u16,
        /// The process.
        pid: u32,
        /// Its name.
        name: String,
    },
}

/// Finds the server at `url` that listens on `port` of 127.0.0.1. Reads the open files of all processes
/// of the machine.
///
/// # Errors
/// If nothing listens, or if the server's CPU time could not be read.
pub fn find_server(url: &str, port: u16) -> Result<RunningServer, NotFound> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listeners = Sockets::read_listening()?.listeners_of(address);
    if listeners.is_empty() || connect(address, Duration::from_secs(1)).is_err() {
        return Err(NotFound::Nothing { port });
    }
    let holders = holders(&listeners);
    let roots = roots(&holders);
    let processes: Vec<RunningProcess> = roots.iter().filter_map(|pid| identity(*pid)).collect();
    let readable = |pid: &u32| process_clock_ns(*pid).is_ok();
    if processes.is_empty() || processes.len() < roots.len() || !roots.iter().all(readable) {
        return Err(NotFound::Hidden { port });
    }
    let own = std::process::id();
    for RunningProcess { pid, name, .. } in &processes {
        let (pid, name) = (*pid, name.clone());
        if pid == own || descendants(pid).contains(&own) {
            return Err(NotFound::Ancestor { port, pid, name });
        }
        if FORWARDERS.contains(&name.as_str()) {
            return Err(NotFound::Forwarder { port, pid, name });
        }
    }
    let cpus = cpus(&roots);
    Ok(RunningServer { url: url.to_owned(), port, processes, cpus })
}

/// Returns the processes that are not descendants of another one.
fn roots(all: &BTreeSet<u32>) -> Vec<u32> {
    let below: BTreeSet<u32> = all.iter().flat_map(|pid| descendants(*pid)).collect();
    all.iter().copied().filter(|pid| !below.contains(pid)).collect()
}

fn identity(pid: u32) -> Option<RunningProcess> {
    let stat = Stat::of(pid).ok().filter(|stat| !stat.is_zombie())?;
    Some(RunningProcess { pid, name: stat.name, started: stat.started })
}

/// Returns the CPUs on which a thread of these processes or of their descendants may run.
fn cpus(roots: &[u32]) -> Vec<u32> {
    let all = roots.iter().flat_map(|pid| [vec![*pid], descendants(*pid)].concat());
    let cpus: BTreeSet<u32> = all.flat_map(threads).filter_map(allowed_cpus_of).flatten().collect();
    cpus.into_iter().collect()
}

/// Returns, as a sentence, how the server at this address differs from the one that was found there
/// earlier; `None` if the processes are the same.
pub fn change_of(server: &RunningServer) -> Option<String> {
    let RunningServer { url, port, processes, .. } = server;
    let was = server.processes();
    match find_server(url, *port) {
        Ok(now) if now.processes == *processes => None,
        Ok(now) => Some(format!(
            "{url} is now served by {}; when the race began, it was {was}: do not restart a server \
             during its race",
            now.processes()
        )),
        Err(error) => Some(format!("{url} was served by {was} when the race began; now {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_testkit::deadline::until;
    use std::{
        net::TcpListener,
        process::{Child, Command},
    };

    /// A process that holds a socket as its standard input; dropping it ends it.
    struct Holder(Child);

    impl Holder {
        fn of(listener: &TcpListener, command: &mut Command) -> Holder {
            let socket: std::os::fd::OwnedFd = listener.try_clone().unwrap().into();
            Holder(command.stdin(socket).spawn().unwrap())
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            descendants(self.0.id()).into_iter().for_each(end);
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn listener() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    /// Waits until exactly the processes that `expected` returns hold the socket. A child that another test
    /// starts holds a copy, too, until it runs its program.
    fn wait_until_held_by(port: u16, expected: impl Fn() -> Vec<u32>) {
        let sockets = Sockets::read().unwrap().listeners_of((Ipv4Addr::LOCALHOST, port).into());
        until("the socket is held by the expected processes", || {
            holders(&sockets) == expected().into_iter().collect()
        });
    }

    #[test]
    fn finds_the_process_that_holds_the_socket_and_notices_that_it_was_replaced() {
        let (listener, port) = listener();
        let first = Holder::of(&listener, Command::new("sleep").arg("600"));
        let second = Holder::of(&listener, Command::new("sleep").arg("600"));
        drop(listener);
        wait_until_held_by(port, || vec![first.0.id(), second.0.id()]);
        let server = find_server("line://x", port).unwrap();
        let pids: Vec<u32> = server.processes.iter().map(|one| one.pid).collect();
        let mut both = vec![first.0.id(), second.0.id()];
        both.sort_unstable();
        assert_eq!(pids, both, "neither started the other");
        assert!(!server.cpus.is_empty());
        assert_eq!(change_of(&server), None);
        drop(first);
        let change = change_of(&server).unwrap();
        assert!(change.contains(&format!("now served by process {} (sleep)", second.0.id())));
        drop(second);
        assert!(change_of(&server).unwrap().contains("nothing listens on 127.0.0.1"));
    }

    #[test]
    fn a_descendant_that_holds_the_socket_too_belongs_to_its_ancestor() {
        let (listener, port) = listener();
        let shell =
            Holder::of(&listener, Command::new("sh").args(["-c", "exec 3<&0; sleep 600 & wait"]));
        drop(listener);
        wait_until_held_by(port, || match descendants(shell.0.id())[..] {
            [child] => vec![shell.0.id(), child],
            _ => vec![],
        });
        let server = find_server("line://x", port).unwrap();
        assert_eq!(server.processes.len(), 1, "{server:?}");
        assert_eq!(server.processes[0].pid, shell.0.id());
    }

    fn end(pid: u32) {
        let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }

    #[test]
    fn what_cannot_be_measured_is_an_error_with_what_to_do() {
        let (listener, port) = listener();
        let error = find_server("line://x", port).unwrap_err().to_string();
        assert!(error.contains("which also started regatta"), "{error}");
        drop(listener);
        wait_until_held_by(port, Vec::new);
        let error = find_server("line://x", port).unwrap_err().to_string();
        assert!(error.contains("nothing listens on 127.0.0.1"), "{error}");
    }

    #[test]
    fn a_program_that_passes_connections_on_is_not_the_server() {
        let (listener, port) = listener();
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("docker-proxy");
        let sleep = crate::find_on_path("sleep").unwrap();
        std::os::unix::fs::symlink(sleep, &program).unwrap();
        let _proxy = Holder::of(&listener, Command::new(&program).arg("600"));
        drop(listener);
        let error = find_server("line://x", port).unwrap_err();
        assert!(matches!(error, NotFound::Forwarder { .. }), "{error}");
    }
}
