//! The connected agents: requests to all of them, their answers, their clocks, and whether they are alive.

use super::{
    division::Capacity,
    link::{Came, Heard, Link, Machine},
};
use crate::{
    clock::{Fault, Ping, Region},
    error::Error,
    machine::{Build, now_ns},
    message::{Answer, FromAgent, Hello, LEASE, Request, VERSION},
};
use regatta_record::FORMAT;
use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

/// Pings of a set.
const PINGS: usize = 64;
/// No further ping of a set is sent after this time.
const PINGED_WITHIN: Duration = Duration::from_secs(2);
/// Maximum time for an agent to receive a load, which may include large files, and to start its processes.
const PREPARES_WITHIN: Duration = Duration::from_secs(120);
/// Interval between two renewals of the lease.
const RENEWED_EVERY: Duration = Duration::from_secs(1);

/// The times of a leader.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long an agent continues without the leader.
    pub lease: Duration,
    /// Maximum time until an agent introduces itself. It includes the connection by SSH.
    pub starts_within: Duration,
    /// Maximum time for any later answer. An agent that takes longer counts as lost.
    pub answers_within: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            lease: LEASE,
            starts_within: Duration::from_secs(10),
            answers_within: Duration::from_secs(3),
        }
    }
}

/// A connected agent.
pub(super) struct Member {
    pub name: String,
    pub hello: Hello,
    link: Link,
    /// Clock pings since the load began.
    pings: Vec<Ping>,
    /// When the oldest request without any answer was sent.
    waits_since: Option<Instant>,
    /// Whether it is starting load processes, which includes receiving the whole load.
    prepares: bool,
}

/// The connected agents.
pub(super) struct Members {
    pub all: Vec<Member>,
    heard: mpsc::Receiver<Heard>,
    settings: Settings,
    renewed: Instant,
}

/// What an agent sent, or how it failed.
pub(super) enum Got {
    Answer(Answer),
    /// What happened, as the rest of a sentence.
    Failed(String),
}

impl Members {
    /// Starts the command of each machine, and reserves the agents.
    pub fn connect(
        machines: &[Machine],
        build: &Build,
        settings: Settings,
    ) -> Result<Members, Error> {
        // Sessions of one agent differ: they are started by different processes, or at different times.
        let session = now_ns() ^ u64::from(std::process::id()).rotate_left(48);
        let (sender, heard) = mpsc::channel();
        let mut links = Vec::new();
        for (number, machine) in machines.iter().enumerate() {
            let link = Link::start(machine, number, session, sender.clone());
            links.push(link.map_err(|error| {
                let program = machine.program.to_string_lossy();
                fail(&machine.name, format!("cannot be reached: {program} does not start: {error}"))
            })?);
        }
        let mut hellos: Vec<Option<Hello>> = vec![None; machines.len()];
        let deadline = Instant::now() + settings.starts_within;
        while hellos.iter().any(Option::is_none) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok((number, _, came)) = heard.recv_timeout(left) else {
                let absent = hellos.iter().position(Option::is_none).unwrap_or_default();
                let limit = settings.starts_within;
                let because = format!("cannot be reached: no answer within {limit:?}");
                return Err(fail(&machines[absent].name, because));
            };
            let name = &machines[number].name;
            hellos[number] = Some(match came {
                Came::Message(message) => hello(name, *message, build)?,
                came => return Err(fail(name, not_there(&mut links[number], came))),
            });
        }
        let all = machines.iter().zip(links).zip(hellos.into_iter().flatten());
        let member = |((machine, link), hello): ((&Machine, Link), Hello)| Member {
            name: machine.name.clone(),
            hello,
            link,
            pings: Vec::new(),
            waits_since: None,
            prepares: false,
        };
        let all = all.map(member).collect();
        let mut members = Members { all, heard, settings, renewed: Instant::now() };
        let lease_ms = settings.lease.as_millis() as u64;
        members.ask_all(|| Request::Reserve { lease_ms }, |answer| *answer == Answer::Reserved)?;
        Ok(members)
    }

    pub fn capacities(&self) -> Vec<Capacity> {
        let of = |member: &Member| Capacity {
            cores: member.hello.cores,
            connections: member.hello.connections,
        };
        self.all.iter().map(of).collect()
    }

    /// Sends a request to an agent.
    pub fn send(&mut self, number: usize, body: Request) {
        let member = &mut self.all[number];
        member.waits_since.get_or_insert_with(Instant::now);
        member.prepares |= matches!(body, Request::Prepare { .. });
        member.link.send(body);
    }

    /// Waits for the next message of any agent, and meanwhile renews the leases. `None` if nothing came.
    pub fn next(&mut self, within: Duration) -> Option<(usize, Got)> {
        if self.renewed.elapsed() >= RENEWED_EVERY {
            self.renewed = Instant::now();
            (0..self.all.len()).for_each(|number| self.send(number, Request::Renew));
        }
        match self.heard.recv_timeout(within) {
            Ok((number, at_ns, came)) => Some((number, self.got(number, at_ns, came))),
            // What has come was read before, so an agent is not blamed for a pause of the leader.
            Err(_) => self.silent(),
        }
    }

    fn got(&mut self, number: usize, at_ns: u64, came: Came) -> Got {
        let member = &mut self.all[number];
        member.waits_since = None;
        match came {
            Came::Message(message) => {
                member.prepares &= !matches!(message.body, Answer::Prepared { .. });
                if let Answer::Clock { t0_ns, t1_ns, t2_ns } = message.body {
                    member.pings.push(Ping { t0_ns, t1_ns, t2_ns, t3_ns: at_ns });
                }
                Got::Answer(message.body)
            }
            Came::Nonsense(error) => Got::Failed(format!("sent no valid message: {error}")),
            Came::End => Got::Failed(format!("is gone: {}", member.link.ending())),
        }
    }

    fn silent(&mut self) -> Option<(usize, Got)> {
        let limit = |member: &Member| match member.prepares {
            true => PREPARES_WITHIN,
            false => self.settings.answers_within,
        };
        let is_silent = |member: &Member| {
            member.waits_since.is_some_and(|since| since.elapsed() > limit(member))
        };
        let number = self.all.iter().position(is_silent)?;
        let limit = limit(&self.all[number]);
        Some((number, Got::Failed(format!("is gone: it has not answered for {limit:?}"))))
    }

    /// Sends a request to all agents, and waits until each has sent the expected answer. Reports of load
    /// processes are ignored meanwhile.
    pub fn ask_all(
        &mut self,
        request: impl Fn() -> Request,
        is_expected: impl Fn(&Answer) -> bool,
    ) -> Result<(), Error> {
        (0..self.all.len()).for_each(|number| self.send(number, request()));
        let mut waits = vec![true; self.all.len()];
        while waits.contains(&true) {
            match self.next(Duration::from_millis(100)) {
                Some((number, Got::Answer(answer))) if is_expected(&answer) => {
                    waits[number] = false;
                }
                Some((number, Got::Answer(Answer::Refused { because }))) => {
                    return Err(fail(&self.all[number].name, format!("refused: {because}")));
                }
                Some((number, Got::Failed(because))) => {
                    return Err(fail(&self.all[number].name, because));
                }
                Some((_, Got::Answer(_))) | None => {}
            }
        }
        Ok(())
    }

    /// Sends a set of clock pings to all agents, one after the other. `is_first` forgets earlier sets.
    pub fn ping_all(&mut self, is_first: bool) -> Result<(), Error> {
        if is_first {
            self.all.iter_mut().for_each(|member| member.pings.clear());
        }
        let began = Instant::now();
        for sent in 0..PINGS {
            if sent > 0 && began.elapsed() > PINGED_WITHIN {
                break;
            }
            let is_clock = |answer: &Answer| matches!(answer, Answer::Clock { .. });
            self.ask_all(|| Request::Clock { t0_ns: 0 }, is_clock)?;
        }
        Ok(())
    }

    /// What the pings of each agent say about its clock.
    pub fn regions(&self) -> Result<Vec<Region>, Error> {
        let region = |member: &Member| {
            Region::of(&member.pings).map_err(|fault: Fault| {
                fail(&member.name, format!("has a clock that cannot be compared: {fault}"))
            })
        };
        self.all.iter().map(region).collect()
    }

    /// The shortest and the longest round trip of the pings of an agent, in nanoseconds.
    pub fn round_trips_ns(&self, number: usize) -> (u64, u64) {
        let trips = self.all[number].pings.iter().filter_map(Ping::round_trip_ns);
        let trips: Vec<u64> = trips.collect();
        (trips.iter().copied().min().unwrap_or(0), trips.iter().copied().max().unwrap_or(0))
    }
}

pub(super) fn fail(name: &str, because: String) -> Error {
    Error::Agent { name: name.to_owned(), because }
}

/// Why an agent that has not introduced itself is not there, as the rest of a sentence.
fn not_there(link: &mut Link, came: Came) -> String {
    match came {
        Came::Nonsense(error) => format!(
            "did not introduce itself: {error}; a login there must print nothing in a non-interactive shell"
        ),
        Came::End | Came::Message(_) => {
            let ending = link.ending();
            // The status of a shell that does not find the command (POSIX, XCU 2.8.2).
            let hint = match ending.contains("exit status: 127") {
                true => {
                    "; install regatta there, in the PATH of a non-interactive shell, or use --deploy"
                }
                false => "",
            };
            format!("cannot be reached: {ending}{hint}")
        }
    }
}

/// Checks how an agent introduces itself.
fn hello(name: &str, message: FromAgent, ours: &Build) -> Result<Hello, Error> {
    let FromAgent { fleet, body, .. } = message;
    let Answer::Hello(hello) = body else {
        return Err(fail(name, format!("did not introduce itself: it sent {body:?}")));
    };
    if fleet != VERSION || hello.format != FORMAT || hello.build != ours.sha256 {
        let words = |version: &str, build: &str| {
            format!("{version} with SHA-256 {}", build.get(..12).unwrap_or(build))
        };
        let theirs = words(&hello.version, &hello.build);
        let ours = words(&ours.version, &ours.sha256);
        return Err(Error::OtherBuild { name: name.to_owned(), theirs, ours });
    }
    Ok(hello)
}
