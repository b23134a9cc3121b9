//! A contender that runs, by roles: the server, and what stands behind it. Each process has a
//! supervisor and a control group of its own, each role its CPUs and its check of readiness.

use crate::{
    ready::{NotReady, Ready},
    running::{Running, StartError, SupervisorError},
    status::Status,
    stop_report::{StopReport, background, last_words},
    usage::Observed,
    wire::Launch,
};
use regatta_record::RoleUsage;
use std::{collections::BTreeSet, path::Path, time::Duration};

/// How to start one role.
#[derive(Clone, Debug)]
pub struct RoleLaunch {
    /// Its name: [`RoleUsage::SERVER`], or that of a kind of backend.
    pub name: String,
    /// What shows that a process of it is ready.
    pub ready: Ready,
    /// Its processes, alike but for their ports.
    pub launches: Vec<Launch>,
}

/// Why a contender did not come up.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// One of its processes was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// One of its processes did not become ready.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The caller gave up.
    #[error("it was interrupted")]
    Interrupted,
}

/// A role that runs.
#[derive(Debug)]
pub struct Role {
    /// Its name: [`RoleUsage::SERVER`], or that of a kind of backend.
    pub name: String,
    /// The CPUs of its processes; empty: all.
    pub cpus: Vec<u32>,
    processes: Vec<Running>,
}

/// A contender that runs; dropping it ends its processes.
#[derive(Debug)]
pub struct Roles {
    /// In the order of their start: the server comes last.
    roles: Vec<Role>,
}

impl Roles {
    /// Starts the roles in the order given, each when all processes of those before it are ready.
    /// Each process may take `limit` to be ready; `go_on` is asked several times a second. If one
    /// does not come up, those before it are stopped, within `grace` each.
    pub fn start(
        binary: &Path,
        roles: &[RoleLaunch],
        limit: Duration,
        grace: Duration,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Roles, NotStarted> {
        let mut started = Roles { roles: Vec::new() };
        for role in roles {
            if let Err(why) = started.add(binary, role, limit, go_on) {
                // What they say of their stop adds nothing to why the contender is not ready.
                drop(started.stop(grace));
                return Err(why);
            }
        }
        Ok(started)
    }

    fn add(
        &mut self,
        binary: &Path,
        role: &RoleLaunch,
        limit: Duration,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), NotStarted> {
        let cpus = role.launches.first().map(|launch| launch.cpus.clone()).unwrap_or_default();
        self.roles.push(Role { name: role.name.clone(), cpus, processes: Vec::new() });
        // All of them before the first is waited for: they come up side by side.
        for launch in &role.launches {
            let running = Running::start(binary, launch)?;
            self.newest().push(running);
        }
        for nth in 0..role.launches.len() {
            self.wait_ready(nth, &role.ready, limit, go_on)?;
        }
        Ok(())
    }

    fn newest(&mut self) -> &mut Vec<Running> {
        &mut self.roles.last_mut().expect("a role was added").processes
    }

    /// Waits for the n-th process of the newest role. If a process of a role before it has ended,
    /// that is the reason.
    fn wait_ready(
        &mut self,
        nth: usize,
        ready: &Ready,
        limit: Duration,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), NotStarted> {
        const LOOK_UP: Duration = Duration::from_millis(200);
        let mut waited = Duration::ZERO;
        loop {
            let error = match self.newest()[nth].wait_ready(ready, LOOK_UP) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if let Some((name, status, words)) = self.ended_before_newest()? {
                return Err(NotReady::Ended { name, status, words }.into());
            }
            let NotReady::Late { name, seen, .. } = error else { return Err(error.into()) };
            if !go_on() {
                return Err(NotStarted::Interrupted);
            }
            waited += LOOK_UP;
            if waited >= limit {
                return Err(NotReady::Late { name, limit, seen }.into());
            }
        }
    }

    fn ended_before_newest(&mut self) -> Result<Option<(String, Status, String)>, NotReady> {
        let before = self.roles.len().saturating_sub(1);
        for running in self.roles[..before].iter_mut().flat_map(|role| &mut role.processes) {
            let name = running.name().to_owned();
            if let Some(exited) = running.exited_within(Duration::ZERO)? {
                return Ok(Some((name, exited.status, exited.last_words.clone())));
            }
        }
        Ok(None)
    }

    /// The roles, in the order of their start: the server comes last.
    pub fn all(&self) -> &[Role] {
        &self.roles
    }

    /// The CPUs of all roles, in rising order.
    pub fn cpus(&self) -> Vec<u32> {
        let all: BTreeSet<u32> =
            self.roles.iter().flat_map(|role| role.cpus.iter().copied()).collect();
        all.into_iter().collect()
    }

    /// Its processes, to be read again and again.
    pub fn observed(&self) -> Vec<Observed> {
        self.roles.iter().flat_map(Role::observed).collect()
    }

    /// How its processes ended under load, a sentence each, if any did: backends first, since their
    /// end may have taken the server along.
    pub fn ended(&mut self) -> Result<Vec<Ended>, SupervisorError> {
        let mut ended = Vec::new();
        for role in &mut self.roles {
            for running in &mut role.processes {
                let name = running.name().to_owned();
                let Some(exited) = running.exited_within(Duration::ZERO)? else { continue };
                let because = match exited.status.is_success() && !exited.left.is_empty() {
                    true => background(&name),
                    false => {
                        let words = last_words(&exited.last_words);
                        format!("{name} {} under load{words}", exited.status)
                    }
                };
                ended.push(Ended { because, is_server: role.name == RoleUsage::SERVER });
            }
        }
        Ok(ended)
    }

    /// Stops the server and then what stands behind it, `grace` for each process, and checks that
    /// nothing remains. The reports come in the order of the stops.
    pub fn stop(mut self, grace: Duration) -> Vec<Result<StopReport, SupervisorError>> {
        let mut reports = Vec::new();
        while let Some(role) = self.roles.pop() {
            reports.extend(role.processes.into_iter().map(|running| running.stop(grace)));
        }
        reports
    }
}

/// A process of a contender that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How, in a sentence that names the process.
    pub because: String,
    /// Whether it was the server, not a backend.
    pub is_server: bool,
}

impl Role {
    /// Its processes, to be read again and again.
    pub fn observed(&self) -> Vec<Observed> {
        self.processes.iter().map(Running::observed).collect()
    }

    /// The numbers of the processes that were started for it, not of those that they started.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(Running::pid)
    }

    /// Their ports on 127.0.0.1.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.processes.iter().map(Running::port)
    }

    /// How many processes were started for it.
    pub fn count(&self) -> u32 {
        self.processes.len() as u32
    }
}
