//! The readings of a contender while it is under load.

use crate::{
    contender::roles::{Role, Roles},
    machine::steal::Steal,
    usage::{
        memory::Memory,
        tree::{ObservedProcesses, Spent},
        window::{UsageWindow, spent_together},
    },
};
use regatta_record::{CpuSets, LoadShape, Machine, RoleUsage, Server};
use std::collections::BTreeSet;

/// Reads the usage of the contender and of the machine at the edges of the window, and the
/// contender's memory before the load and after it.
pub struct Readings {
    roles: Vec<OfRole>,
    /// Memory of all roles before the load.
    ready: Memory,
    /// Memory with the connections open, before the load, if that was read.
    connected: Option<Memory>,
    /// Usage of all roles inside the window, once the load is over; `None` if one cannot be read.
    pub spent: Option<Server>,
    /// Whether the load is a burst, which leaves no connection open. Memory is then read as soon as the
    /// load is over.
    leaves_none_open: bool,
    /// Number of CPUs of the contender.
    cpus: u32,
    /// Its CPUs and those of the load.
    used_cpus: Vec<u32>,
    /// Stolen time before the window.
    stolen: Option<Steal>,
    /// Readings of the machine inside the window, and shortly before and after it.
    pub machine: Machine,
}

/// The readings of a role.
struct OfRole {
    name: String,
    cpus: Vec<u32>,
    processes: Vec<UsageWindow>,
    ready: Memory,
    /// Memory with the connections open, before the load.
    connected: Option<Memory>,
    /// Memory with the connections open, after the load.
    memory: Memory,
}

impl OfRole {
    fn new(role: &Role) -> Self {
        let processes = role.observed();
        OfRole {
            name: role.name.clone(),
            cpus: role.cpus.clone(),
            ready: Memory::of(&processes),
            processes: processes.into_iter().map(UsageWindow::of).collect(),
            connected: None,
            memory: Memory::default(),
        }
    }

    fn spent(&self) -> Option<Spent> {
        spent_together(self.processes.iter().map(UsageWindow::spent))
    }

    fn observed(&self) -> Vec<ObservedProcesses> {
        self.processes.iter().map(|process| process.observed().clone()).collect()
    }

    fn into_record(self) -> RoleUsage {
        let cpus = self.cpus.len() as u32;
        let used = self.spent().map(|spent| Server {
            memory_at_ready_bytes: Some(self.ready.proportional),
            user_growth_bytes: self.connected.unwrap_or(self.memory).user_growth(&self.ready),
            ..spent.into_record(cpus, self.memory.proportional)
        });
        let count = self.processes.len() as u32;
        RoleUsage { name: self.name, count, cpus: self.cpus, used }
    }
}

impl Readings {
    /// Takes the readings before the load.
    pub fn new(roles: &Roles, cpus: &CpuSets, load: &LoadShape) -> Self {
        let all = roles.cpus();
        let of_load = if cpus.apart { Vec::new() } else { cpus.of_load(load) };
        let used: BTreeSet<u32> = all.iter().copied().chain(of_load).collect();
        Readings {
            roles: roles.all().iter().map(OfRole::new).collect(),
            ready: Memory::of(&roles.observed()),
            connected: None,
            spent: None,
            leaves_none_open: load.drive.burst().is_some(),
            cpus: all.len() as u32,
            used_cpus: used.into_iter().collect(),
            stolen: None,
            machine: Machine::default(),
        }
    }

    /// Call when all connections are open and the load has not started: reads their memory.
    pub fn memory_before_load(&mut self) {
        let all: Vec<ObservedProcesses> = self.roles.iter().flat_map(OfRole::observed).collect();
        self.connected = Some(Memory::of(&all));
        if self.roles.len() > 1 {
            for role in &mut self.roles {
                role.connected = Some(Memory::of(&role.observed()));
            }
        }
    }

    /// Call shortly before the window opens.
    pub fn before_window(&mut self) {
        self.stolen = Steal::of(&self.used_cpus);
        self.each(UsageWindow::before);
    }

    /// Call when the window opens.
    pub fn window_opens(&mut self) {
        self.each(UsageWindow::opens);
    }

    /// Call when the window closes.
    pub fn window_closes(&mut self) {
        self.each(UsageWindow::closes);
    }

    fn each(&mut self, read: fn(&mut UsageWindow)) {
        self.roles.iter_mut().flat_map(|role| &mut role.processes).for_each(read);
    }

    /// Call when the window and the load are over.
    pub fn load_over(&mut self) {
        self.each(UsageWindow::after);
        // Without these figures, the contender is reported as not observed.
        let each: Option<Vec<Spent>> = self.roles.iter().map(OfRole::spent).collect();
        let spent = each.and_then(|each| each.into_iter().reduce(Spent::plus));
        let stolen = self.stolen.zip(Steal::of(&self.used_cpus));
        self.machine.steal = stolen.and_then(|(before, after)| after.since(&before));
        self.machine.server_run_delay_ns = spent.as_ref().and_then(|spent| spent.run_delay_ns);
        self.spent = spent.map(|spent| spent.into_record(self.cpus, 0));
        if self.leaves_none_open {
            self.memory_after_load();
        }
    }

    /// Call when the load is over and its connections are still open: reads the memory.
    pub fn memory_after_load(&mut self) {
        let Some(spent) = &mut self.spent else { return };
        let all: Vec<ObservedProcesses> = self.roles.iter().flat_map(OfRole::observed).collect();
        let memory = Memory::of(&all);
        spent.memory_bytes = memory.proportional;
        spent.memory_at_ready_bytes = Some(self.ready.proportional);
        // Memory after the load would include what the load left in heaps, not only connections.
        let connected = self.connected.unwrap_or(memory);
        spent.user_growth_bytes = connected.user_growth(&self.ready);
        spent.kernel_growth = connected.kernel_growth(&self.ready);
        if self.roles.len() > 1 {
            for role in &mut self.roles {
                role.memory = Memory::of(&role.observed());
            }
        }
    }

    /// Returns the usage of each role, the server first; empty if there is only one role.
    pub fn into_roles(self) -> Vec<RoleUsage> {
        if self.roles.len() < 2 {
            return Vec::new();
        }
        self.roles.into_iter().rev().map(OfRole::into_record).collect()
    }
}
