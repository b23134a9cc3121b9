//! The load processes of a leader: starts them, sends them orders, receives their reports, and leaves
//! none behind.

use super::{
    LoadProcessConfig,
    ask::Ask,
    wire::{self, Inbox},
};
use crate::Error;
use regatta_record::{LeaderCommand, ProcessMessage};
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

/// What the leader received from a load process.
#[derive(Debug)]
pub(super) enum Heard {
    Report(ProcessMessage),
    /// Something other than a report, or a read error.
    Nonsense(io::Error),
    /// Its output has ended.
    Gone,
}

/// The processes. Dropping this kills and reaps them.
pub(super) struct Crew {
    members: Vec<Member>,
    heard: mpsc::Receiver<(usize, Heard)>,
}

struct Member {
    child: Child,
    orders: Arc<ChildStdin>,
    reader: Option<JoinHandle<()>>,
}

impl Crew {
    /// Starts a process for each of `asks`.
    pub fn start(how: &LoadProcessConfig, asks: Vec<Ask>) -> Result<Crew, Error> {
        let (sender, heard) = mpsc::channel();
        let mut crew = Crew { members: Vec::new(), heard };
        for (number, ask) in asks.into_iter().enumerate() {
            let member = Member::start(how, number, ask, sender.clone());
            let what = "start its processes";
            crew.members.push(member.map_err(|error| Error::Machine { what, error })?);
        }
        Ok(crew)
    }

    /// Waits for the next input from any process. Returns it with the number of the process; `None` if
    /// nothing came in time.
    pub fn next(&self, within: Duration) -> Option<(usize, Heard)> {
        self.heard.recv_timeout(within).ok()
    }

    /// Sends an order to all processes. A process that is gone is noticed by the end of its output.
    pub fn order(&self, order: LeaderCommand) {
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

impl Member {
    fn start(
        how: &LoadProcessConfig,
        number: usize,
        ask: Ask,
        sender: mpsc::Sender<(usize, Heard)>,
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
                let heard = match inbox.next() {
                    Ok(Some(report)) => Heard::Report(report),
                    Ok(None) => Heard::Gone,
                    Err(error) => Heard::Nonsense(error),
                };
                let is_last = !matches!(
                    heard,
                    Heard::Report(ProcessMessage::Progress(_) | ProcessMessage::Second(_))
                );
                if sender.send((number, heard)).is_err() || is_last || asked.is_err() {
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
