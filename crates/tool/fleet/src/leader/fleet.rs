//! Connected agents, and loads over all of them.

use super::{
    across::{across, machines},
    division::{divide, most_connections},
    link::Machine,
    members::{Members, Settings},
    session::{Opened, Reports, Session},
};
use crate::{
    clock::{Fault, Region},
    error::Error,
    machine::{Build, now_ns},
    message::Request,
};
use regatta_load::{Division, Merged, Plan, Tally, Watch, run_by_crew};
use regatta_record::{AcrossLatencies, Drive, LoadAcross, Part};
use std::{num::NonZeroU32, sync::atomic::AtomicBool};

/// Shortest time between the decision to open the window and its opening.
const LEAST_LEAD_NS: u64 = 20_000_000;
/// Longest such time.
const MOST_LEAD_NS: u64 = 5_000_000_000;
/// The lead in round trips.
const LEAD_IN_TRIPS: u64 = 4;

/// The agents of this process. When it is dropped, they kill what they run, and exit.
pub struct Fleet {
    members: Members,
    /// Whether the agents may have load processes of an earlier load.
    has_run: bool,
}

/// The result of a load over agents.
#[derive(Debug)]
pub struct FleetRun {
    /// The result of the whole load.
    pub whole: Tally,
    /// What each agent did.
    pub agents: Vec<AgentRun>,
    /// Maximum time between the openings of the windows of two agents, in nanoseconds. `None`: no window
    /// with a time was opened.
    pub edges_within_ns: Option<u64>,
    /// Deliveries to members of a hub on another agent than the sender's, if there are some.
    pub across: Option<LoadAcross>,
}

/// Number of members of a hub on all agents whose connection was closed.
fn left(groups: &[Tally]) -> u64 {
    groups.iter().filter_map(|group| group.across.as_deref()).map(|across| across.seen.left).sum()
}

/// What an agent did in a load.
#[derive(Debug)]
pub struct AgentRun {
    /// Its name.
    pub name: String,
    /// Number of CPUs that it may use.
    pub cores: u32,
    /// Active connections.
    pub connections: u64,
    /// The part of each of its load processes.
    pub parts: Vec<Part>,
    /// Shortest round trip of a clock ping, in nanoseconds.
    pub rtt_ns: u64,
    /// Bound of the error of its clock inside the window, in nanoseconds.
    pub clock_bound_ns: u64,
    /// Maximum time between the ordered and the actual opening of its window, in nanoseconds, with the
    /// bound of its clock.
    pub edge_ns: Option<u64>,
    /// What it counted.
    pub tally: Tally,
}

/// Why a load over agents has no result, and what was reported until then.
#[derive(Debug, thiserror::Error)]
#[error("the load is void")]
pub struct Void {
    /// Why.
    #[source]
    pub error: Error,
    /// The last reports.
    pub agents: Vec<AgentSoFar>,
}

/// What an agent last reported of a load that has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSoFar {
    /// Its name.
    pub name: String,
    /// Number of CPUs that it may use.
    pub cores: u32,
    /// Number of its load threads.
    pub threads: u32,
    /// Complete replies, correct or wrong, since the load began.
    pub replies: u64,
    /// Errors of all kinds.
    pub errors: u64,
}

impl Fleet {
    /// Connects to an agent on each machine, which must be this build.
    ///
    /// # Errors
    /// [`Error::Interrupted`] soon after `stop` is set. If one cannot be reached in time, or is another build. The others exit then.
    pub fn connect(
        machines: &[Machine],
        build: &Build,
        settings: Settings,
        stop: &AtomicBool,
    ) -> Result<Fleet, Error> {
        let members = Members::connect(machines, build, settings, stop)?;
        Ok(Fleet { members, has_run: false })
    }

    /// The names of the agents.
    pub fn names(&self) -> Vec<String> {
        self.members.all.iter().map(|member| member.name.clone()).collect()
    }

    /// Maximum number of connections of a load, by the limits of descriptors of the agents.
    pub fn most_connections(&self) -> u64 {
        most_connections(&self.members.capacities())
    }

    /// Carries out a plan on all agents: each runs as many threads as it has cores. If the order to open
    /// the window comes late at an agent, the load is repeated once with a longer lead. The threads and
    /// CPUs of the plan have no meaning.
    ///
    /// # Errors
    /// If an agent fails, is silent for too long, or has a clock that cannot be compared; if the order comes
    /// late twice; and the errors of [`run_by_crew`]. After [`regatta_load::Error::NotOpened`] the agents can
    /// carry out another load; after other errors they are of no further use.
    pub fn run(&mut self, plan: &Plan, watch: Watch<'_>) -> Result<FleetRun, Box<Void>> {
        let plan = &Plan { cpus: Vec::new(), ..plan.needed() };
        let mut so_far = Vec::new();
        let run = self.run_or_fail(plan, watch, &mut so_far);
        run.map_err(|error| Box::new(Void { error, agents: so_far }))
    }

    fn run_or_fail(
        &mut self,
        plan: &Plan,
        watch: Watch<'_>,
        so_far: &mut Vec<AgentSoFar>,
    ) -> Result<FleetRun, Error> {
        let divided = divide(plan, &self.members.capacities())?;
        let threads = divided.iter().flatten().map(|part| part.own as usize).sum();
        let plan = &Plan { threads, ..plan.clone() };
        plan.check()?;
        let Watch { observer, progress, stop } = watch;
        // The processes of an earlier load have kept their connections open.
        if std::mem::replace(&mut self.has_run, true) {
            self.members.ask_all(&Request::Abort)?;
        }
        let (mut lead_ns, mut is_repeated) = (LEAST_LEAD_NS, false);
        loop {
            self.members.ping_all(true)?;
            let clocks = self.members.regions()?;
            lead_ns = self.lead_ns(lead_ns);
            let plan = &self.with_machines(plan, &divided, &clocks)?;
            self.prepare(plan, &divided);
            let watch = Watch { observer: &mut *observer, progress: &mut *progress, stop };
            let (merged, reports) = self.attempt(plan, &divided, (&clocks, lead_ns), watch);
            *so_far = self.so_far(&divided, &reports);
            match (merged, reports.late_by_ns) {
                (Ok(merged), _) => return self.finish(plan, divided, merged, reports),
                (Err(_), Some(late_by_ns)) if !is_repeated => {
                    is_repeated = true;
                    lead_ns = lead_ns.saturating_add(late_by_ns).saturating_mul(2);
                    self.members.ask_all(&Request::Abort)?;
                }
                (Err(error), _) => return Err(error.into()),
            }
        }
    }

    /// The plan with its machines, if its connections must know of each other.
    fn with_machines(
        &self,
        plan: &Plan,
        divided: &[Vec<Part>],
        clocks: &[Region],
    ) -> Result<Plan, Error> {
        if plan.workload.shared_words() == 0 {
            return Ok(plan.clone());
        }
        let machines = machines(plan, divided, clocks, now_ns());
        let machines = machines.map_err(|fault| self.members.all[0].not_compared(fault))?;
        let plan = Plan { machines: Some(machines), ..plan.clone() };
        plan.check()?;
        Ok(plan)
    }

    /// The time between the decision to open the window and its opening: at least `least_ns`.
    fn lead_ns(&self, least_ns: u64) -> u64 {
        let agents = 0..self.members.all.len();
        let worst_ns = agents.map(|agent| self.members.round_trips_ns(agent).1).max();
        (LEAD_IN_TRIPS * worst_ns.unwrap_or(0)).max(least_ns).min(MOST_LEAD_NS)
    }

    /// Has each agent start its load processes. The leader of the load hears of their reports.
    fn prepare(&mut self, plan: &Plan, divided: &[Vec<Part>]) {
        for (agent, parts) in divided.iter().enumerate() {
            let (plan, parts) = (Box::new(plan.clone()), parts.clone());
            self.members.send(agent, Request::Prepare { plan, parts });
        }
    }

    fn attempt(
        &mut self,
        plan: &Plan,
        divided: &[Vec<Part>],
        (clocks, lead_ns): (&[Region], u64),
        watch: Watch<'_>,
    ) -> (Result<Merged, regatta_load::Error>, Reports) {
        let of_agent = |(agent, parts): (usize, &Vec<Part>)| vec![agent; parts.len()];
        let groups: Vec<usize> = divided.iter().enumerate().flat_map(of_agent).collect();
        let division = Division { parts: divided.concat(), groups };
        let mut session = Session::new(&mut self.members, &division.groups, clocks, lead_ns);
        let merged = run_by_crew(plan, &division, &mut session, watch);
        (merged, session.reports())
    }

    /// Compares the clocks once more, and puts the results together.
    fn finish(
        &mut self,
        plan: &Plan,
        divided: Vec<Vec<Part>>,
        merged: Merged,
        reports: Reports,
    ) -> Result<FleetRun, Error> {
        let ended_ns = now_ns();
        self.members.ping_all(false)?;
        let clocks = self.members.regions()?;
        let Merged { whole, groups } = merged;
        let opened = reports.opened.filter(|_| whole.window_ns > 0);
        let received = groups.iter().map(|group| group.across.as_deref());
        let received: Vec<&[AcrossLatencies]> =
            received.map(|one| one.map_or(&[][..], |one| &one.latencies)).collect();
        let across = match (&plan.machines, &opened) {
            (Some(machines), Some(opened)) => {
                let times = [opened.at_ns, ended_ns];
                let names: Vec<String> =
                    self.members.all.iter().map(|member| member.name.clone()).collect();
                across(machines, &names, &received, &clocks, times)
                    .map_err(|fault| self.members.all[0].not_compared(fault))?
                    .map(|all| LoadAcross { unchecked: left(&groups), ..all })
            }
            _ => None,
        };
        let mut agents = Vec::new();
        for (number, (parts, tally)) in divided.into_iter().zip(groups).enumerate() {
            let member = &self.members.all[number];
            let clock = &clocks[number];
            let compared = |fault| member.not_compared(fault);
            let edge = opened.as_ref().map(|opened| edge(opened, number, clock)).transpose();
            let edge_ns = edge.map_err(compared)?;
            let opened_ns = opened.as_ref().map_or_else(now_ns, |opened| opened.at_ns);
            let clock_bound_ns = bound_ns(clock, opened_ns, tally.window_ns).map_err(compared)?;
            let share = |n: usize| parts.iter().map(|part| part.of_process(n as u64)).sum();
            agents.push(AgentRun {
                name: member.name.clone(),
                cores: member.hello.cores,
                connections: share(plan.connections),
                rtt_ns: self.members.round_trips_ns(number).0,
                clock_bound_ns,
                edge_ns,
                tally,
                parts,
            });
        }
        let mut edges: Vec<u64> = agents.iter().filter_map(|agent| agent.edge_ns).collect();
        edges.sort_unstable();
        let edges_within_ns = opened.map(|_| edges.iter().rev().take(2).sum());
        Ok(FleetRun { whole, agents, edges_within_ns, across })
    }

    fn so_far(&self, divided: &[Vec<Part>], reports: &Reports) -> Vec<AgentSoFar> {
        let of = |(number, parts): (usize, &Vec<Part>)| {
            let own = || reports.progress.iter().filter(|(agent, _)| *agent == number);
            AgentSoFar {
                name: self.members.all[number].name.clone(),
                cores: self.members.all[number].hello.cores,
                threads: parts.iter().map(|part| part.own).sum(),
                replies: own().map(|(_, progress)| progress.replies).sum(),
                errors: own().map(|(_, progress)| progress.errors).sum(),
            }
        };
        divided.iter().enumerate().map(of).collect()
    }
}

impl AgentRun {
    /// How many of `n` things are the agent's, if all threads of the load take turns, e.g. of the requests
    /// per second.
    pub fn share(&self, n: u64) -> u64 {
        self.parts.iter().map(|part| part.of_process(n)).sum()
    }

    /// The part of a plan that the agent carried out, on its CPUs.
    pub fn plan(&self, whole: &Plan) -> Plan {
        let rate = |rate: NonZeroU32| {
            let share = self.share(rate.get().into());
            NonZeroU32::new(share as u32).unwrap_or(NonZeroU32::MIN)
        };
        let mut plan = Plan {
            connections: self.connections as usize,
            idle: self.share(whole.idle as u64) as usize,
            threads: self.tally.threads,
            cpus: (0..self.cores).collect(),
            ..whole.clone()
        };
        if let Drive::Open { rate: of_all, .. } = &mut plan.drive {
            *of_all = rate(*of_all);
        }
        plan.stages.iter_mut().for_each(|stage| stage.rate = rate(stage.rate));
        plan
    }
}

/// How far from the ordered time an agent's window opened at most, in nanoseconds.
fn edge(opened: &Opened, agent: usize, clock: &Region) -> Result<u64, Fault> {
    let moment = clock.to_leader(opened.of_agents_ns[agent])?;
    Ok(moment.at_ns.abs_diff(opened.at_ns).saturating_add(moment.bound_ns))
}

/// The largest bound of an agent's clock in a window.
fn bound_ns(clock: &Region, opened_ns: u64, window_ns: u64) -> Result<u64, Fault> {
    let opens = clock.offset_at(opened_ns)?;
    let closes = clock.offset_at(opened_ns.saturating_add(window_ns))?;
    Ok(opens.bound_ns.max(closes.bound_ns))
}
