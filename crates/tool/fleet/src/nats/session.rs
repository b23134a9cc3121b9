//! A session of a standing agent: an agent as a process of its own, which a leader commands over NATS.

use super::{
    broker::End,
    policy::Policy,
    pump::{read_lines, write_lines},
};
use crate::message::{Answer, FromAgent, ToAgent, VERSION};
use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// How long the agent may take to end after its stdin has ended. Its load processes end with it.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Interval between two looks whether it has ended.
const LOOKED_EVERY: Duration = Duration::from_millis(5);

/// A command that runs an agent on its stdin and stdout.
#[derive(Clone, Debug)]
pub struct AgentCommand {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// A session.
pub(super) struct Session {
    /// Its name, which the leader drew.
    pub name: String,
    pub end: End,
    began: Instant,
    child: Child,
    /// `None` once the agent's stdin is closed.
    to_agent: Option<mpsc::Sender<Vec<u8>>>,
    from_agent: mpsc::Receiver<Vec<u8>>,
    /// What the log says of it.
    pub refused: u32,
}

impl Session {
    /// Starts an agent for a session. What it sends goes to `end`.
    ///
    /// # Errors
    /// If the agent cannot be started.
    pub fn start(name: &str, end: End, how: &AgentCommand) -> io::Result<Session> {
        let mut command = Command::new(&how.program);
        command.args(&how.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C reaches the standing agent alone, whose end the session's agent sees.
        let mut child = command.process_group(0).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the agent has no pipes"));
        };
        let (to_agent, _) = write_lines(stdin)?;
        Ok(Session {
            name: name.to_owned(),
            end,
            began: Instant::now(),
            child,
            to_agent: Some(to_agent),
            from_agent: read_lines(stdout)?,
            refused: 0,
        })
    }

    /// How long it has lasted.
    pub fn length(&self) -> Duration {
        self.began.elapsed()
    }

    /// How long it may still last; `None`: for ever.
    pub fn left(&self, policy: &Policy) -> Option<Duration> {
        policy.max_session.map(|most| most.saturating_sub(self.length()))
    }

    /// Passes a message of the leader on to the agent, if the policy permits it. Otherwise answers it. Returns why it
    /// was refused, if it was.
    ///
    /// # Errors
    /// Why the session cannot go on, as a clause.
    pub fn pass_on(&mut self, line: Vec<u8>, policy: &Policy) -> Result<Option<String>, String> {
        let message: ToAgent = serde_json::from_slice(&line)
            .map_err(|error| format!("the leader sent no valid message: {error}"))?;
        if let Err(because) = policy.check(&message.body, self.left(policy)) {
            self.refused += 1;
            let ToAgent { session, seq, .. } = message;
            let body = Answer::Refused { because: because.clone() };
            let refused = FromAgent { fleet: VERSION, session, seq, body };
            let answer = serde_json::to_vec(&refused).map_err(|error| error.to_string())?;
            self.end.stream.write(&answer);
            return Ok(Some(because));
        }
        let to_agent = self.to_agent.as_ref().ok_or("the agent has ended")?;
        to_agent.try_send(line).map_err(|_| "the agent's process takes no messages")?;
        Ok(None)
    }

    /// Waits for the next line of the agent, once there is room for it. `None`: the agent has ended.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        match self.end.stream.has_room() {
            true => self.from_agent.recv().await,
            false => std::future::pending().await,
        }
    }

    /// Ends the agent, and what it runs. Returns the leader's end of the session, and how the agent ended.
    pub async fn stop(mut self) -> (End, String) {
        self.to_agent = None;
        let deadline = Instant::now() + ENDS_WITHIN;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return (self.end, status.to_string()),
                Ok(None) if Instant::now() < deadline => tokio::time::sleep(LOOKED_EVERY).await,
                Ok(None) | Err(_) => {
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    let how = format!("killed: it did not end within {ENDS_WITHIN:?}");
                    return (self.end, how);
                }
            }
        }
    }
}
