//! A running contender, by roles: the server and its backends. Each process has its own supervisor and
//! control group. Each role has its own CPUs and readiness check.

use crate::{
    contender::{
        attached::change_of,
        ready::{NotReady, Ready},
        running::{Running, StartError, SupervisorError},
        stop_report::{StopReport, background, last_words},
        wire::Launch,
    },
    process::status::Status,
    usage::tree::ObservedProcesses,
};
use regatta_record::{RoleUsage, RunningProcess, RunningServer};
use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

/// How to start one role.
#[derive(Clone, Debug)]
pub struct RoleLaunch {
    /// Its name: [`RoleUsage::SERVER`], or that of a backend.
    pub name: String,
    /// The sign that a process of it is ready.
    pub ready: Ready,
    /// Its processes. They have different ports, folders and instance numbers.
    pub launches: Vec<Launch>,
}

/// Why a contender did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// One of its processes was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// One of its processes did not become ready.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// It was to be running already, and is not the server that it was: a sentence.
    #[error("{0}")]
    Changed(String),
    /// The caller gave up.
    #[error("it was interrupted")]
    Interrupted,
}

/// A running role.
#[derive(Debug)]
pub struct Role {
    /// Its name: [`RoleUsage::SERVER`], or that of a backend.
    pub name: String,
    /// The CPUs of its processes; empty: all.
    pub cpus: Vec<u32>,
    processes: Vec<Running>,
    /// The server, if it was already running.
    attached: Option<RunningServer>,
}

/// A running contender; dropping it kills its processes.
#[derive(Debug)]
pub struct Roles {
    /// In the order of their start: the server comes last.
    roles: Vec<Role>,
}

impl Roles {
    /// Starts the roles in the given order, each when all processes of the previous roles are ready.
    /// Each process may take `limit` to become ready; `go_on` is called several times a second, and the
    /// start ends when it returns false. If a process does not start or does not become ready, or if the
    /// start is interrupted, all are stopped, with `grace` for each.
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
                // The reports of the stop do not explain why the contender is not ready.
                drop(started.stop(grace));
                return Err(why);
            }
        }
        Ok(started)
    }

    /// Takes a server that is already running as the only role. It is not stopped. Fails if other processes
    /// serve its port now.
    pub fn attach(server: &RunningServer) -> Result<Roles, NotStarted> {
        if let Some(change) = change_of(server) {
            return Err(NotStarted::Changed(change));
        }
        let (name, cpus) = (RoleUsage::SERVER.to_owned(), server.cpus.clone());
        let (processes, attached) = (Vec::new(), Some(server.clone()));
        Ok(Roles { roles: vec![Role { name, cpus, processes, attached }] })
    }

    fn add(
        &mut self,
        binary: &Path,
        role: &RoleLaunch,
        limit: Duration,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), NotStarted> {
        let cpus = role.launches.first().map(|launch| launch.cpus.clone()).unwrap_or_default();
        self.roles.push(Role {
            name: role.name.clone(),
            cpus,
            processes: Vec::new(),
            attached: None,
        });
        // Start all of them before waiting for the first, so that they start in parallel.
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

    /// Waits for the n-th process of the newest role. If it fails and a process of an earlier role has
    /// ended, that is the error.
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

    /// Returns the roles, in the order of their start: the server comes last.
    pub fn all(&self) -> &[Role] {
        &self.roles
    }

    /// Returns the CPUs of all roles, in ascending order.
    pub fn cpus(&self) -> Vec<u32> {
        let all: BTreeSet<u32> =
            self.roles.iter().flat_map(|role| role.cpus.iter().copied()).collect();
        all.into_iter().collect()
    }

    /// Returns the CPU time of all processes since their start, in nanoseconds; `None` if one of them has no
    /// control group of regatta's.
    pub fn cpu_ns(&self) -> Option<u64> {
        let processes = || self.roles.iter().flat_map(|role| &role.processes);
        let is_ours = self.roles.iter().all(|role| !role.is_attached());
        is_ours.then(|| processes().map(Running::cpu_ns).sum()).flatten()
    }

    /// Returns its processes, for repeated readings of their usage.
    pub fn observed(&self) -> Vec<ObservedProcesses> {
        self.roles.iter().flat_map(Role::observed).collect()
    }

    /// Returns the processes that ended under load. Backends come first, because their end may have
    /// caused the server's.
    pub fn ended(&mut self) -> Result<Vec<Ended>, SupervisorError> {
        let mut ended = Vec::new();
        for role in &mut self.roles {
            if let Some(because) = role.attached.as_ref().and_then(change_of) {
                ended.push(Ended { because, is_server: true });
            }
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

    /// Stops the server, unless it was already running, and then its backends, with `grace` for each
    /// process, and checks that nothing remains. The reports are in the order of the stops.
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
    /// How it ended, in a sentence that names the process.
    pub because: String,
    /// Whether it was the server rather than a backend.
    pub is_server: bool,
}

impl Role {
    /// Its processes that were already running.
    fn found(&self) -> impl Iterator<Item = &RunningProcess> {
        self.attached.iter().flat_map(|server| &server.processes)
    }

    /// Returns its processes, for repeated readings of their usage.
    pub fn observed(&self) -> Vec<ObservedProcesses> {
        let found = self.found().map(|process| ObservedProcesses::tree(process.pid));
        self.processes.iter().map(Running::observed).chain(found).collect()
    }

    /// Whether it was already running, rather than started by regatta.
    pub fn is_attached(&self) -> bool {
        self.attached.is_some()
    }

    /// Returns the ids of the processes that were started for it, or found, without their own children.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(Running::pid).chain(self.found().map(|process| process.pid))
    }

    /// Returns the addresses that they serve.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let local = |attached: &RunningServer| (Ipv4Addr::LOCALHOST, attached.port).into();
        self.processes.iter().map(Running::address).chain(self.attached.iter().map(local))
    }

    /// Returns the number of processes that were started for it, or found.
    pub fn count(&self) -> u32 {
        self.pids().count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_a_meter_in_the_order_of_the_starts() {
        let role = |name: &str| Role {
            name: name.into(),
            cpus: Vec::new(),
            processes: Vec::new(),
            attached: None,
        };
        let roles = Roles { roles: vec![role("hello"), role(RoleUsage::SERVER)] };
        assert_eq!(crate::under_load::freezer::meters(&roles).len(), 2);
    }
}
