//! A session of a standing agent: an agent as a process of its own, which a leader commands over NATS.

use super::{
    broker::End,
    meter::Meter,
    pace::{Held, Pace},
    policy::{Policy, share_of_connections},
    pump::{BEHIND_LONGEST, FromPipe, ToPipe, read_lines, write_lines},
};
use crate::message::{Answer, FromAgent, Request, ToAgent};
use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How long the agent may take to end after its stdin has ended. Its load processes end with it.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Interval between two looks whether it has ended.
const LOOKED_EVERY: Duration = Duration::from_millis(5);
/// Most requests that are refused in a session. Each is a line of the log.
const MOST_REFUSED: u32 = 16;

/// Shortest interval between two signs to the agent's process that a message is on the way.
const SIGNS_EVERY: Duration = Duration::from_millis(200);

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
    to_agent: Option<ToPipe>,
    from_agent: FromPipe,
    /// What is permitted, and not passed on yet.
    held: Held,
    /// When the agent's process last got a sign that a message is on the way.
    signed: Instant,
    meter: Meter,
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
        let pipes = write_lines(stdin, BEHIND_LONGEST)
            .and_then(|(to_agent, _)| Ok((to_agent, read_lines(stdout)?)));
        let (to_agent, from_agent) = pipes.inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        let (name, now) = (name.to_owned(), Instant::now());
        Ok(Session {
            name,
            end,
            began: now,
            child,
            to_agent: Some(to_agent),
            from_agent,
            held: Held::default(),
            signed: now,
            meter: Meter::default(),
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

    /// Takes a message of the leader, if the policy permits it: [`Session::release`] passes it on. Otherwise answers
    /// it. Returns why it was refused, if it was.
    ///
    /// # Errors
    /// Why the session cannot go on, as a clause.
    pub fn take(&mut self, line: Vec<u8>, policy: &Policy) -> Result<Option<String>, String> {
        let ToAgent { seq, body } = serde_json::from_slice(&line).map_err(|error| {
            format!(
                "the leader sent no valid message: {error}; if regatta was replaced since this agent was started, \
                 restart the agent"
            )
        })?;
        if let Err(because) = policy.check(&body, self.left(policy)) {
            self.refused += 1;
            if self.refused > MOST_REFUSED || !self.end.stream.has_room() {
                return Err(format!(
                    "the leader sent too many requests that are refused; the last: {because}"
                ));
            }
            let refused = FromAgent { seq, body: Answer::Refused { because: because.clone() } };
            let answer = serde_json::to_vec(&refused).map_err(|error| error.to_string())?;
            self.end.stream.write(&answer);
            return Ok(Some(because));
        }
        let load = match &body {
            Request::Prepare { plan, parts } => Some(share_of_connections(plan, parts)),
            _ => None,
        };
        self.held.push(load.is_some(), line)?;
        if let Some(connections) = load {
            self.meter.expects(connections);
        }
        Ok(None)
    }

    /// Sends a line of the agent to the leader.
    ///
    /// # Errors
    /// If its load sends more than the policy permits, as a clause.
    pub fn said(&mut self, line: &[u8], policy: &Policy) -> Result<(), String> {
        self.end.stream.write(line);
        let measured = |most| self.meter.takes(line, most, Instant::now());
        policy.max_rate.map_or(Ok(()), measured)
    }

    /// Passes on the messages that are due.
    ///
    /// # Errors
    /// As [`Session::take`].
    pub fn release(&mut self, pace: &mut Pace) -> Result<(), String> {
        while let Some(mut line) = self.held.pop(pace, Instant::now()) {
            line.push(b'\n');
            if !self.to_agent.as_ref().is_some_and(|to_agent| to_agent.try_send(line)) {
                return Err("the agent's process takes no messages".into());
            }
        }
        Ok(())
    }

    /// How long a message must still wait; `None` if none waits.
    pub fn waits(&self, pace: &Pace) -> Option<Duration> {
        self.held.wait(pace, Instant::now())
    }

    /// The leader has sent a part of a message that is not complete, or messages wait. The agent's process must not
    /// take that for the silence of the leader, so it gets a space, which JSON ignores.
    pub fn sign(&mut self) {
        if self.signed.elapsed() >= SIGNS_EVERY
            && let Some(to_agent) = &self.to_agent
        {
            self.signed = Instant::now();
            // Without room, the process has something to read anyway.
            let _ = to_agent.try_send(b" ".to_vec());
        }
    }

    /// Whether messages wait for their time.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether its agent has ended, although the leader has not acknowledged all that it sent.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the next line of the agent, once there is room for it. `None`: the agent has ended.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        match self.end.stream.has_room() {
            true => self.from_agent.next().await,
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
    use crate::message::LEASE;
    use futures_lite::future::block_on;
    use regatta_load::Plan;
    use regatta_record::Part;
    use regatta_script::Workload;

    fn session(script: &str) -> Session {
        let arguments = vec!["-c".into(), script.into()];
        let how = AgentCommand { program: "sh".into(), arguments };
        Session::start("1", End::of_agent("up".into()), &how).unwrap()
    }

    fn policy() -> Policy {
        let (max_rate, max_connections, max_session) = (None, None, None);
        let targets = vec!["127.0.0.1:80".parse().unwrap()];
        Policy { targets, cores: 1, max_rate, max_connections, max_lease: LEASE, max_session }
    }

    fn message(body: Request) -> Vec<u8> {
        let message = ToAgent { seq: 1, body };
        serde_json::to_vec(&message).unwrap()
    }

    fn stopped(mut session: Session) {
        session.child.kill().unwrap();
        session.child.wait().unwrap();
    }

    #[test]
    fn a_leader_that_is_refused_again_and_again_is_refused_the_session() {
        let mut session = session("cat");
        let line = message(Request::Site(serde_json::Value::Null));
        for _ in 0..MOST_REFUSED {
            assert!(session.take(line.clone(), &policy()).unwrap().is_some());
        }
        let error = session.take(line, &policy()).unwrap_err();
        assert!(error.starts_with("the leader sent too many requests"), "{error}");
        stopped(session);
    }

    #[test]
    fn a_message_of_another_build_ends_the_session_with_what_to_do() {
        let mut session = session("cat");
        let line = br#"{"fleet":1,"session":7,"seq":1,"body":"renew"}"#;
        let error = session.take(line.to_vec(), &policy()).unwrap_err();
        assert!(error.contains("no valid message: unknown field `fleet`"), "{error}");
        assert!(error.ends_with("restart the agent"), "{error}");
        stopped(session);
    }

    #[test]
    fn a_load_right_after_another_waits_and_the_agent_gets_signs_meanwhile() {
        let mut session = session("cat");
        let mut pace = Pace::default();
        let workload = Workload::parse("double").unwrap();
        let plan = Box::new(Plan::closed("127.0.0.1:80".parse().unwrap(), workload));
        let load = message(Request::Prepare { plan, parts: vec![Part::whole(1)] });
        for line in [&load, &load, &message(Request::Renew)] {
            assert_eq!(session.take(line.clone(), &policy()), Ok(None));
            session.release(&mut pace).unwrap();
        }
        assert_eq!(block_on(session.next()).unwrap(), load);
        assert!(session.is_holding());
        let wait = session.waits(&pace).unwrap();
        assert!(wait > Duration::from_millis(500), "{wait:?}");
        std::thread::sleep(SIGNS_EVERY);
        (0..5).for_each(|_| session.sign());
        std::thread::sleep(wait);
        session.release(&mut pace).unwrap();
        assert_eq!(block_on(session.next()).unwrap(), [b" ", &load[..]].concat());
        assert_eq!(block_on(session.next()).unwrap(), message(Request::Renew));
        assert!(session.waits(&pace).is_none());
        stopped(session);
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
