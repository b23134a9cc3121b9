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
/// Most requests that are refused in a session. Each is a line of the log.
const MOST_REFUSED: u32 = 16;

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
        let pipes =
            write_lines(stdin).and_then(|(to_agent, _)| Ok((to_agent, read_lines(stdout)?)));
        let (to_agent, from_agent) = pipes.inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok(Session {
            name: name.to_owned(),
            end,
            began: Instant::now(),
            child,
            to_agent: Some(to_agent),
            from_agent,
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
            if self.refused > MOST_REFUSED || !self.end.stream.has_room() {
                return Err(format!(
                    "the leader sent too many requests that are refused; the last: {because}"
                ));
            }
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

    /// Whether its agent has ended, although the leader has not acknowledged all that it sent.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Request;

    fn session(script: &str) -> Session {
        let arguments = vec!["-c".into(), script.into()];
        let how = AgentCommand { program: "sh".into(), arguments };
        Session::start("1", End::of_agent("up".into()), &how).unwrap()
    }

    #[test]
    fn a_leader_that_is_refused_again_and_again_is_refused_the_session() {
        let mut session = session("cat");
        let targets = Vec::new();
        let policy =
            Policy { targets, cores: 1, max_rate: None, max_connections: None, max_session: None };
        let body = Request::Site(serde_json::Value::Null);
        let site = ToAgent { fleet: VERSION, session: 1, seq: 1, body };
        let line = serde_json::to_vec(&site).unwrap();
        for _ in 0..MOST_REFUSED {
            assert!(session.pass_on(line.clone(), &policy).unwrap().is_some());
        }
        let error = session.pass_on(line, &policy).unwrap_err();
        assert!(error.starts_with("the leader sent too many requests"), "{error}");
        session.child.kill().unwrap();
        session.child.wait().unwrap();
    }

    #[test]
    fn the_end_of_an_agent_is_seen_without_room_for_its_lines() {
        let mut session = session("exit 3");
        session.end.stream.write(&vec![0; 4 << 20]);
        assert!(!session.end.stream.has_room());
        let deadline = Instant::now() + Duration::from_secs(10);
        while !session.has_ended() {
            assert!(Instant::now() < deadline, "the end is not seen");
            std::thread::sleep(LOOKED_EVERY);
        }
    }
}
