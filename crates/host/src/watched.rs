//! What is read of a contender while it is under load.

use crate::{memory::Memory, running::Running, steal::Steal, usage::Usage};
use regatta_record::{CpuSets, LoadShape, Machine, Server};

/// Reads the usage of the contender and of the machine at the edges of the window, and the
/// contender's memory after it.
pub struct Watched<'a> {
    running: &'a Running,
    /// Before the load.
    ready: Memory,
    opened: Option<Usage>,
    /// What it used inside the window, once that is closed; `None` where it cannot be read.
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

impl<'a> Watched<'a> {
    /// Reads what there is before the load.
    pub fn new(running: &'a Running, cpus: &CpuSets, load: &LoadShape) -> Self {
        let of_server = cpus.of_server(load);
        Watched {
            running,
            ready: running.memory(),
            opened: None,
            spent: None,
            leaves_none_open: load.burst.is_some(),
            cpus: of_server.len() as u32,
            used_cpus: [of_server, cpus.of_load(load)].concat(),
            stolen: None,
            machine: Machine::default(),
        }
    }

    /// The window opens.
    pub fn window_opens(&mut self) {
        self.stolen = Steal::of(&self.used_cpus);
        self.opened = self.running.usage().ok();
    }

    /// The window closes.
    pub fn window_closes(&mut self) {
        // A server that cannot be read is told as not observed, by the absence of these figures.
        let closed = self.running.usage().ok();
        let spent = self.opened.as_ref().zip(closed).map(|(opened, closed)| closed.since(opened));
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
        let memory = self.running.memory();
        spent.memory_bytes = memory.proportional;
        spent.memory_at_ready_bytes = Some(self.ready.proportional);
        spent.user_growth_bytes = memory.user_growth(&self.ready);
        spent.kernel_growth = memory.kernel_growth(&self.ready);
    }
}
