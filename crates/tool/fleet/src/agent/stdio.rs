//! An agent whose leader is at the other end of stdin and stdout, e.g. over SSH.

use super::{
    from_leader::{FromLeader, Parts},
    outbox::Outbox,
    reports::Reports,
    site_thread::SiteThread,
    state::{Agent, Effect, Event},
};
use crate::{
    machine::{Build, cores, now_ns},
    message::{Answer, FromAgent, Hello, ToAgent},
    site::NewSite,
};
use regatta_load::{
    Ask, ChildProcesses, Heard, LoadProcessConfig, Plan, most_connections_of_process,
};
use regatta_record::Part;
use serde_json::Value;
use std::{
    io::{self, Write},
    process::{self, ExitCode},
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    thread,
    time::Duration,
};

/// Runs an agent on stdin and stdout, until the leader is gone or silent for its lease. `how` starts a
/// load process, `version` is the version of the program, and `new_site` makes what runs contenders, when they
/// are first asked for; `None`: it runs none, and refuses to.
pub fn agent(how: &LoadProcessConfig, version: &str, new_site: Option<NewSite>) -> ExitCode {
    let Build { version, sha256: build } = match Build::running(version) {
        Ok(build) => build,
        Err(error) => return failed(&format!("cannot read its own program: {error}")),
    };
    let hello =
        Hello { version, build, cores: cores(), connections: most_connections_of_process() as u64 };
    let (sender, happened) = mpsc::channel();
    let parts = Parts::default();
    let (outbox, handle) = match threads(&sender, &parts) {
        Ok(threads) => threads,
        Err(error) => return failed(&format!("cannot start its threads: {error}")),
    };
    let body = Answer::Hello(hello);
    outbox.send(FromAgent { seq: 0, body });
    let mut machine = Machine {
        how: how.clone(),
        children: None,
        generation: 0,
        reports: Arc::default(),
        new_site,
        site: None,
        sites: 0,
        sender,
        outbox,
    };
    let mut agent = Agent::new(now_ns());
    loop {
        let wait = Duration::from_nanos(agent.deadline_ns().saturating_sub(now_ns()));
        let (event, at_ns) = match happened.recv_timeout(wait) {
            Ok(Happened::OfLeader(event, at_ns)) => {
                let effects = agent.on(event, at_ns);
                machine.carry_out(&mut agent, effects);
                // The thread has ended if this was its last message.
                let _ = handle.try_send(());
                continue;
            }
            Ok(Happened::Answered { generation, seq, answer })
                if machine.is_of_site(generation) =>
            {
                (Event::OfSite { seq, answer }, now_ns())
            }
            Ok(Happened::Answered { .. }) => continue,
            Ok(Happened::OfProcess { generation, process, heard }) => {
                match machine.event(generation, process, heard) {
                    Some(event) => (event, now_ns()),
                    None => continue,
                }
            }
            Err(_) => {
                agent.receives(parts.load(Relaxed));
                (Event::Tick, now_ns())
            }
        };
        let effects = agent.on(event, at_ns);
        machine.carry_out(&mut agent, effects);
    }
}

/// Starts the threads that read stdin and write stdout. Returns the way to the leader, and what is to be sent after
/// each message of it.
fn threads(
    to: &mpsc::Sender<Happened>,
    parts: &Parts,
) -> io::Result<(Outbox, mpsc::SyncSender<()>)> {
    let (outbox, waiting) = Outbox::new();
    let (handle, handled) = mpsc::sync_channel(1);
    let from_leader = FromLeader::new(io::stdin(), parts.clone(), outbox.clone());
    let to = to.clone();
    let receive = move || {
        from_leader.run(|message, at_ns| to.send(of_leader(message, at_ns)).is_ok(), &handled);
    };
    thread::Builder::new().name("leader-in".into()).spawn(receive)?;
    thread::Builder::new().name("leader-out".into()).spawn(move || waiting.run(io::stdout()))?;
    Ok((outbox, handle))
}

fn failed(because: &str) -> ExitCode {
    complain(because);
    ExitCode::FAILURE
}

/// Writes to stderr, which the leader shows.
fn complain(because: &str) {
    let _ = writeln!(io::stderr(), "regatta agent: {because}");
}

/// What an agent waits for.
enum Happened {
    /// An event of the leader, and its time.
    OfLeader(Event, u64),
    /// Something came from a load process of the load with this number.
    OfProcess { generation: u64, process: usize, heard: Heard },
    /// The site with this number carried out a request.
    Answered { generation: u64, seq: u64, answer: Result<Value, String> },
}

/// What it means that a message of the leader came.
fn of_leader(message: io::Result<Option<ToAgent>>, at_ns: u64) -> Happened {
    let event = match message {
        Ok(Some(message)) => Event::Message(Box::new(message)),
        Ok(None) => Event::LeaderGone,
        Err(error) => {
            complain(&format!("received no valid message: {error}"));
            Event::LeaderGone
        }
    };
    Happened::OfLeader(event, at_ns)
}

/// The load processes of an agent, and the way to its leader.
struct Machine {
    how: LoadProcessConfig,
    children: Option<ChildProcesses>,
    /// The number of the current load.
    generation: u64,
    /// Its reports.
    reports: Arc<Reports>,
    new_site: Option<NewSite>,
    site: Option<SiteThread>,
    /// The number of sites so far.
    sites: u64,
    sender: mpsc::Sender<Happened>,
    outbox: Outbox,
}

impl Machine {
    /// The event of a load process; `None` if it belongs to an earlier load.
    fn event(&mut self, generation: u64, process: usize, heard: Heard) -> Option<Event> {
        if generation != self.generation {
            return None;
        }
        self.reports.taken();
        let children = self.children.as_mut()?;
        let number = process as u32;
        let how = match heard {
            Heard::Report(message) => {
                return Some(Event::Report { process: number, message: Box::new(message) });
            }
            Heard::Nonsense(error) => format!("sent no valid report: {error}"),
            Heard::Gone => children.ending(process),
            Heard::Failed(because) => because,
        };
        Some(Event::Ended { process: number, how })
    }

    fn carry_out(&mut self, agent: &mut Agent, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(message) => self.outbox.send(*message),
                Effect::Start { plan, parts } => {
                    let event = match self.start(&plan, &parts) {
                        Ok(pids) => Event::Started(pids),
                        Err(because) => Event::NotStarted(because),
                    };
                    let next = agent.on(event, now_ns());
                    self.carry_out(agent, next);
                }
                Effect::Order(order) => {
                    self.children.iter().for_each(|children| children.order(order));
                }
                Effect::Kill => {
                    // The threads that read from the processes end with them.
                    self.reports.end();
                    (self.children, self.site) = (None, None);
                }
                Effect::Site { seq, ask } => match self.site() {
                    Ok(site) => site.ask(seq, ask),
                    Err(because) => {
                        let event = Event::OfSite { seq, answer: Err(because) };
                        let next = agent.on(event, now_ns());
                        self.carry_out(agent, next);
                    }
                },
                Effect::Exit => process::exit(0),
            }
        }
    }

    /// Whether an answer is one of the current site.
    fn is_of_site(&self, generation: u64) -> bool {
        self.site.is_some() && generation == self.sites
    }

    /// The site, which is made when it is first needed.
    fn site(&mut self) -> Result<&SiteThread, String> {
        let new = self.new_site.ok_or("runs no contenders")?;
        if self.site.is_none() {
            self.sites += 1;
            let (generation, sender) = (self.sites, self.sender.clone());
            let answered = move |seq, answer| {
                // Nobody waits for it while the agent exits.
                let _ = sender.send(Happened::Answered { generation, seq, answer });
            };
            let started = SiteThread::start(new, answered);
            let failed = |error| format!("cannot start a thread for contenders: {error}");
            self.site = Some(started.map_err(failed)?);
        }
        Ok(self.site.as_ref().expect("it was made"))
    }

    fn start(&mut self, plan: &Plan, parts: &[Part]) -> Result<Vec<u32>, String> {
        self.generation += 1;
        let (generation, sender) = (self.generation, self.sender.clone());
        let asks = parts.iter().map(|part| Ask::new(plan, *part)).collect();
        self.reports = Arc::default();
        let (reports, outbox) = (self.reports.clone(), self.outbox.clone());
        let heard = move |process, heard| {
            reports.enter(&outbox)
                && sender.send(Happened::OfProcess { generation, process, heard }).is_ok()
        };
        let children = ChildProcesses::start(&self.how, asks, heard);
        let children = children.map_err(|error| error.to_string())?;
        self.reports.started();
        Ok(self.children.insert(children).pids())
    }
}
