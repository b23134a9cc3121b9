//! The server under the load of one step: a server that already runs, or a contender that is started
//! afresh for each step. Also reads the server's usage during the load.

use super::question::{CapacityError, Question};
use crate::{
    ask::entrant::Entrant,
    context::RaceContext,
    driving::{
        load_processes::load_processes,
        progress_events::{ProgressEvents, Window},
        readings::read_usage,
        warm::WarmUpObserver,
    },
    results::events::Events,
    site::start::{Addresses, STOP_WITHIN, Start, Started, start},
};
use regatta_fleet::{AgentRun, Fleet, FleetRun, Void};
use regatta_host::{Aside, Memory, Meter, ObservedProcesses, Spent, UsageWindow, spent_together};
use regatta_judge::Settler;
use regatta_load::{
    LoadObserver, LoadProcessConfig, Moment, Plan, Tally, Tls, WarmUpProgress, Watch,
    run_in_processes,
};
use regatta_record::{Asked, Happened, LoadAcross, LoadShape, Phase};
use regatta_script::Workload;
use std::{
    cell::RefCell,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::atomic::AtomicBool,
};

/// The server under test.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each search")]
pub enum CapacityTarget<'a> {
    /// A server that already runs. Every step opens new connections, but the server is not restarted.
    Address {
        /// The URL as given, for the record.
        url: String,
        /// The address it listens on.
        addr: SocketAddr,
        /// TLS settings; `None`: plain.
        tls: Option<Tls>,
        /// The workload sent to it.
        workload: Workload,
        /// The host named in requests, if the protocol has one.
        host: String,
        /// The path of a built-in workload, if not the workload's own.
        path: Option<String>,
        /// Its process. The CPU time and memory of this process and all of its descendants are read.
        pid: Option<u32>,
        /// The regatta binary, for load processes.
        binary: &'a Path,
    },
    /// A contender that is started afresh for every step: the first of `asked` that takes part.
    Contender {
        /// The contender as prepared for a race.
        asked: &'a Asked,
        /// The regatta binary, for the supervisor and for built-in contenders.
        binary: &'a Path,
    },
}

impl<'a> CapacityTarget<'a> {
    /// Returns the server's name in the record.
    pub(super) fn name(&self) -> String {
        match self {
            CapacityTarget::Address { url, .. } => url.clone(),
            CapacityTarget::Contender { asked, .. } => asked.baseline.clone(),
        }
    }

    /// Checks that it can be used at all.
    pub(super) fn prepare(
        &self,
        question: &Question,
        stop: &'a AtomicBool,
    ) -> Result<Ready<'a>, CapacityError> {
        match self {
            CapacityTarget::Address { addr, tls, workload, host, path, pid, binary, .. } => {
                let observed = pid.map(ObservedProcesses::tree);
                if let (Some(observed), Some(pid)) = (&observed, *pid) {
                    observed.usage().map_err(|error| CapacityError::Observe { pid, error })?;
                }
                let (addr, workload) = (*addr, workload.clone());
                let (tls, host, path) = (tls.clone(), host.clone(), path.clone());
                let server = Server::Runs { addr, tls, workload, host, path, observed };
                Ok(Ready { server, stop, how: load_processes(binary, 1), fleet: None })
            }
            CapacityTarget::Contender { asked, binary } => {
                let context = RaceContext::new(asked, binary, stop);
                let mut entrants = Entrant::of_race(asked)?;
                let entrant = entrants.swap_remove(0);
                // These loads set no `cores`: the CPUs of server and load follow from `asked` alone.
                let shape = LoadShape::closed(question.step, 1);
                let server = Server::Starts { context, entrant: Box::new(entrant), shape };
                Ok(Ready { server, stop, how: load_processes(binary, 1), fleet: None })
            }
        }
    }
}

/// A place that was checked and can be used.
pub(super) struct Ready<'a> {
    server: Server<'a>,
    pub stop: &'a AtomicBool,
    how: LoadProcessConfig,
    /// The agents that carry out the load, if it does not come from this machine.
    fleet: Option<RefCell<&'a mut Fleet>>,
}

enum Server<'a> {
    Runs {
        addr: SocketAddr,
        tls: Option<Tls>,
        workload: Workload,
        host: String,
        path: Option<String>,
        observed: Option<ObservedProcesses>,
    },
    Starts {
        context: RaceContext<'a>,
        entrant: Box<Entrant>,
        shape: LoadShape,
    },
}

/// The result of one load.
pub(super) struct LoadResult {
    pub loaded: Result<Tally, regatta_load::Error>,
    /// What each agent did, if the load came from agents.
    pub agents: Vec<AgentRun>,
    /// Deliveries between agents, if there are some.
    pub across: Option<LoadAcross>,
    /// The server's usage in the window.
    pub spent: Option<Spent>,
    /// The number of its CPUs.
    pub cpus: u32,
    /// Whether the load may have run on the server's CPUs.
    pub shares: bool,
    /// Proportional set size with the connections open, bytes.
    pub memory_bytes: Option<u64>,
    /// The lowest limit of open files among the server's processes.
    pub descriptors: Option<u64>,
    /// How the server ended, if it ended under load.
    pub died: Option<String>,
}

impl<'a> Ready<'a> {
    /// The same place, loaded by agents if there are some.
    pub fn loaded_by(self, fleet: Option<&'a mut Fleet>) -> Ready<'a> {
        Ready { fleet: fleet.map(RefCell::new), ..self }
    }

    /// The names of the agents.
    pub fn agents(&self) -> Vec<String> {
        self.fleet.as_ref().map(|fleet| fleet.borrow().names()).unwrap_or_default()
    }

    /// Returns the workload sent to the server.
    pub fn workload(&self) -> Workload {
        match &self.server {
            Server::Runs { workload, .. } => workload.clone(),
            Server::Starts { entrant, .. } => entrant.speaks.clone(),
        }
    }

    /// Returns the name of the protocol that the workload is sent over, if it is not its usual one.
    pub fn over(&self) -> Option<String> {
        Some(self.workload().version()?.protocol.to_owned())
    }

    /// Returns the limit of connections that the contender states, or that the agents have, and a phrase that
    /// describes it.
    pub fn stated_limit(&self) -> Option<(u32, String)> {
        if let Some(fleet) = &self.fleet {
            let most = fleet.borrow().most_connections();
            let limit = "the descriptor limits of the agents".into();
            return Some((u32::try_from(most).unwrap_or(u32::MAX), limit));
        }
        let Server::Starts { entrant, .. } = &self.server else { return None };
        let limit = entrant.contender.manifest.limits.connections?;
        Some((limit, format!("the limit stated by {}", entrant.name)))
    }

    /// Fills the server's address into the plan and runs it. Returns `None` if it was interrupted. A
    /// `settler` observes the server's warm-up.
    pub fn load(
        &self,
        plan: Plan,
        settler: Option<&mut Settler>,
        events: &mut Events<'_>,
    ) -> Result<Option<LoadResult>, CapacityError> {
        match &self.server {
            Server::Runs { addr, tls, host, path, observed, .. } => {
                let (tls, host, path) = (tls.clone(), host.clone(), path.clone());
                let plan = Plan { target: *addr, tls, host, path, ..plan };
                let cpus = observed.as_ref().and_then(ObservedProcesses::cpus).unwrap_or(1);
                let may_share = |o: &ObservedProcesses| o.may_run_on(&plan.cpus);
                let shares = self.fleet.is_none() && observed.as_ref().is_some_and(may_share);
                let observed = observed.iter().cloned().collect();
                let result = self.under(&plan, observed, settler, events)?;
                Ok(not_interrupted(LoadResult { cpus, shares, ..result }))
            }
            Server::Starts { context, entrant, shape } => {
                events.emit(Happened::PhaseStarted { phase: Phase::Starting });
                let here = context.here();
                let started = match start(here, entrant, *shape)? {
                    Start::Ready(started) => *started,
                    Start::Failed { because } => return Err(CapacityError::NotStarted(because)),
                    Start::Interrupted => return Ok(None),
                };
                let Started { mut roles, port, nodes, run: _run } = started;
                let addresses = Addresses::at(Ipv4Addr::LOCALHOST.into(), port, &nodes);
                let (target, nodes) =
                    (addresses.own, addresses.further(|target| target.to_string()));
                let path = entrant.contender.manifest.path.clone();
                let plan = Plan { target, nodes, host: target.to_string(), path, ..plan };
                let cpus = roles.cpus();
                let shared = |cpu: &u32| cpus.contains(cpu);
                let aside = Aside::of(&cpus, &plan.cpus);
                let mut result = self.under(&plan, roles.observed(), settler, events)?;
                drop(aside);
                result.cpus = cpus.len() as u32;
                result.shares = plan.cpus.is_empty() || plan.cpus.iter().any(shared);
                result.died = roles.ended()?.into_iter().next().map(|ended| ended.because);
                for stopped in roles.stop(STOP_WITHIN) {
                    stopped?;
                }
                Ok(not_interrupted(result))
            }
        }
    }

    fn under(
        &self,
        plan: &Plan,
        observed: Vec<ObservedProcesses>,
        settler: Option<&mut Settler>,
        events: &mut Events<'_>,
    ) -> Result<LoadResult, CapacityError> {
        let windows = observed.iter().cloned().map(UsageWindow::of).collect();
        let meter = Meter::of(observed.clone());
        let seeing = settler.map(|settler| WarmUpObserver::new(settler, meter));
        let mut read = Read { observed, windows, seeing, memory_bytes: None };
        let window = Window::default();
        let mut progress_events = ProgressEvents::new(events, &window);
        let mut observer = window.around(&mut read);
        let progress = &mut |progress: &_| progress_events.progress(progress);
        let watch = Watch { observer: &mut observer, progress, stop: self.stop };
        let loaded = self.carry_out(plan, watch);
        progress_events.ended();
        let descriptors = descriptor_limit(&read.observed);
        let spent = spent_together(read.windows.iter().map(UsageWindow::spent));
        let memory_bytes = read.memory_bytes;
        let (cpus, shares, died) = (0, false, None);
        let Loaded { loaded, agents, across } = loaded?;
        Ok(LoadResult {
            loaded,
            agents,
            across,
            spent,
            cpus,
            shares,
            memory_bytes,
            descriptors,
            died,
        })
    }

    /// Carries out the load, on agents if there are some. Their errors end the search, except those that a load
    /// of this machine may have too.
    fn carry_out(&self, plan: &Plan, watch: Watch<'_>) -> Result<Loaded, CapacityError> {
        let Some(fleet) = &self.fleet else {
            let Watch { observer, progress, stop } = watch;
            return Ok(Loaded::here(run_in_processes(plan, &self.how, observer, progress, stop)));
        };
        match fleet.borrow_mut().run(plan, watch).map_err(|void| *void) {
            Ok(FleetRun { whole, agents, across, .. }) => {
                Ok(Loaded { loaded: Ok(whole), agents, across })
            }
            Err(Void { error: regatta_fleet::Error::Load(error), .. }) => {
                Ok(Loaded::here(Err(error)))
            }
            Err(Void { error, .. }) => Err(CapacityError::Agents(error)),
        }
    }
}

/// The result of a load, what each agent did, and the deliveries between them.
struct Loaded {
    loaded: Result<Tally, regatta_load::Error>,
    agents: Vec<AgentRun>,
    across: Option<LoadAcross>,
}

impl Loaded {
    /// A load without results of agents.
    fn here(loaded: Result<Tally, regatta_load::Error>) -> Loaded {
        Loaded { loaded, agents: Vec::new(), across: None }
    }
}

fn not_interrupted(result: LoadResult) -> Option<LoadResult> {
    let interrupted = result.loaded.as_ref().is_ok_and(|tally| tally.interrupted);
    (!interrupted).then_some(result)
}

/// Returns the lowest soft limit of open files among the processes.
fn descriptor_limit(observed: &[ObservedProcesses]) -> Option<u64> {
    let limit = |pid: u32| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        line.split_whitespace().next()?.parse().ok()
    };
    observed.iter().flat_map(ObservedProcesses::pids).filter_map(limit).min()
}

/// Reads the server's usage around the window, and its memory after it.
struct Read<'a> {
    /// Empty: the server is not observed.
    observed: Vec<ObservedProcesses>,
    windows: Vec<UsageWindow>,
    /// Set if this load observes how the server warms up.
    seeing: Option<WarmUpObserver<'a>>,
    memory_bytes: Option<u64>,
}

impl LoadObserver for Read<'_> {
    fn at(&mut self, moment: Moment) {
        read_usage(&mut self.windows, moment);
        if moment == Moment::ConnectionsOpen {
            let is_observed = !self.observed.is_empty();
            self.memory_bytes = is_observed.then(|| Memory::of(&self.observed).proportional);
        }
    }

    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }
}
