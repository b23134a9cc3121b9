//! The connection to an agent: stdin and stdout of a command.

use crate::{
    machine::now_ns,
    message::{FromAgent, Request, ToAgent},
};
use regatta_load::wire::{self, Inbox};
use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long the command may take to end after its stdin or stdout has ended.
pub(super) const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// A first message is shorter, in bytes. It needs a few hundred.
const INTRODUCTION: u64 = 16 << 10;
/// How long its last words are awaited after that.
const LISTENED_WITHIN: Duration = Duration::from_millis(100);
/// Longest line that is kept of the command's stderr, in bytes.
const LONGEST_LINE: u64 = 4096;

/// A machine with an agent.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What to call it in messages and results.
    pub name: String,
    /// The command that runs an agent there, with its stdin and stdout.
    pub program: OsString,
    /// The arguments of the command.
    pub arguments: Vec<OsString>,
}

/// What came from an agent.
#[derive(Debug)]
pub(super) enum Came {
    /// A message.
    Message(Box<FromAgent>),
    /// Something else: the error.
    Nonsense(io::Error),
    /// Nothing more comes.
    End,
}

/// Something that came from the agent with this number, at this time of the leader's clock.
pub(super) type Heard = (usize, u64, Came);

/// The number of a clock ping, and when it was sent by the leader's clock. The agent is not asked to repeat that,
/// because it could change it.
type Pinged = Arc<Mutex<Option<(u64, u64)>>>;

/// A connection to an agent. Dropping it ends the command.
pub(super) struct Link {
    child: Child,
    /// `None` once no more is sent.
    messages: Option<mpsc::Sender<ToAgent>>,
    /// The number of the last request.
    seq: u64,
    /// The number of the last clock ping, and when it was sent, until it is answered.
    pinged: Pinged,
    /// When the command is killed at the latest, once nothing more is sent.
    killed_at: Option<Instant>,
    /// The last line of the command's stderr.
    complaint: Arc<Mutex<String>>,
    /// Reads the command's stderr.
    listener: Option<JoinHandle<()>>,
}

impl Link {
    /// Starts the command of agent `number`.
    pub fn start(
        machine: &Machine,
        number: usize,
        heard: mpsc::SyncSender<Heard>,
    ) -> io::Result<Link> {
        let mut command = Command::new(&machine.program);
        command.args(&machine.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C at a terminal reaches the leader alone, which ends the load in order.
        let mut child = command.process_group(0).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (messages, to_send) = mpsc::channel();
        let complaint = Arc::new(Mutex::new(String::new()));
        let (pinged, kept) = (Pinged::default(), complaint.clone());
        let pinging = pinged.clone();
        let (messages, killed_at, listener) = (Some(messages), None, None);
        let mut link = Link { child, messages, seq: 0, pinged, killed_at, complaint, listener };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the command has no pipes"));
        };
        let spawn = |name: &str| thread::Builder::new().name(format!("{name}-{number}"));
        // An agent that does not read must not keep the leader waiting.
        spawn("agent-out").spawn(move || send(stdin, &to_send, &pinging))?;
        spawn("agent-in").spawn(move || receive(stdout, number, &heard))?;
        link.listener = Some(spawn("agent-err").spawn(move || listen(stderr, &kept))?);
        Ok(link)
    }

    /// Sends a request, and returns its number. If the agent is gone, nothing happens: its output has ended, too.
    pub fn send(&mut self, body: Request) -> u64 {
        self.seq += 1;
        if let Some(messages) = &self.messages {
            let _ = messages.send(ToAgent { seq: self.seq, body });
        }
        self.seq
    }

    /// When the last clock ping was sent, if it has this number and was not answered before.
    pub fn pinged_at_ns(&self, seq: u64) -> Option<u64> {
        let pinged = self.pinged.lock().expect("no thread panics here").take();
        pinged.filter(|(number, _)| *number == seq).map(|(_, at_ns)| at_ns)
    }

    /// Sends nothing more: the agent sees the end of its stdin, and exits. Its command has until this time to end.
    pub fn close(&mut self, killed_at: Instant) {
        self.messages = None;
        self.killed_at.get_or_insert(killed_at);
    }

    /// Describes how the command ended after its output has ended, as a clause.
    pub fn ending(&mut self) -> String {
        let status = self.ended_until(Instant::now() + ENDS_WITHIN);
        let deadline = Instant::now() + LISTENED_WITHIN;
        while self.listener.as_ref().is_some_and(|listener| !listener.is_finished())
            && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(1));
        }
        let complaint = self.complaint.lock().expect("no thread panics here");
        let how = match status {
            // What regatta ends with after its message, which says all, e.g. that of the relay of a standing fleet.
            Some(status) if status.code() == Some(1) && !complaint.is_empty() => {
                return complaint.clone();
            }
            Some(status) => format!("its command ended with {status}"),
            None => "it closed its output".to_owned(),
        };
        match complaint.is_empty() {
            true => how,
            false => format!("{how}: {complaint}"),
        }
    }

    fn ended_until(&mut self, deadline: Instant) -> Option<std::process::ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close(Instant::now() + ENDS_WITHIN);
        if self.killed_at.and_then(|at| self.ended_until(at)).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn send(mut to: impl io::Write, messages: &mpsc::Receiver<ToAgent>, pinged: &Pinged) {
    for message in messages {
        if matches!(message.body, Request::Clock) {
            *pinged.lock().expect("no thread panics here") = Some((message.seq, now_ns()));
        }
        if wire::send(&mut to, &message).is_err() {
            return;
        }
    }
}

fn receive(from: impl Read, number: usize, heard: &mpsc::SyncSender<Heard>) {
    let mut inbox = Inbox::new(from);
    let mut first = Some(INTRODUCTION);
    loop {
        let message = match first.take() {
            Some(longest) => inbox.receive_short(longest),
            None => inbox.receive(),
        };
        let came = match message {
            Ok(Some(message)) => Came::Message(Box::new(message)),
            Ok(None) => Came::End,
            Err(error) => Came::Nonsense(error),
        };
        let is_last = !matches!(came, Came::Message(_));
        if heard.send((number, now_ns(), came)).is_err() || is_last {
            return;
        }
    }
}

/// Keeps the last line that is not empty.
fn listen(from: impl Read, kept: &Mutex<String>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            *kept.lock().expect("no thread panics here") = text.trim().to_owned();
        }
    }
}
