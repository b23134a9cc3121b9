//! What is read of a contender while it is under load.

use crate::{
    memory::Memory,
    roles::{Role, Roles},
    steal::Steal,
    usage::{Observed, Spent, Usage},
};
use regatta_record::{CpuSets, LoadShape, Machine, RoleUsage, Server};
use std::collections::BTreeSet;

/// Reads the usage of the contender and of the machine at the edges of the window, and the
/// contender's memory after it.
pub struct Watched {
    roles: Vec<OfRole>,
    /// Before the load, of all roles.
    ready: Memory,
    /// What all roles used inside the window, once that is closed; `None` where one cannot be read.
    pub spent: Option<Server>,
    /// The connections of a burst are closed at its end: what memory there is then is told.
    leaves_none_open: bool,
    /// How many CPUs the contender has.
    cpus: u32,
    /// Its CPUs and those of the load.
    used_cpus: Vec<u32>,
    /// When the window opened.
    stolen: Option<Steal>,
    /// What the machine did inside the window.
    pub machine: Machine,
}

/// A role, and what was read of it.
struct OfRole {
    name: String,
    cpus: Vec<u32>,
    processes: Vec<Observed>,
    ready: Memory,
    opened: Vec<Option<Usage>>,
    spent: Option<Spent>,
    /// With the connections open.
    memory: Memory,
}

impl OfRole {
    fn new(role: &Role) -> Self {
        let processes = role.observed();
        OfRole {
            name: role.name.clone(),
            cpus: role.cpus.clone(),
            ready: Memory::of(&processes),
            processes,
            opened: Vec::new(),
            spent: None,
            memory: Memory::default(),
        }
    }

    fn usages(&self) -> Vec<Option<Usage>> {
        self.processes.iter().map(|process| process.usage().ok()).collect()
    }

    /// What all of its processes used until `closed`; `None` if one could not be read.
    fn spent(&self, closed: &[Option<Usage>]) -> Option<Spent> {
        let each = self.opened.iter().zip(closed);
        let each = each.map(|(opened, closed)| Some(closed.as_ref()?.since(opened.as_ref()?)));
        let each: Option<Vec<Spent>> = each.collect();
        each?.into_iter().reduce(Spent::plus)
    }

    fn into_record(self) -> RoleUsage {
        let cpus = self.cpus.len() as u32;
        let used = self.spent.map(|spent| Server {
            memory_at_ready_bytes: Some(self.ready.proportional),
            user_growth_bytes: self.memory.user_growth(&self.ready),
            ..spent.into_record(cpus, self.memory.proportional)
        });
        let count = self.processes.len() as u32;
        RoleUsage { name: self.name, count, cpus: self.cpus, used }
    }
}

impl Watched {
    /// Reads what there is before the load.
    pub fn new(roles: &Roles, cpus: &CpuSets, load: &LoadShape) -> Self {
        let all = roles.cpus();
        let used: BTreeSet<u32> = all.iter().copied().chain(cpus.of_load(load)).collect();
        Watched {
            roles: roles.all().iter().map(OfRole::new).collect(),
            ready: Memory::of(&roles.observed()),
            spent: None,
            leaves_none_open: load.drive.burst().is_some(),
            cpus: all.len() as u32,
            used_cpus: used.into_iter().collect(),
            stolen: None,
            machine: Machine::default(),
        }
    }

    /// The window opens.
    pub fn window_opens(&mut self) {
        self.stolen = Steal::of(&self.used_cpus);
        for role in &mut self.roles {
            role.opened = role.usages();
        }
    }

    /// The window closes.
    pub fn window_closes(&mut self) {
        let closed: Vec<Vec<Option<Usage>>> = self.roles.iter().map(OfRole::usages).collect();
        for (role, closed) in self.roles.iter_mut().zip(closed) {
            role.spent = role.spent(&closed);
        }
        // A contender that cannot be read is told as not observed, by the absence of these figures.
        let each: Option<Vec<Spent>> = self.roles.iter().map(|role| role.spent.clone()).collect();
        let spent = each.and_then(|each| each.into_iter().reduce(Spent::plus));
        let stolen = self.stolen.zip(Steal::of(&self.used_cpus));
        self.machine.steal = stolen.and_then(|(opened, closed)| closed.since(&opened));
        self.machine.server_run_delay_ns = spent.as_ref().and_then(|spent| spent.run_delay_ns);
        self.spent = spent.map(|spent| spent.into_record(self.cpus, 0));
        if self.leaves_none_open {
            self.connections_open();
        }
    }

    /// The load is over, and its connections are still open: reads the memory.
    pub fn connections_open(&mut self) {
        let Some(spent) = &mut self.spent else { return };
        let all: Vec<Observed> =
            self.roles.iter().flat_map(|role| role.processes.iter().cloned()).collect();
        let memory = Memory::of(&all);
        spent.memory_bytes = memory.proportional;
        spent.memory_at_ready_bytes = Some(self.ready.proportional);
        spent.user_growth_bytes = memory.user_growth(&self.ready);
        spent.kernel_growth = memory.kernel_growth(&self.ready);
        if self.roles.len() > 1 {
            for role in &mut self.roles {
                role.memory = Memory::of(&role.processes);
            }
        }
    }

    /// What each role used, where there is more than one: the server first.
    pub fn into_roles(self) -> Vec<RoleUsage> {
        if self.roles.len() < 2 {
            return Vec::new();
        }
        self.roles.into_iter().rev().map(OfRole::into_record).collect()
    }
}
