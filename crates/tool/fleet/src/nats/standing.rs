//! A standing agent: dials out to the broker, and serves one leader at a time.

use super::{
    broker::{Broker, Change, End},
    config::{Config, is_name, token},
    list::{About, State},
    pace::Pace,
    packet::Packet,
    policy::Policy,
    session::{AgentCommand, Session},
};
use crate::{
    error::Error,
    machine::{Build, cores, now_ns},
};
use async_nats::{Message, Subscriber};
use futures_lite::StreamExt;
use regatta_record::visible;
use std::{
    collections::VecDeque, convert::Infallible, env::consts::ARCH, future::pending, io, path::Path,
    time::Duration,
};

/// Interval between two attempts to reach the broker at the start.
const RETRIES_EVERY: Duration = Duration::from_secs(1);
/// The number of words in a subject before the session: `rg.FLEET.a.NAME`.
const SESSION_AT: usize = 4;
/// What the log says of a connection.
const CONNECTED: &str = "connected to the broker";
/// How many sessions that are over an agent knows, so that a late `Open` does not begin one again.
const MOST_OVER: usize = 64;
/// What a session ends with if its agent does.
const ENDED: &str = "the agent's process has ended";
/// Longest wait for something to happen.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Longest wait during a session, whose agent may end while there is no room for its lines.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// Serves the leaders of a fleet, one at a time. `how` is a command that calls [`crate::agent()`], `version` the
/// version of this program, and `log` prints a line about each session. Retries until the broker can be reached.
///
/// # Errors
/// [`Error::Nats`] if the agent's file is wrong; [`Error::Machine`] if the system refuses what the agent needs.
pub fn standing(
    file: &Path,
    policy: Policy,
    how: AgentCommand,
    version: &str,
    log: fn(&str),
) -> Result<Infallible, Error> {
    let config = Config::of_agent(file)?;
    let fail = |what| move |error: io::Error| Error::Machine { what, error };
    let build = Build::running(version).map_err(fail("read this program"))?;
    let about = About {
        version: build.version,
        build: build.sha256,
        arch: ARCH.into(),
        cores: cores(),
        state: State::Idle,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(fail("start the agent"))?.block_on(async {
        let broker = dialled(&config, log).await;
        let [questions, requests] = [config.all(), config.down(&config.name, ">")];
        let questions = broker.subscribe(questions).await?;
        let requests = broker.subscribe(requests).await?;
        let (session, over, said) = (None, VecDeque::new(), CONNECTED.to_owned());
        let (instance, pace) = (token()?, Pace::default());
        let standing = Standing {
            config,
            instance,
            policy,
            how,
            about,
            log,
            broker,
            session,
            pace,
            over,
            said,
        };
        Ok(standing.run(questions, requests).await)
    })
}

/// Connects to the broker. Says once why that is not possible yet.
async fn dialled(config: &Config, log: fn(&str)) -> Broker {
    let mut said = String::new();
    loop {
        match Broker::connect(config).await {
            Ok(broker) => {
                let Config { name, broker: address, .. } = config;
                log(&format!("regatta: agent {name} waits for a leader: broker={address}"));
                return broker;
            }
            Err(error) if error.to_string() == said => {}
            Err(error) => {
                said = error.to_string();
                log(&format!("regatta: {said}; tries again every {RETRIES_EVERY:?}"));
            }
        }
        tokio::time::sleep(RETRIES_EVERY).await;
    }
}

struct Standing {
    config: Config,
    /// A word that no other process has. Two with the same key, on two machines, would both carry out what only one
    /// may: the leader notices that.
    instance: String,
    policy: Policy,
    how: AgentCommand,
    about: About,
    log: fn(&str),
    broker: Broker,
    session: Option<Session>,
    pace: Pace,
    /// The names of the last sessions that are over, the latest last.
    over: VecDeque<String>,
    /// What the log last said of the connection.
    said: String,
}

impl Standing {
    async fn run(mut self, mut questions: Subscriber, mut requests: Subscriber) -> Infallible {
        loop {
            self.release().await;
            let mut wait = LONGEST_WAIT;
            if let Some(session) = &mut self.session {
                session.end.send(&self.broker).await;
                let left = session.left(&self.policy).unwrap_or(LOOKS_EVERY);
                let waits = session.waits(&self.pace).unwrap_or(LOOKS_EVERY);
                wait = session.end.wait(&self.broker, left.min(waits).min(LOOKS_EVERY));
            }
            tokio::select! {
                Some(question) = questions.next() => self.introduce(&question).await,
                Some(request) = requests.next() => self.request(&request).await,
                line = next(&mut self.session) => self.said(line).await,
                change = self.broker.change() => self.changed(change),
                () = tokio::time::sleep(wait) => self.look().await,
            }
        }
    }

    /// Answers the question who is there. Its content is a word that the answer repeats in its subject.
    async fn introduce(&self, question: &Message) {
        let Ok(word) = str::from_utf8(&question.payload) else { return };
        if is_name(word) {
            let state = if self.session.is_some() { State::Busy } else { State::Idle };
            let about = About { state, ..self.about.clone() };
            let subject = self.up(word).into();
            self.broker.publish(&subject, serde_json::to_vec(&about).unwrap_or_default()).await;
        }
    }

    /// A packet of a leader. The subject ends with the session, or with the session and the process that it is for.
    async fn request(&mut self, message: &Message) {
        let words = message.subject.split('.').skip(SESSION_AT).collect::<Vec<_>>();
        let (name, is_for_us) = match words[..] {
            [name] if is_name(name) => (name, true),
            [name, instance] if is_name(name) => (name, instance == self.instance),
            _ => return,
        };
        let is_ours = self.session.as_ref().is_some_and(|session| session.name == name);
        match Packet::decode(&message.payload) {
            // The agent has answered it, or is about to.
            Some(Packet::Open) if is_ours => {}
            Some(Packet::Open) => self.open(name).await,
            Some(Packet::Segment(segment)) if is_ours && is_for_us => {
                let Some(session) = &mut self.session else { return };
                let before = session.end.stream.received();
                let lines = match session.end.stream.receive(&segment, now_ns()) {
                    Ok(lines) => lines,
                    Err(because) => return self.close(&because).await,
                };
                // What the relay sends by itself says nothing about the leader.
                let is_new = session.end.stream.received() > before;
                if is_new && (lines.is_empty() || session.is_holding()) {
                    session.sign();
                }
                self.take(lines).await;
            }
            // The leader will notice that there are two agents.
            Some(Packet::Segment(_)) if is_ours => {}
            Some(Packet::Segment(_)) => {
                let because =
                    "it has no such session: it was restarted, or two agents have its name";
                self.refuse(name, because).await;
            }
            Some(Packet::Close(because)) if is_ours => self.close(&visible(&because)).await,
            Some(Packet::Close(_)) => {}
            None => self.refuse(name, "it does not know this packet").await,
        }
    }

    async fn open(&mut self, name: &str) {
        if self.over.iter().any(|over| over == name) {
            // A repetition that came late.
            return self.refuse(name, "this session is over").await;
        }
        if let Some(session) = &self.session {
            let length = session.length();
            let because = format!("it is busy: it has served another leader for {length:.0?}");
            return self.refuse(name, &because).await;
        }
        let end = End::of_agent(self.up(name));
        match Session::start(name, end, &self.how) {
            Ok(session) => {
                (self.log)(&format!("regatta: session begins: session={name}"));
                self.session = Some(session);
            }
            Err(error) => self.refuse(name, &format!("it cannot start an agent: {error}")).await,
        }
    }

    async fn refuse(&self, name: &str, because: &str) {
        let end = End::of_agent(self.up(name));
        end.refuse(&self.broker, because).await;
    }

    fn up(&self, session: &str) -> String {
        self.config.up(&self.config.name, session, &self.instance)
    }

    async fn take(&mut self, lines: Vec<Vec<u8>>) {
        for line in lines {
            let Some(session) = &mut self.session else { return };
            match session.take(line, &self.policy) {
                Ok(None) => self.release().await,
                Ok(Some(because)) => {
                    let name = &session.name;
                    (self.log)(&format!(
                        "regatta: load refused: session={name} because={because:?}"
                    ));
                }
                Err(because) => return self.close(&because).await,
            }
        }
    }

    /// Passes on the leader's messages that are due.
    async fn release(&mut self) {
        let Some(session) = &mut self.session else { return };
        if let Err(because) = session.release(&mut self.pace) {
            self.close(&because).await;
        }
    }

    /// The agent of the session sent a line, or has ended.
    async fn said(&mut self, line: Option<Vec<u8>>) {
        let ended = match (line, &mut self.session) {
            (Some(line), Some(session)) => session.said(&line, &self.policy),
            _ => Err(ENDED.to_owned()),
        };
        if let Err(because) = ended {
            self.close(&because).await;
        }
    }

    fn changed(&mut self, change: Change) {
        let said = match &change {
            Change::Back => CONNECTED.to_owned(),
            Change::Lost => "the connection to the broker was lost".to_owned(),
            Change::Error(error) => {
                format!("error of the connection to the broker: {}", visible(error))
            }
        };
        if let (Change::Back, Some(session)) = (&change, &mut self.session) {
            session.end.stream.reconnected();
        }
        // Each attempt to connect again may fail in the same way.
        if self.said != said {
            (self.log)(&format!("regatta: {said}"));
            self.said = said;
        }
    }

    /// Ends a session that lasts too long, or whose agent has ended while there is no room for its lines.
    async fn look(&mut self) {
        let Some(session) = &mut self.session else { return };
        if !session.end.stream.has_room() && session.has_ended() {
            return self.close(ENDED).await;
        }
        if let (Some(Duration::ZERO), Some(most)) =
            (session.left(&self.policy), self.policy.max_session)
        {
            self.close(&format!("the session lasted longer than {most:?} (--max-session)")).await;
        }
    }

    /// Ends the session, if there is one: its agent, and what that runs.
    async fn close(&mut self, because: &str) {
        let Some(session) = self.session.take() else { return };
        if self.over.len() == MOST_OVER {
            self.over.pop_front();
        }
        let name = session.name.clone();
        self.over.push_back(name.clone());
        let (length, refused) = (session.length(), session.refused);
        // The load ends first, however long the way to the leader takes.
        let (end, status) = session.stop().await;
        end.close(&self.broker, because).await;
        (self.log)(&format!(
            "regatta: session ends: session={name} length={length:.1?} refused={refused} because={because:?} \
             status={status:?}"
        ));
    }
}

/// Waits for a line of the session's agent; for ever without a session.
async fn next(session: &mut Option<Session>) -> Option<Vec<u8>> {
    match session {
        Some(session) => session.next().await,
        None => pending().await,
    }
}
