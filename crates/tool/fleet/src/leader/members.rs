//! The connected agents: requests to all of them, their answers, their clocks, and whether they are alive.

use super::{
    division::Capacity,
    link::{Came, ENDS_WITHIN, Heard, Link, Machine},
};
use crate::{
    clock::{Fault, Ping, Region},
    error::Error,
    machine::Build,
    message::{Answer, FromAgent, Hello, LEASE, Request},
};
use regatta_record::visible;
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::{Duration, Instant},
};

/// Pings of a set.
const PINGS: usize = 64;
/// No further pings of the sets of all agents are sent after this time, but one to each.
const PINGED_WITHIN: Duration = Duration::from_secs(4);
/// Maximum time for an agent to receive a load, which may include large files, and to start its processes.
const PREPARES_WITHIN: Duration = Duration::from_secs(120);
/// Maximum time for an agent to answer another request, while it answers renewals. Longer than the lease: a relay that
/// cannot reach its broker for so long says so first.
const ANSWERED_WITHIN: Duration = Duration::from_secs(12);
/// Interval between two renewals of the lease.
const RENEWED_EVERY: Duration = Duration::from_millis(500);
/// Shortest interval between two looks for lost agents.
const LOOKED_EVERY: Duration = Duration::from_millis(10);
/// An agent is lost if it is overdue at so many looks in a row. After a pause of the leader itself (SIGSTOP, a
/// suspended machine) all agents are overdue at first, but what they have sent is read between the looks.
const LOOKS: u32 = 10;
/// Most messages that are received and not yet looked at. Then agents wait, so that one that sends without end
/// neither fills the memory nor keeps what others have sent from being read for long.
const MOST_WAITING: usize = 1024;
/// Most CPUs of an agent.
const MOST_CORES: u32 = 4096;

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
            // With the time until the next renewal, and that of the looks, a loss is reported within 3 s.
            // A machine that is only busy answers sooner: the agent and `ssh` use no CPU while they wait, so a fair
            // scheduler runs them within tens of milliseconds, also beside hundreds of busy threads. On a bad
            // network, a packet can be lost three times in a row: TCP repeats it after 0.2, 0.4 and 0.8 s.
            answers_within: Duration::from_secs(2),
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
    /// At how many looks in a row an answer was overdue.
    overdue: u32,
}

impl Member {
    /// The error for its clock.
    pub fn not_compared(&self, fault: Fault) -> Error {
        fail(&self.name, format!("has a clock that cannot be compared: {fault}"))
    }
}

/// The connected agents.
pub(super) struct Members {
    pub all: Vec<Member>,
    heard: mpsc::Receiver<Heard>,
    settings: Settings,
    renewed: Instant,
    looked: Instant,
}

impl Drop for Members {
    fn drop(&mut self) {
        // All of them end at the same time.
        let killed_at = Instant::now() + ENDS_WITHIN;
        self.all.iter_mut().for_each(|member| member.link.close(killed_at));
    }
}

/// What an agent sent, or how it failed.
pub(super) enum Got {
    /// The number of the request that is answered, 0 for a report, and the answer or report.
    Answer(u64, Answer),
    /// What happened, as the rest of a sentence.
    Failed(String),
}

impl Members {
    /// Starts the command of each machine, and sets the lease of the agents, unless `stop` is set meanwhile.
    pub fn connect(
        machines: &[Machine],
        build: &Build,
        settings: Settings,
        stop: &AtomicBool,
    ) -> Result<Members, Error> {
        let (sender, heard) = mpsc::sync_channel(MOST_WAITING);
        let mut links = Vec::new();
        for (number, machine) in machines.iter().enumerate() {
            let link = Link::start(machine, number, sender.clone());
            links.push(link.map_err(|error| {
                let program = machine.program.to_string_lossy();
                fail(&machine.name, format!("cannot be reached: {program} does not start: {error}"))
            })?);
        }
        let limit = settings.starts_within;
        let hellos = introductions((machines, build), &mut links, &heard, limit, stop);
        let hellos = hellos.inspect_err(|_| {
            // None of them has started anything.
            links.iter_mut().for_each(|link| link.close(Instant::now()));
        })?;
        let all = machines.iter().zip(links).zip(hellos);
        let member = |((machine, link), hello): ((&Machine, Link), Hello)| Member {
            name: machine.name.clone(),
            hello,
            link,
            pings: Vec::new(),
            waits_since: None,
            prepares: false,
            overdue: 0,
        };
        let (all, now) = (all.map(member).collect(), Instant::now());
        let mut members = Members { all, heard, settings, renewed: now, looked: now };
        members.ask_all(&Request::Lease { ms: settings.lease.as_millis() as u64 })?;
        Ok(members)
    }

    pub fn capacities(&self) -> Vec<Capacity> {
        let of = |member: &Member| Capacity {
            cores: member.hello.cores,
            connections: member.hello.connections,
        };
        self.all.iter().map(of).collect()
    }

    /// Sends a request to an agent, and returns its number.
    pub fn send(&mut self, number: usize, body: Request) -> u64 {
        let member = &mut self.all[number];
        member.waits_since.get_or_insert_with(Instant::now);
        member.prepares |= matches!(body, Request::Prepare { .. });
        member.link.send(body)
    }

    /// Waits for the next message of any agent, and meanwhile renews the leases. `None` if nothing came.
    pub fn next(&mut self, within: Duration) -> Option<(usize, Got)> {
        if self.renewed.elapsed() >= RENEWED_EVERY {
            self.renewed = Instant::now();
            for number in 0..self.all.len() {
                self.send(number, Request::Renew);
            }
        }
        if let Some(lost) = self.look() {
            return Some(lost);
        }
        let (number, at_ns, came) = self.heard.recv_timeout(within).ok()?;
        Some((number, self.got(number, at_ns, came)))
    }

    fn got(&mut self, number: usize, at_ns: u64, came: Came) -> Got {
        let member = &mut self.all[number];
        (member.waits_since, member.overdue) = (None, 0);
        match came {
            Came::Message(message) => {
                member.prepares &= !matches!(message.body, Answer::Prepared { .. });
                if let Answer::Clock { t1_ns, t2_ns } = message.body {
                    let Some(t0_ns) = member.link.pinged_at_ns(message.seq) else {
                        return Got::Failed("answered a clock ping that was not sent".into());
                    };
                    member.pings.push(Ping { t0_ns, t1_ns, t2_ns, t3_ns: at_ns });
                }
                Got::Answer(message.seq, message.body)
            }
            Came::Nonsense(error) => Got::Failed(format!("sent no valid message: {error}")),
            Came::End => Got::Failed(format!("is gone: {}", member.link.ending())),
        }
    }

    /// Looks for an agent that is lost, if it is time for that.
    fn look(&mut self) -> Option<(usize, Got)> {
        if self.looked.elapsed() < LOOKED_EVERY {
            return None;
        }
        self.looked = Instant::now();
        let answers_within = self.settings.answers_within;
        for (number, member) in self.all.iter_mut().enumerate() {
            let limit = if member.prepares { PREPARES_WITHIN } else { answers_within };
            let is_overdue = member.waits_since.is_some_and(|since| since.elapsed() > limit);
            member.overdue = if is_overdue { member.overdue + 1 } else { 0 };
            if member.overdue == LOOKS {
                // Its command does not end by itself.
                member.link.close(Instant::now());
                let because = format!("is gone: it has not answered for {limit:?}");
                return Some((number, Got::Failed(because)));
            }
        }
        None
    }

    /// Whether an answer takes so long that it may soon be overdue.
    pub fn is_late(&self) -> bool {
        let limit = self.settings.answers_within / 2;
        let mut waits = self.all.iter().filter_map(|member| member.waits_since);
        waits.any(|since| since.elapsed() > limit)
    }

    /// As [`Members::ask`], of all agents.
    pub fn ask_all(&mut self, request: &Request) -> Result<(), Error> {
        self.ask(0..self.all.len(), request)
    }

    /// Sends a request to some agents, and waits until each has carried it out. Reports of load processes, and
    /// answers to earlier requests, are ignored meanwhile.
    fn ask(&mut self, of: Range<usize>, request: &Request) -> Result<(), Error> {
        let asked = of.map(|number| (number, self.send(number, request.clone())));
        let mut waits: BTreeMap<usize, u64> = asked.collect();
        let deadline = Instant::now() + ANSWERED_WITHIN;
        while let Some(first) = waits.keys().next() {
            if Instant::now() > deadline {
                let because = "is alive, but does not answer a request".to_owned();
                return Err(fail(&self.all[*first].name, because));
            }
            let Some((number, got)) = self.next(LOOKED_EVERY) else { continue };
            let because = match got {
                Got::Answer(seq, _) if waits.get(&number) != Some(&seq) => continue,
                Got::Answer(_, answer) if request.is_answered_by(&answer) => {
                    waits.remove(&number);
                    continue;
                }
                Got::Answer(_, Answer::Refused { because }) => format!("refused: {because}"),
                Got::Answer(..) => "answered a request with something else".to_owned(),
                Got::Failed(because) => because,
            };
            return Err(fail(&self.all[number].name, because));
        }
        Ok(())
    }

    /// Sends a set of clock pings to each agent, and to one agent after the other, so that the messages of one do not
    /// wait for a CPU or a wire that those of another use. `is_first` forgets earlier sets.
    pub fn ping_all(&mut self, is_first: bool) -> Result<(), Error> {
        let share = PINGED_WITHIN / self.all.len().max(1) as u32;
        for number in 0..self.all.len() {
            if is_first {
                self.all[number].pings.clear();
            }
            let began = Instant::now();
            for sent in 0..PINGS {
                if sent > 0 && began.elapsed() > share {
                    break;
                }
                self.ask(number..number + 1, &Request::Clock)?;
            }
        }
        Ok(())
    }

    /// What the pings of each agent say about its clock.
    pub fn regions(&self) -> Result<Vec<Region>, Error> {
        let of =
            |member: &Member| Region::of(&member.pings).map_err(|fault| member.not_compared(fault));
        self.all.iter().map(of).collect()
    }

    /// The shortest and the longest round trip of the pings of an agent, in nanoseconds.
    pub fn round_trips_ns(&self, number: usize) -> (u64, u64) {
        let trips = self.all[number].pings.iter().filter_map(Ping::round_trip_ns);
        let trips: Vec<u64> = trips.collect();
        (trips.iter().copied().min().unwrap_or(0), trips.iter().copied().max().unwrap_or(0))
    }
}

pub(super) fn fail(name: &str, because: String) -> Error {
    Error::Agent { name: name.to_owned(), because: visible(&because) }
}

/// Waits until each agent has introduced itself.
fn introductions(
    (machines, build): (&[Machine], &Build),
    links: &mut [Link],
    heard: &mpsc::Receiver<Heard>,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Hello>, Error> {
    let began = Instant::now();
    let mut hellos: Vec<Option<Hello>> = vec![None; machines.len()];
    while let Some(absent) = hellos.iter().position(Option::is_none) {
        if stop.load(Relaxed) {
            return Err(Error::Interrupted);
        }
        if began.elapsed() > limit {
            let because = format!("cannot be reached: no answer within {limit:?}");
            return Err(fail(&machines[absent].name, because));
        }
        let Ok((number, _, came)) = heard.recv_timeout(LOOKED_EVERY) else { continue };
        let name = &machines[number].name;
        if hellos[number].is_some() && matches!(came, Came::Message(_)) {
            return Err(fail(name, "sent a message without a request".into()));
        }
        hellos[number] = Some(match came {
            Came::Message(message) => hello(name, *message, build)?,
            came => return Err(fail(name, not_there(&mut links[number], came))),
        });
    }
    Ok(hellos.into_iter().flatten().collect())
}

/// Why an agent that has not introduced itself is not there, as the rest of a sentence.
fn not_there(link: &mut Link, came: Came) -> String {
    match came {
        Came::Nonsense(error) => format!(
            "did not introduce itself: {error}; a login there must print nothing in a non-interactive shell, and regatta \
             there must be the same build"
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
    let Answer::Hello(hello) = message.body else {
        return Err(fail(name, format!("did not introduce itself: it sent {:?}", message.body)));
    };
    if hello.build != ours.sha256 {
        let words = |version: &str, build: &str| {
            visible(&format!("{version} with SHA-256 {}", build.get(..12).unwrap_or(build)))
        };
        let theirs = words(&hello.version, &hello.build);
        let ours = words(&ours.version, &ours.sha256);
        return Err(Error::OtherBuild { name: name.to_owned(), theirs, ours });
    }
    if !(1..=MOST_CORES).contains(&hello.cores) {
        let because = format!("has {} CPUs: expected 1 to {MOST_CORES}", hello.cores);
        return Err(fail(name, because));
    }
    Ok(hello)
}
