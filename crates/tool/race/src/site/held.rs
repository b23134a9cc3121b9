//! A contender that runs on this machine, and what is asked of it: to freeze and thaw, to be read, to stop.

use crate::site::{
    ends::{Deaths, Stopped},
    served_by::ServedBy,
    start::{STOP_WITHIN, Started},
    wire::{Answer, Ask, Observed, Reading},
};
use regatta_host::{Freezer, LinkMeter, MachineMeter, Meter, Readings, Roles, meters};
use std::{net::IpAddr, time::Instant};
use tempfile::TempDir;

/// A contender on this machine. Dropping it kills its processes.
pub(crate) struct Held {
    name: String,
    /// Dropped first: processes must not be frozen when they are stopped.
    freezer: Option<Freezer>,
    /// `None` once it was stopped.
    roles: Option<Roles>,
    /// By role.
    meters: Vec<Meter>,
    machine: MachineMeter,
    /// That by which it is reached, if it is another machine's load that does.
    link: Option<LinkMeter>,
    /// Those of the current load.
    readings: Option<Readings>,
    served: Option<ServedBy>,
    _run: TempDir,
    since: Instant,
}

impl Held {
    /// Takes a contender that was started.
    pub fn new(name: &str, started: Started) -> Held {
        let Started { roles, run: _run, .. } = started;
        let (freezer, meters) = (Some(Freezer::of(&roles)), meters(&roles));
        let (readings, served, roles) = (None, None, Some(roles));
        let (machine, since) = (MachineMeter::default(), Instant::now());
        let (name, link) = (name.to_owned(), None);
        Held { name, freezer, roles, meters, machine, link, readings, served, _run, since }
    }

    /// The same, reached at `address` from another machine.
    pub fn reached_at(self, address: IpAddr) -> Held {
        Held { link: LinkMeter::of(address), ..self }
    }

    /// Whether all of its processes can be frozen.
    pub fn can_freeze(&self) -> bool {
        self.freezer.as_ref().is_some_and(Freezer::can_freeze)
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.roles.is_none()
    }

    /// Its CPUs, in ascending order.
    pub fn cpus(&self) -> Vec<u32> {
        self.roles.as_ref().map(Roles::cpus).unwrap_or_default()
    }

    /// A meter of all of its processes together.
    pub fn meter(&self) -> Meter {
        Meter::of(self.roles.as_ref().map(Roles::observed).unwrap_or_default())
    }

    /// Does what is asked.
    pub fn answer(&mut self, ask: Ask) -> Answer {
        let done = |done: Option<std::io::Result<()>>| {
            Answer::Done(done.unwrap_or(Ok(())).map_err(|error| error.to_string()))
        };
        match ask {
            Ask::Freeze => done(self.freezer.as_mut().map(Freezer::freeze)),
            Ask::Thaw => done(self.freezer.as_mut().map(Freezer::thaw)),
            Ask::Now => Answer::Now(self.since.elapsed().as_nanos() as u64),
            Ask::Laps => Answer::Laps(self.meters.iter_mut().map(Meter::lap).collect()),
            Ask::Machine => Answer::Machine(self.machine.lap()),
            Ask::Link => Answer::Link(self.link.as_mut().and_then(LinkMeter::lap)),
            Ask::CpuNs => Answer::CpuNs(self.roles.as_ref().and_then(Roles::cpu_ns)),
            Ask::Observe { cpus, load } => {
                self.readings = self.roles.as_ref().map(|roles| Readings::new(roles, &cpus, &load));
                self.served = None;
                done(None)
            }
            Ask::Read(reading) => {
                if let Some(readings) = &mut self.readings {
                    read(readings, reading);
                }
                done(None)
            }
            Ask::Look => {
                match (&mut self.served, &self.roles) {
                    (Some(served), _) => served.look(),
                    (served, Some(roles)) => *served = Some(ServedBy::new(&self.name, roles)),
                    (None, None) => {}
                }
                done(None)
            }
            Ask::Observed => Answer::Observed(Box::new(self.observed())),
            Ask::Deaths => Answer::Deaths(self.roles.as_mut().map(Deaths::of).unwrap_or_default()),
            Ask::Stop => {
                self.freezer = None;
                let reports = self.roles.take().map(|roles| roles.stop(STOP_WITHIN));
                Answer::Stopped(Stopped::of(reports.unwrap_or_default()))
            }
        }
    }

    fn observed(&mut self) -> Observed {
        let mut observed = Observed::default();
        if let Some(mut readings) = self.readings.take() {
            observed.server = readings.spent.take();
            observed.machine = readings.machine;
            observed.roles = readings.into_roles();
        }
        if let Some(served) = self.served.take() {
            observed.served_by_others = served.by_others;
            observed.left_its_cpus = served.elsewhere;
        }
        observed
    }
}

fn read(readings: &mut Readings, reading: Reading) {
    match reading {
        Reading::BeforeLoad => readings.memory_before_load(),
        Reading::BeforeWindow => readings.before_window(),
        Reading::WindowOpens => readings.window_opens(),
        Reading::WindowCloses => readings.window_closes(),
        Reading::LoadOver => readings.load_over(),
        Reading::AfterLoad => readings.memory_after_load(),
    }
}
