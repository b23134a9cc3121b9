//! Who of a fleet is there.

use super::{
    broker::Broker,
    config::{Config, token},
};
use crate::error::Error;
use futures_lite::StreamExt;
use regatta_record::visible;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    time::{Duration, Instant},
};

/// How often each agent is asked. The shortest round trip counts.
const QUESTIONS: usize = 5;
/// How long answers to a question are awaited, unless all are there.
const ANSWERED_WITHIN: Duration = Duration::from_millis(300);
/// Longest answer, in bytes.
const LONGEST: usize = 4096;

/// What an agent says of itself. An agent of another build may say more, and is listed, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Version of its program.
    pub version: String,
    /// SHA-256 of its program.
    pub build: String,
    /// Architecture of its program.
    pub arch: String,
    /// Number of CPUs that it may use.
    pub cores: u32,
    /// What it does.
    pub state: State,
}

/// What a standing agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It waits for a leader.
    Idle,
    /// It serves one.
    Busy,
}

/// An agent of a fleet.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it answered; `None` if it did not.
    pub seen: Option<Seen>,
}

/// What an agent answered. Its texts are visible characters only.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What it said of itself.
    pub about: About,
    /// Whether two agents have this name, which no load can use then.
    pub is_double: bool,
    /// Shortest round trip of a question, through the broker.
    pub rtt: Duration,
}

/// Asks all agents of a fleet who they are. They are listed in the order of the leader's file.
///
/// # Errors
/// [`Error::Nats`] if the file is wrong, or the broker cannot be reached.
pub fn list(file: &Path) -> Result<Vec<Listed>, Error> {
    let config = Config::of_leader(file)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let fail = |error: io::Error| Error::Machine { what: "ask the agents", error };
    let mut seen = runtime.map_err(fail)?.block_on(ask(&config))?;
    let listed = |name: &String| Listed { name: name.clone(), seen: seen.remove(name) };
    Ok(config.agents.iter().map(listed).collect())
}

async fn ask(config: &Config) -> Result<BTreeMap<String, Seen>, Error> {
    let broker = Broker::connect(config).await?;
    let word = token()?;
    let mut all: BTreeMap<String, (String, Seen)> = BTreeMap::new();
    for nth in 0..QUESTIONS {
        // Each question has its own word, so that a late answer is not taken for an early one.
        let word = format!("{word}-{nth}");
        let mut answers = broker.subscribe(config.up("*", &word, "*")).await?;
        let (asked, mut answered) = (Instant::now(), BTreeSet::new());
        broker.publish(&config.all().into(), word.into_bytes()).await;
        while answered.len() < config.agents.len() {
            let left = ANSWERED_WITHIN.saturating_sub(asked.elapsed());
            let Ok(Some(answer)) = tokio::time::timeout(left, answers.next()).await else { break };
            let mut words = answer.subject.rsplit('.');
            let instance = words.next().unwrap_or_default().to_owned();
            let name = words.nth(1).unwrap_or_default().to_owned();
            if !config.agents.contains(&name) {
                continue;
            }
            let Some(mut seen) = seen(&answer.payload, asked.elapsed()) else { continue };
            if let Some((other, before)) = all.get(&name) {
                seen.rtt = seen.rtt.min(before.rtt);
                seen.is_double = before.is_double || *other != instance;
            }
            answered.insert(name.clone());
            all.insert(name, (instance, seen));
        }
    }
    Ok(all.into_iter().map(|(name, (_, seen))| (name, seen)).collect())
}

fn seen(answer: &[u8], rtt: Duration) -> Option<Seen> {
    let about: About = serde_json::from_slice(answer).ok().filter(|_| answer.len() <= LONGEST)?;
    let About { version, build, arch, .. } = &about;
    let [version, build, arch] = [version, build, arch].map(|text| visible(text));
    let about = About { version, build, arch, ..about };
    Some(Seen { about, is_double: false, rtt })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_and_its_texts_are_made_visible() {
        let about = About {
            version: "\u{1b}[2J".into(),
            build: "00ff".into(),
            arch: "x86_64".into(),
            cores: 4,
            state: State::Busy,
        };
        let answer = serde_json::to_vec(&about).unwrap();
        let seen = seen(&answer, Duration::from_micros(90)).unwrap();
        assert_eq!(seen.about, About { version: "\\u{1b}[2J".into(), ..about });
    }

    #[test]
    fn an_agent_of_another_build_that_says_more_is_listed() {
        let answer = r#"{"role":"load","version":"0.0.9","build":"00ff","arch":"x86_64","cores":4,"state":"idle"}"#;
        let seen = seen(answer.as_bytes(), Duration::ZERO).unwrap();
        assert_eq!((seen.about.version.as_str(), seen.about.state), ("0.0.9", State::Idle));
    }

    #[test]
    fn other_answers_are_ignored() {
        let of = |version: &str| {
            let rest = r#""build":"00ff","arch":"x86_64","cores":4,"state":"idle""#;
            format!(r#"{{"version":"{version}",{rest}}}"#)
        };
        assert!(seen(of("1").as_bytes(), Duration::ZERO).is_some());
        for answer in ["", "{}", "[1]", &of(&"x".repeat(5_000))] {
            assert!(seen(answer.as_bytes(), Duration::ZERO).is_none());
        }
    }
}
