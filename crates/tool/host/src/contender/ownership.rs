//! Checks that a contender's ports are served only by its own processes. Usage is read only from the
//! contender's processes. A process outside their tree that answers for them (a daemon that was started
//! earlier, another container) is not measured, and makes the contender look free of cost.
//!
//! The kernel lists the sockets of a port by inode (`/proc/net/tcp`, proc_net(5)), and the open files
//! of each process (`/proc/PID/fd`). Several processes may hold one socket, and several sockets may
//! listen on one port (SO_REUSEPORT, socket(7)). All holders of all of these sockets must belong to the
//! contender. This check cannot find a process that gets the requests in another way, e.g. through
//! shared memory or a pipe. The cost floor of the null server shows those.

use crate::{
    contender::roles::Roles,
    group::cgroup::Cgroup,
    machine::sockets::Sockets,
    process::{
        held::Held,
        tree::{Process, all_pids, named},
    },
    usage::tree::ObservedProcesses,
};
use std::{collections::BTreeSet, fmt, io, net::SocketAddr, thread, time::Duration};

/// The ports of a contender, and the processes that must serve them.
#[derive(Clone, Debug)]
pub struct Ownership {
    addresses: Vec<SocketAddr>,
    processes: Vec<ObservedProcesses>,
}

/// A process that serves a port of a contender but does not belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignProcess {
    /// The address.
    pub address: SocketAddr,
    /// The process, if known.
    pub process: Option<Process>,
}

impl fmt::Display for ForeignProcess {
    /// Writes e.g. `127.0.0.1:4001 is served by process 17 (helper)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ForeignProcess { address, process } = self;
        match process {
            Some(Process { pid, name }) => {
                write!(f, "{address} is served by process {pid} ({name})")
            }
            None => {
                write!(f, "{address} is served by a process whose open files cannot be read")
            }
        }
    }
}

impl Ownership {
    /// Takes all ports and all processes of a contender.
    pub fn of(roles: &Roles) -> Ownership {
        let addresses = roles.all().iter().flat_map(|role| role.addresses()).collect();
        Ownership { addresses, processes: roles.observed() }
    }

    /// Returns a process that listens on one of the ports, or holds one of its connections, and does not
    /// belong to the contender; `None` if there is none. Reads the open files of all processes of the
    /// machine, which takes some 10 ms: do not call it inside a measured window.
    ///
    /// # Errors
    /// If the kernel's list of TCP sockets cannot be read.
    pub fn foreign_process(&self) -> io::Result<Option<ForeignProcess>> {
        for &address in &self.addresses {
            let wanted = Sockets::read()?.of_address(address);
            if let Some(process) = self.other_holder(&wanted) {
                return Ok(Some(ForeignProcess { address, process: Some(process) }));
            }
            if self.is_listener_hidden(address)? {
                return Ok(Some(ForeignProcess { address, process: None }));
            }
        }
        Ok(None)
    }

    fn other_holder(&self, wanted: &BTreeSet<u64>) -> Option<Process> {
        let own = self.pids();
        let others = all_pids().into_iter().filter(|pid| !own.contains(pid));
        let holder = |pid: &u32| !Held::by(*pid).sockets.is_disjoint(wanted);
        // A process that the contender has just forked is in the second listing. One that is gone by now
        // no longer holds sockets.
        let suspects: Vec<u32> = others.filter(holder).collect();
        let own = self.pids();
        suspects.into_iter().filter(|pid| !own.contains(pid)).find(holder).map(named)
    }

    /// Whether, in three tries, a socket listens at an address for which none of the contender's processes
    /// shows a descriptor. A socket held only by a ring is not shown (direct descriptors,
    /// io_uring_register(2)), so a contender with a ring is not accused.
    fn is_listener_hidden(&self, address: SocketAddr) -> io::Result<bool> {
        const TRIES: usize = 3;
        for attempt in 0..TRIES {
            // The first try uses the quick listing.
            let held = if attempt == 0 { Held::by } else { Held::by_threads };
            let own: Vec<Held> = self.pids().into_iter().map(held).collect();
            let listening = Sockets::read_listening()?.listeners_of(address);
            let is_shown = |inode: &u64| own.iter().any(|held| held.sockets.contains(inode));
            if own.iter().any(|held| held.has_ring) || listening.iter().all(is_shown) {
                return Ok(false);
            }
            if attempt + 1 < TRIES {
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(true)
    }

    /// Returns the contender's processes, by ancestry and by control group.
    fn pids(&self) -> BTreeSet<u32> {
        let by_group = |one: &ObservedProcesses| one.cgroup().map(Cgroup::pids).unwrap_or_default();
        self.processes.iter().flat_map(|one| [one.pids(), by_group(one)]).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::cgroup::Version;
    use std::{
        fs,
        net::TcpListener,
        os::fd::OwnedFd,
        path::Path,
        process::{Child, Command},
    };

    /// A process in a control group of its own, as in a container; dropping it removes both.
    struct Boxed {
        child: Child,
        group: Cgroup,
    }

    impl Boxed {
        /// Starts `sleep` with the socket as its standard input.
        fn holding(socket: OwnedFd) -> Option<Boxed> {
            let own = std::process::id();
            let home = [Version::V2, Version::V1].into_iter().find_map(|version| {
                let home = Cgroup::of_process(version, own)?;
                Cgroup::is_available(version).then_some((version, home.path().to_owned()))
            });
            let (version, home) = home?;
            let mut child = Command::new("sleep").arg("600").stdin(socket).spawn().unwrap();
            let folder = home.join(format!("by-hand-{}", child.id()));
            fs::create_dir(&folder).unwrap();
            let procs = Path::join(&folder, "cgroup.procs");
            if fs::write(procs, child.id().to_string()).is_err() {
                child.kill().unwrap();
                child.wait().unwrap();
                fs::remove_dir(&folder).unwrap();
                return None;
            }
            let group = Cgroup::of_process(version, child.id()).unwrap();
            Some(Boxed { child, group })
        }
    }

    impl Drop for Boxed {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = self.group.remove();
        }
    }

    #[test]
    fn the_processes_of_a_group_own_its_port_unless_another_process_holds_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let Some(boxed) = Boxed::holding(listener.try_clone().unwrap().into()) else {
            return eprintln!("skipped: no process can be moved to a control group here");
        };
        let own = std::process::id();
        let processes = vec![ObservedProcesses::in_group(own, boxed.group.clone())];
        let ownership = Ownership { addresses: vec![address], processes };
        let foreign = ownership.foreign_process().unwrap().expect("this process holds it too");
        assert_eq!((foreign.address, foreign.process.unwrap().pid), (address, own));
        drop(listener);
        assert_eq!(ownership.foreign_process().unwrap(), None);
        let used = ownership.processes[0].usage().unwrap();
        assert_eq!(used.pids().collect::<Vec<_>>(), [boxed.child.id()], "its usage is the group's");
    }
}
