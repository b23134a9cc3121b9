//! A running process of a contender, from the side of `race`: start, watch, read, stop. Its processes
//! run below a supervisor ([`crate::contender::supervise`](fn@crate::contender::supervise)); dropping a [`Running`] kills
//! them.

use crate::{
    contender::{
        container::Container,
        stop_report::{StopReport, Stopped},
        wire::{self, Command, Event, Exited, Inbox, Launch},
    },
    group::cgroup::Cgroup,
    machine::port::is_taken,
    process::{kill::KILL_LIMIT, orphans, tree::Process},
    usage::{
        memory::Memory,
        tree::{ObservedProcesses, Usage},
    },
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{getpid, set_child_subreaper},
};
use std::{
    io,
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Timeout of a supervisor's answer to a request that involves no waiting.
const PATIENCE: Duration = Duration::from_secs(10);

/// A started contender.
#[derive(Debug)]
pub struct Running {
    name: String,
    address: SocketAddr,
    /// First process of the contender.
    pid: u32,
    cgroup: Option<Cgroup>,
    /// Control group of the container, once it is ready.
    group: Option<Cgroup>,
    exited: Option<Exited>,
    supervisor: Supervisor,
}

/// Why a contender was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another process already listens on its port.
    #[error(
        "port {port} is taken, so {name} cannot listen on it; find the process with `ss -ltnp`"
    )]
    PortTaken {
        /// Name of the contender.
        name: String,
        /// The port.
        port: u16,
    },
    /// The supervisor could not start it, for the reason in this sentence.
    #[error("{0}")]
    Refused(String),
    /// An error of the supervisor itself.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
}

/// A failure of the supervisor. The processes that it leaves behind are killed nevertheless.
#[derive(Debug, thiserror::Error)]
#[error("the supervisor of {name} {what}")]
pub struct SupervisorError {
    name: String,
    what: String,
}

impl Running {
    /// Starts a supervisor, as `binary supervise`, and the contender below it.
    ///
    /// Makes this process the reaper of orphans (`PR_SET_CHILD_SUBREAPER`), so that it can find a
    /// contender's processes even when the supervisor is killed.
    pub fn start(binary: &Path, launch: &Launch) -> Result<Running, StartError> {
        let (name, port) = (launch.name.clone(), launch.port);
        let failed = |error: io::Error| SupervisorError {
            name: name.clone(),
            what: format!("({}) could not be started: {error}", binary.display()),
        };
        if is_taken(port).map_err(failed)? {
            return Err(StartError::PortTaken { name, port });
        }
        set_child_subreaper(Some(getpid())).map_err(|error| failed(error.into()))?;
        let mut supervisor = Supervisor::start(binary, &name).map_err(failed)?;
        let mut launch = launch.clone();
        let (variable, value) = orphans::mark(&supervisor.mark);
        launch.env.insert(variable, value);
        // From now on, the engine may create it.
        supervisor.container = launch.container.clone();
        supervisor.send(&launch)?;
        match supervisor.next_event(PATIENCE)? {
            Some(Event::Started { pid, cgroup }) => {
                supervisor.cgroup = cgroup.clone();
                let (group, exited) = (None, None);
                let address = SocketAddr::from((launch.host, port));
                Ok(Running { name, address, pid, cgroup, group, exited, supervisor })
            }
            Some(Event::NotStarted { because }) => {
                supervisor.container = None;
                Err(StartError::Refused(because))
            }
            other => Err(supervisor.fault(format!("did not report a start; got {other:?}")).into()),
        }
    }

    /// Returns the name of the contender.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address that it must listen on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the id of the started process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the id of its supervisor.
    pub fn supervisor_pid(&self) -> u32 {
        self.supervisor.child.id()
    }

    /// Returns its control group, if it has one.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// Returns the CPU time of all of its processes since their start, in nanoseconds; `None` without a control
    /// group of regatta's.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.cgroup.as_ref().filter(|_| self.supervisor.container.is_none())?.cpu_ns().ok()
    }

    /// Reads the CPU time and context switches of all its processes until now. Takes well under a
    /// millisecond for a handful of processes.
    pub fn usage(&self) -> io::Result<Usage> {
        self.observed().usage()
    }

    /// Reads the memory of all its processes, and the kernel's. Disturbs them for milliseconds: do not
    /// call it inside a measured window.
    pub fn memory(&self) -> Memory {
        self.observed().memory()
    }

    /// Returns its living processes, without those of a container that docker runs.
    pub fn processes(&self) -> Vec<Process> {
        crate::process::tree::living_descendants(self.supervisor_pid())
    }

    /// Returns its processes, for repeated readings of their usage.
    pub fn observed(&self) -> ObservedProcesses {
        match &self.group {
            Some(group) => ObservedProcesses::in_group(self.supervisor_pid(), group.clone()),
            None => ObservedProcesses::below(self.supervisor_pid(), self.cgroup.clone()),
        }
    }

    /// If it runs in a container, finds the container's control group. Usage is read from that group
    /// from now on.
    pub(crate) fn find_container(&mut self) -> Result<(), SupervisorError> {
        if let (Some(container), None) = (&self.supervisor.container, &self.group) {
            let group = container.cgroup();
            let failed = |error| {
                self.supervisor.fault(format!("runs a container it cannot observe: {error}"))
            };
            self.group = Some(group.map_err(failed)?);
        }
        Ok(())
    }

    /// Whether the started process is still running; `false` also if the supervisor failed.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.exited_within(Duration::ZERO), Ok(None))
    }

    /// Returns how the started process ended, if it ends within `limit`.
    pub fn exited_within(&mut self, limit: Duration) -> Result<Option<&Exited>, SupervisorError> {
        if self.exited.is_none() {
            match self.supervisor.next_event(limit)? {
                Some(Event::Exited(exited)) => self.exited = Some(exited),
                Some(other) => {
                    return Err(self.supervisor.fault(format!("sent an unexpected {other:?}")));
                }
                None => {}
            }
        }
        Ok(self.exited.as_ref())
    }

    /// Sends SIGTERM, waits up to `grace` for all processes to end, and sends SIGKILL to the rest. Then
    /// checks that no process and no listener remains.
    pub fn stop(mut self, grace: Duration) -> Result<StopReport, SupervisorError> {
        self.supervisor.send(&Command::Stop { grace_ms: grace.as_millis() as u64 })?;
        let stopped = self.stopped_within(grace + KILL_LIMIT + PATIENCE)?;
        let container = self.supervisor.container.take();
        self.supervisor.end();
        let Stopped { ending, status, killed, mut remaining, last_words, cpu_ns } = stopped;
        match (&container, &self.group) {
            (Some(container), Some(group)) => {
                let left = container.end(group, grace);
                if !left.is_empty() {
                    remaining = left.into();
                }
            }
            // It never became ready.
            (Some(container), None) => container.remove(),
            (None, _) => {}
        }
        let port_free = self.port_is_free().map_err(|error| {
            self.supervisor.fault(format!("is gone, but its port could not be checked: {error}"))
        })?;
        Ok(StopReport {
            name: self.name.clone(),
            ending,
            status,
            killed,
            remaining,
            port_free,
            port: self.port(),
            grace,
            last_words,
            cpu_ns: cpu_ns.filter(|_| container.is_none()),
        })
    }

    fn stopped_within(&mut self, limit: Duration) -> Result<Stopped, SupervisorError> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.supervisor.next_event(left)? {
                Some(Event::Stopped(stopped)) => return Ok(stopped),
                Some(Event::Exited(_)) => {}
                other => return Err(self.supervisor.fault(format!("did not stop it: {other:?}"))),
            }
        }
    }

    /// Waits up to 2 s until the port is free. Sockets may close a moment after their process is
    /// gone, as with io_uring.
    fn port_is_free(&self) -> io::Result<bool> {
        let deadline = Instant::now() + Duration::from_secs(2);
        while is_taken(self.port())? {
            if Instant::now() > deadline {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(true)
    }
}

/// The supervisor's process and the pipes to it. Dropping it kills all processes below it.
#[derive(Debug)]
struct Supervisor {
    name: String,
    child: Child,
    /// Closed to make it kill all of them.
    commands: Option<ChildStdin>,
    events: ChildStdout,
    inbox: Inbox,
    /// The mark in the environment of every process of the contender.
    mark: String,
    cgroup: Option<Cgroup>,
    /// The container that the contender runs in, until it is removed.
    container: Option<Container>,
    ended: bool,
}

impl Supervisor {
    fn start(binary: &Path, name: &str) -> io::Result<Supervisor> {
        use std::os::unix::process::CommandExt;
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut child = std::process::Command::new(binary)
            .arg("supervise")
            // Ctrl-C on the terminal is for `race`, which then stops contenders in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, events) = pipes.ok_or_else(|| io::Error::other("no pipes to it"))?;
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Ok(Supervisor {
            name: name.to_string(),
            child,
            commands: Some(commands),
            events,
            inbox: Inbox::default(),
            mark,
            cgroup: None,
            container: None,
            ended: false,
        })
    }

    fn send(&mut self, message: &impl serde::Serialize) -> Result<(), SupervisorError> {
        let sent = match &mut self.commands {
            Some(commands) => wire::send(commands, message),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|error| {
            self.end();
            self.fault(format!(
                "does not accept commands: {error}; the contender's processes were killed"
            ))
        })
    }

    /// Returns the next event, if one arrives within `limit`.
    fn next_event(&mut self, limit: Duration) -> Result<Option<Event>, SupervisorError> {
        let event = wait_for_message(&mut self.inbox, &mut self.events, limit);
        event.map_err(|error| {
            self.end();
            self.fault(format!("failed: {error}; the contender's processes were killed"))
        })
    }

    fn fault(&self, what: String) -> SupervisorError {
        SupervisorError { name: self.name.clone(), what }
    }

    /// Lets the supervisor kill all processes and waits for it. If the supervisor fails, does this
    /// itself. A container is not below it and is removed, too.
    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.end_processes();
        if let Some(container) = &self.container {
            container.remove();
        }
    }

    fn end_processes(&mut self) {
        self.commands = None;
        let deadline = Instant::now() + KILL_LIMIT + PATIENCE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return,
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
                _ => break,
            }
        }
        // The supervisor was killed, failed or hangs. Errors here mean that it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let cgroup = self.cgroup.clone().or_else(|| Cgroup::find(self.child.id()));
        orphans::end(&self.mark, cgroup.as_ref(), KILL_LIMIT);
        if let Some(cgroup) = cgroup {
            // A group that cannot be removed costs nothing.
            let _ = cgroup.remove();
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end();
    }
}

fn wait_for_message(
    inbox: &mut Inbox,
    events: &mut ChildStdout,
    limit: Duration,
) -> io::Result<Option<Event>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(event) = inbox.take()? {
            return Ok(Some(event));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(events, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(None),
            Ok(_) if inbox.fill(events)? => {}
            Ok(_) => return Err(io::Error::other("it ended unexpectedly")),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
