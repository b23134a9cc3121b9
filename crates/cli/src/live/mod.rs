//! `race --live`: the page of a race while it runs, made from its events and its stored rounds.
//!
//! The page is made and sent only between two windows. From the first connection of a load until its
//! window is over, nothing is sent, and requests wait for their answer (`server`). A new page is made
//! after a pass, and before a round if the last page is old enough; making it takes at most a twentieth
//! of the time.

mod server;

use crate::output::message;
use anyhow::Context;
use regatta_judge::judge;
use regatta_page::Feed;
use regatta_race::Store;
use regatta_record::{Asked, Event, Happened, Phase, Round, RoundStart, Summary};
use regatta_report::{Bar, Expected};
use serde_json::json;
use server::Server;
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::{Duration, Instant},
};

/// Minimum time between two pages within a pass.
const EVERY: Duration = Duration::from_secs(5);
/// Maximum share of the time for making pages within a pass: one part in this many.
const SHARE: u32 = 20;

/// Parses the address of `--live`: a port of 127.0.0.1, or an address with a port.
///
/// # Errors
/// If it is neither.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    port.parse().map(local).or_else(|_| text.parse()).map_err(|_| {
        "expected a port, such as 8080, or an address, such as 127.0.0.1:8080 or [::1]:8080; 0 \
         chooses a free port"
            .to_owned()
    })
}

/// The live page of a race.
pub struct LivePage {
    server: Server,
    /// The result directory, as soon as it has rounds.
    dir: PathBuf,
    asked: Option<Asked>,
    /// The starts, for the remaining time.
    bar: Bar,
    /// When the last page was made, and how long that took.
    made: Option<(Instant, Duration)>,
}

impl LivePage {
    /// Serves the page on `addr`, and prints its URL to stderr.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub fn start(addr: SocketAddr) -> anyhow::Result<LivePage> {
        let server =
            Server::start(addr).with_context(|| format!("cannot serve the live page on {addr}"))?;
        let addr = server.addr();
        message(&format!("live page: http://{addr}/"));
        if !addr.ip().is_loopback() {
            let reach = match addr.ip() {
                ip if ip.is_unspecified() => "every network of this machine".to_owned(),
                ip => ip.to_string(),
            };
            message(&format!("note: the live page can be read by everybody who can reach {reach}"));
        }
        Ok(LivePage { server, dir: PathBuf::new(), asked: None, bar: Bar::default(), made: None })
    }

    /// Takes the next event of the race.
    pub fn show(&mut self, event: &Event) {
        match &event.happened {
            Happened::RaceStarted(header) | Happened::RaceResumed(header) => {
                self.dir = header.dir.clone().into();
                self.asked = Some(header.asked.clone());
                self.renew();
            }
            Happened::RatesSettled { asked } => {
                self.asked = Some((**asked).clone());
                self.renew();
            }
            Happened::RoundStarted(round) => {
                self.round_starts(event.ns, round);
                // The contender of this round starts afterwards.
                if round.pass.is_some() && self.is_due() {
                    self.renew();
                }
            }
            Happened::PhaseStarted { phase } => {
                self.server.set_quiet(matches!(phase, Phase::Connecting | Phase::WarmUp));
            }
            Happened::ContenderDied { because, .. } => self.say(&format!("died: {because}")),
            Happened::RoundEnded(_) => self.server.set_quiet(false),
            Happened::PassJudged { .. } => self.renew(),
            Happened::Judged(judged) => self.serve(&judged.summary, &self.rounds()),
            Happened::RaceFinished => self.say("finished"),
            Happened::RaceInterrupted { .. } => self.say("interrupted"),
            Happened::RaceStopped { because, .. } => self.say(&format!("stopped: {because}")),
            Happened::Failed { because } => self.say(because),
            _ => {}
        }
    }

    /// Ends the streams, after their clients have the last state.
    pub fn finish(self) {
        self.server.finish();
    }

    fn say(&self, text: &str) {
        self.server.progress(&json!({ "text": text }).to_string());
    }

    fn round_starts(&mut self, ns: u64, round: &RoundStart) {
        let RoundStart { pass, observes_s, done, all, contender, load, .. } = round;
        let place = match pass {
            Some(pass) => format!("round {}", pass + 1),
            None if observes_s.is_some() => "warm-up".to_owned(),
            None => "pilot".to_owned(),
        };
        self.bar.starts(ns, *done, *all, Expected::default());
        // Observations and the pilot are only the beginning of the race.
        let left = pass.and_then(|_| self.bar.left(ns));
        let left = left.map(|left| format!(", {left} left")).unwrap_or_default();
        self.say(&format!("{place}: {contender} at {load}, start {} of {all}{left}", done + 1));
    }

    /// Whether it is time for a page within a pass.
    fn is_due(&self) -> bool {
        self.made.is_none_or(|(at, took)| at.elapsed() >= EVERY.max(took * SHARE))
    }

    /// Makes a page of the rounds so far.
    fn renew(&mut self) {
        let Some(asked) = &self.asked else { return };
        let began = Instant::now();
        let rounds = self.rounds();
        self.serve(&judge(asked, &rounds), &rounds);
        self.made = Some((Instant::now(), began.elapsed()));
    }

    /// The stored rounds; none if there is no result directory yet.
    fn rounds(&self) -> Vec<Round> {
        Store::read(&self.dir).map_or_else(|_| Vec::new(), |(_, rounds)| rounds)
    }

    fn serve(&self, summary: &Summary, rounds: &[Round]) {
        let (body, data) = (regatta_page::body(summary), regatta_page::data(summary, rounds));
        let feed = Some(Feed { url: "events" });
        let whole = regatta_page::shell(&regatta_page::title(summary), &body, &data, feed);
        let body = serde_json::to_string(&body).expect("a text can be written as JSON");
        self.server.page(whole, &format!(r#"{{"body":{body},"data":{data}}}"#));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_of_this_machine_or_an_address_with_a_port() {
        let parsed = |text| address(text).map(|addr| addr.to_string());
        assert_eq!(parsed("8080").unwrap(), "127.0.0.1:8080");
        assert_eq!(parsed("localhost:0").unwrap(), "127.0.0.1:0");
        assert_eq!(parsed("[::1]:80").unwrap(), "[::1]:80");
        assert_eq!(parsed("0.0.0.0:80").unwrap(), "0.0.0.0:80");
        for wrong in ["", "99999", "127.0.0.1", "example.org:80", ":80", "localhost"] {
            assert!(parsed(wrong).unwrap_err().starts_with("expected a port"), "{wrong}");
        }
    }
}
