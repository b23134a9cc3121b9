//! The leader's side of a session: a process that takes the place of `ssh`. What comes on its stdin goes to the agent,
//! and what the agent sends goes to its stdout.

use super::{
    broker::{Broker, Change, End},
    config::{Config, token},
    packet::Packet,
    pump::{FromPipe, ToPipe, USUAL, read_lines, write_lines},
    silence::Silence,
};
use crate::{
    error::Error,
    leader::Machine,
    machine::now_ns,
    message::{Answer, FromAgent, LEASE},
};
use async_nats::{Message, Subscriber};
use futures_lite::StreamExt;
use regatta_record::visible;
use std::{
    ffi::OsString,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

/// How long an agent may take to answer the opening of a session.
const OPENS_WITHIN: Duration = Duration::from_secs(3);
/// Interval between two attempts to open it.
const OPENS_EVERY: Duration = Duration::from_millis(250);
/// Interval between two signs of life to the leader while the broker cannot be reached.
const PULSES_EVERY: Duration = Duration::from_millis(500);
/// How long the last messages of a leader may take.
const ENDS_WITHIN: Duration = Duration::from_millis(500);
/// How much later than the leader the agent may be at the broker again.
const RESUMES_WITHIN: Duration = Duration::from_secs(2);
/// What is wrong if a name is used twice.
const TWO: &str =
    "two agents of this name are at the broker: give each machine its own NAME.toml and NAME.nk";

/// The machines of agents of a fleet, for a leader on this machine. `relay` is a command that calls [`relay()`] with
/// the two arguments that are added to it: the leader's file, and the name of the agent.
///
/// # Errors
/// [`Error::Nats`] if the file is wrong, or the fleet has no such agent.
pub fn agents(file: &Path, names: &[String], relay: &[OsString]) -> Result<Vec<Machine>, Error> {
    let config = Config::of_leader(file)?;
    let machine = |name: &String| {
        known(&config, name)?;
        let mut words = relay.to_vec();
        words.extend([file.into(), name.into()]);
        Ok(Machine { name: name.clone(), program: words.remove(0), arguments: words })
    };
    names.iter().map(machine).collect()
}

fn known(config: &Config, name: &str) -> Result<(), Error> {
    match config.agents.iter().any(|agent| agent == name) {
        true => Ok(()),
        false => {
            let all = config.agents.join(", ");
            Err(Error::Nats(format!("the fleet has no agent {name:?}: it has {all}")))
        }
    }
}

/// Relays stdin and stdout to an agent, until stdin ends. If the session ends otherwise, or cannot be opened, the last
/// line on stderr says why.
pub fn relay(file: &Path, agent: &str) -> ExitCode {
    match relayed(file, agent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn relayed(file: &Path, agent: &str) -> Result<(), Error> {
    let config = Config::of_leader(file)?;
    known(&config, agent)?;
    let machine = |error: io::Error| Error::Machine { what: "start a relay", error };
    let mut lines = read_lines(io::stdin()).map_err(machine)?;
    let (to_leader, written) = write_lines(io::stdout(), USUAL).map_err(machine)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(machine)?.block_on(async {
        let broker = Broker::connect(&config).await?;
        let session = token()?;
        let end = End::of_leader(config.down(agent, &session));
        let inbox = broker.subscribe(config.up(agent, &session, "*")).await?;
        let now = Instant::now();
        let mut relay = Relay {
            broker,
            end,
            to_leader,
            opening: Some(now),
            asked: now,
            pulsed: now,
            heard: now,
            silence: Silence::default(),
            asks: false,
            resumes_until: now,
            instance: None,
            complaint: String::new(),
        };
        let done = relay.run(inbox, &mut lines).await;
        // Also if the leader is gone: otherwise the agent would load until its lease is over.
        let because = match &done {
            Ok(()) => "the leader ended it".to_owned(),
            Err(error) => error.to_string(),
        };
        relay.end.close(&relay.broker, &because).await;
        done
    });
    // What the agent sent last must reach the leader. The sender is gone.
    let _ = written.join();
    done
}

struct Relay {
    broker: Broker,
    end: End,
    to_leader: ToPipe,
    /// Since when the session is being opened; `None` once the agent has answered.
    opening: Option<Instant>,
    /// When the agent was last asked to open it.
    asked: Instant,
    /// When the leader last got a sign of life from the relay itself.
    pulsed: Instant,
    /// When the agent last sent something.
    heard: Instant,
    /// Since then, while something is under way to it.
    silence: Silence,
    /// Whether the leader has sent a request.
    asks: bool,
    /// Until when the agent may be silent, because it must find back to the broker, too.
    resumes_until: Instant,
    /// The word of the agent's process, once it has answered.
    instance: Option<String>,
    /// The last error that the broker reported, as the end of a sentence.
    complaint: String,
}

impl Relay {
    async fn run(&mut self, mut inbox: Subscriber, lines: &mut FromPipe) -> Result<(), Error> {
        self.end.open(&self.broker).await;
        loop {
            self.keep_alive().await?;
            self.end.send(&self.broker).await;
            let has_room = self.end.stream.has_room();
            let wait = self.end.wait(&self.broker, OPENS_EVERY);
            tokio::select! {
                Some(message) = inbox.next() => self.message(&message).await?,
                line = lines.next(), if has_room => match line {
                    Some(line) => {
                        self.asks = true;
                        self.silence.wrote(line.len());
                        self.end.stream.write(&line);
                    }
                    None => {
                        self.finish(&mut inbox).await;
                        return Ok(());
                    }
                },
                change = self.broker.change() => self.changed(change),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn changed(&mut self, change: Change) {
        match change {
            Change::Back => {
                self.end.stream.reconnected();
                self.resumes_until = Instant::now() + RESUMES_WITHIN;
            }
            Change::Lost => {}
            Change::Error(error) => {
                self.complaint = format!("; the broker reports: {}", visible(&error));
            }
        }
    }

    /// Asks the agent to open the session, until it answers. While the broker cannot be reached, informs the leader that
    /// this is not the agent's fault, until the lease is over.
    async fn keep_alive(&mut self) -> Result<(), Error> {
        let lost = self.broker.is_lost_for();
        if lost.is_some_and(|lost| lost > LEASE) {
            return Err(Error::Nats(format!("the broker could not be reached for {LEASE:?}")));
        }
        // A broker that is lost again and again must not hide that the agent is.
        let is_away =
            (lost.is_some() || self.resumes_until > Instant::now()) && self.heard.elapsed() < LEASE;
        if is_away {
            self.pulse().await?;
        }
        let Some(since) = self.opening else { return self.listen(is_away) };
        if since.elapsed() > OPENS_WITHIN {
            return Err(Error::Nats(format!(
                "it is not connected to the broker, or does not answer: no answer within {OPENS_WITHIN:?}{}",
                self.complaint
            )));
        }
        if self.asked.elapsed() >= OPENS_EVERY {
            self.asked = Instant::now();
            self.end.open(&self.broker).await;
        }
        Ok(())
    }

    /// Ends the session if the agent is silent for too long. The leader notices that itself, except while the agent is
    /// starting load processes.
    fn listen(&mut self, is_away: bool) -> Result<(), Error> {
        if is_away || self.end.stream.is_delivered() {
            self.silence.ends();
        } else if self.silence.is_too_long(self.end.stream.under_way(), now_ns()) {
            return Err(Error::Nats("it has not answered for 2s".into()));
        }
        Ok(())
    }

    /// Gives the leader a sign of life from the relay itself, unless it has just had one.
    async fn pulse(&mut self) -> Result<(), Error> {
        if !self.asks || self.pulsed.elapsed() < PULSES_EVERY {
            return Ok(());
        }
        self.pulsed = Instant::now();
        let pulse = FromAgent { seq: 0, body: Answer::Pulse };
        self.pass_on(serde_json::to_vec(&pulse).unwrap_or_default()).await
    }

    async fn message(&mut self, message: &Message) -> Result<(), Error> {
        (self.opening, self.resumes_until) = (None, Instant::now());
        self.heard = self.resumes_until;
        self.silence.ends();
        let instance = message.subject.rsplit('.').next().unwrap_or_default();
        if self.instance.is_none() {
            self.end.found(instance);
        }
        let is_other = self.instance.get_or_insert_with(|| instance.to_owned()) != instance;
        match Packet::decode(&message.payload) {
            Some(Packet::Close(because)) => Err(Error::Nats(visible(&because))),
            Some(_) if is_other => Err(Error::Nats(TWO.into())),
            Some(Packet::Segment(segment)) => {
                let before = self.end.stream.received();
                let messages = self.end.stream.receive(&segment, now_ns()).map_err(Error::Nats)?;
                // A long message on a slow way is no silence.
                if messages.is_empty() && self.end.stream.received() > before {
                    self.pulse().await?;
                }
                for message in messages {
                    self.pass_on(message).await?;
                }
                Ok(())
            }
            Some(Packet::Open) | None => Err(Error::Nats("it sent an unknown packet".into())),
        }
    }

    async fn pass_on(&self, mut line: Vec<u8>) -> Result<(), Error> {
        line.push(b'\n');
        match self.to_leader.send(line).await {
            true => Ok(()),
            false => Err(Error::Nats("the leader reads no more".into())),
        }
    }

    /// Delivers what the leader sent last.
    async fn finish(&mut self, inbox: &mut Subscriber) {
        let deadline = Instant::now() + ENDS_WITHIN;
        while !self.end.stream.is_delivered() && Instant::now() < deadline {
            self.end.send(&self.broker).await;
            let left = deadline.saturating_duration_since(Instant::now());
            let wait = self.end.wait(&self.broker, left);
            tokio::select! {
                Some(message) = inbox.next() => if self.message(&message).await.is_err() {
                    return;
                },
                change = self.broker.change() => self.changed(change),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}
