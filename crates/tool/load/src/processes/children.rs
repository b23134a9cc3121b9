//! Load processes that are children of this process: starts them, sends them orders, receives their
//! reports, and leaves none behind.

use super::{
    LoadProcessConfig,
    ask::{Ask, Order},
    crew::{Crew, Heard},
    memory::Memory,
    wire::{self, Inbox},
};
use crate::Error;
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long a process may take to end after its output has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// The processes. Dropping this kills and reaps them.
pub struct ChildProcesses {
    members: Vec<Member>,
    /// The memory that they share, if they need some.
    _memory: Option<Memory>,
}

struct Member {
    child: Child,
    orders: Arc<ChildStdin>,
    reader: Option<JoinHandle<()>>,
}

impl ChildProcesses {
    /// Starts a process for each of `asks`, which are of one load. Several processes share memory, if the
    /// connections of the workload must know of each other. `heard` is called, on a thread for each process,
    /// with all that comes from it and the number of the process; it returns whether there is still
    /// interest.
    ///
    /// # Errors
    /// [`Error::Machine`] if the memory cannot be created, or a process cannot be started.
    pub fn start(
        how: &LoadProcessConfig,
        asks: Vec<Ask>,
        heard: impl Fn(usize, Heard) -> bool + Clone + Send + 'static,
    ) -> Result<ChildProcesses, Error> {
        let words = asks.first().map_or(0, |ask| ask.plan.workload.shared_words());
        let memory = (words > 0 && asks.len() > 1).then(|| Memory::new(words)).transpose();
        let memory =
            memory.map_err(|error| Error::Machine { what: "create its shared memory", error })?;
        let shared = memory.as_ref().map(Memory::path);
        let mut children = ChildProcesses { members: Vec::new(), _memory: memory };
        for (number, ask) in asks.into_iter().enumerate() {
            let ask = Ask { shared: shared.clone(), ..ask };
            let heard = heard.clone();
            let member = Member::start(how, number, ask, move |one| heard(number, one));
            let what = "start its processes";
            children.members.push(member.map_err(|error| Error::Machine { what, error })?);
        }
        Ok(children)
    }

    /// Their process IDs.
    pub fn pids(&self) -> Vec<u32> {
        self.members.iter().map(|member| member.child.id()).collect()
    }

    /// Sends an order to all processes. The time of an order is one of this machine's clock. A process
    /// that is gone is noticed by the end of its output.
    pub fn order(&self, order: Order) {
        for member in &self.members {
            let _ = wire::send(member.orders.as_ref(), &order);
        }
    }

    /// Describes how a process ended after its output has ended, as the rest of a sentence.
    pub fn ending(&mut self, number: usize) -> String {
        let child = &mut self.members[number].child;
        let deadline = Instant::now() + ENDS_WITHIN;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => {
                    break format!("ended before its counts were reported: {status}");
                }
                Err(error) => break format!("cannot be observed: {error}"),
                Ok(None) if Instant::now() >= deadline => {
                    break "closed its output before its counts were reported".into();
                }
                Ok(None) => thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

/// The load processes of a leader on the same machine.
pub(super) struct LocalCrew {
    children: ChildProcesses,
    heard: mpsc::Receiver<(usize, Heard)>,
}

impl LocalCrew {
    /// Starts a process for each of `asks`.
    pub fn start(how: &LoadProcessConfig, asks: Vec<Ask>) -> Result<LocalCrew, Error> {
        let (sender, heard) = mpsc::channel();
        let send = move |number, one| sender.send((number, one)).is_ok();
        Ok(LocalCrew { children: ChildProcesses::start(how, asks, send)?, heard })
    }
}

impl Crew for LocalCrew {
    fn next(&mut self, within: Duration) -> Option<(usize, Heard)> {
        self.heard.recv_timeout(within).ok()
    }

    fn order(&mut self, order: Order) {
        self.children.order(order);
    }

    fn ending(&mut self, number: usize) -> String {
        self.children.ending(number)
    }

    fn name(&self, number: usize) -> String {
        format!("load process {} of {}", number + 1, self.children.members.len())
    }

    fn error(&self, number: usize, because: String) -> Error {
        Error::Process { number: number + 1, processes: self.children.members.len(), because }
    }
}

impl Member {
    fn start(
        how: &LoadProcessConfig,
        number: usize,
        ask: Ask,
        heard: impl Fn(Heard) -> bool + Send + 'static,
    ) -> io::Result<Member> {
        let mut command = Command::new(&how.program);
        command.args(&how.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C at a terminal reaches the leader alone, which ends the load in order.
        let mut child = command.process_group(0).spawn()?;
        let (Some(orders), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a process has no pipes"));
        };
        let orders = Arc::new(orders);
        let mut member = Member { child, orders: orders.clone(), reader: None };
        // A process that does not read must not keep the leader waiting.
        let reader = thread::Builder::new().name(format!("process-{number}")).spawn(move || {
            let asked = wire::send(orders.as_ref(), &ask);
            drop((orders, ask));
            let mut inbox = Inbox::new(reports);
            loop {
                let one = match inbox.receive() {
                    Ok(Some(report)) => Heard::Report(report),
                    Ok(None) => Heard::Gone,
                    Err(error) => Heard::Nonsense(error),
                };
                let is_last = one.is_last();
                if !heard(one) || is_last || asked.is_err() {
                    return;
                }
            }
        })?;
        member.reader = Some(reader);
        Ok(member)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
