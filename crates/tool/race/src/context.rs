//! The state that the rounds of a race share.

use crate::{
    ask::entrant::Entrant,
    machine_error::MachineError,
    site::{
        hosted::Hosted,
        server::Server,
        start::{Start, StartHere},
    },
};
use regatta_host::IdleCheck;
use regatta_record::{Asked, LoadShape, MachineUse};
use std::{
    net::Ipv4Addr,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

/// What a race runs on.
#[derive(Clone, Copy)]
pub struct Machines<'a> {
    /// The regatta binary of this machine, which runs the load.
    pub binary: &'a Path,
    /// The machine of the contenders, if it is another one.
    pub server: Option<&'a Server>,
    /// Set by Ctrl-C, and when the server machine is lost.
    pub stop: &'a AtomicBool,
}

impl Machines<'_> {
    /// Why the server machine is lost, if it is.
    pub(crate) fn lost(&self) -> Option<MachineError> {
        self.server.and_then(Server::lost)
    }
}

/// The state that the rounds of a race share.
pub(crate) struct RaceContext<'a> {
    pub asked: &'a Asked,
    /// The regatta binary, for the supervisor and for built-in contenders.
    pub binary: &'a Path,
    /// Set by Ctrl-C, and when the server machine is lost.
    pub stop: &'a AtomicBool,
    /// The machine of the contenders, if it is another one.
    server: Option<&'a Server>,
    /// Number of successive rounds after which the CPUs did not become idle.
    restless: AtomicU32,
}

impl<'a> RaceContext<'a> {
    pub fn new(asked: &'a Asked, binary: &'a Path, stop: &'a AtomicBool) -> RaceContext<'a> {
        RaceContext { asked, binary, stop, server: None, restless: AtomicU32::new(0) }
    }

    /// The same on these machines.
    pub fn on(asked: &'a Asked, machines: Machines<'a>) -> RaceContext<'a> {
        let Machines { binary, server, stop } = machines;
        RaceContext { server, ..RaceContext::new(asked, binary, stop) }
    }

    /// What starts on this machine need.
    pub fn here(&self) -> StartHere<'a> {
        let RaceContext { asked, binary, stop, .. } = *self;
        StartHere { asked, binary, stop, host: Ipv4Addr::LOCALHOST.into() }
    }

    /// Which settings of the server machine, if there is one, have changed since this was last asked.
    pub fn changed_on_server(&self) -> Option<String> {
        self.server.and_then(Server::settings_changed)
    }

    /// The CPU that the whole server machine uses while no contender runs. `None`: there is none, or it is not known.
    pub fn machine_alone(&self, slice: Duration) -> Option<MachineUse> {
        self.server.and_then(|server| server.machine_alone(slice, self.stop))
    }

    /// Checks that the programs on the server machine, if there is one, are those that the race began with.
    pub fn look_at_server(&self) -> Result<(), MachineError> {
        self.server.map_or(Ok(()), Server::look)
    }

    /// Starts a contender where the contenders of the race run.
    pub fn start(
        &self,
        entrant: &Entrant,
        load: LoadShape,
    ) -> Result<Start<Hosted<'a>>, MachineError> {
        Hosted::start(self.here(), self.server, entrant, load)
    }

    /// If the CPUs did not become idle after this many successive rounds, other programs keep them
    /// busy, and waiting is useless.
    const RESTLESS: u32 = 2;

    /// Checks before a round whether the CPUs of a load are idle; `None` if the machine never is.
    pub fn check_idle(&self, load: &LoadShape) -> Option<IdleCheck> {
        let is_restless = self.restless.load(Ordering::Relaxed) >= Self::RESTLESS;
        (!is_restless).then(|| IdleCheck::before(&self.asked.cpus, load))
    }

    /// Waits until these CPUs are idle again. Returns how long that took in nanoseconds, if known.
    pub fn wait_until_idle(&self, check: &IdleCheck) -> Option<u64> {
        let waited = check.after(&|| !self.stop.load(Ordering::Relaxed))?;
        match waited >= IdleCheck::LONGEST {
            true => self.restless.fetch_add(1, Ordering::Relaxed),
            false => self.restless.swap(0, Ordering::Relaxed),
        };
        Some(waited.as_nanos() as u64)
    }
}
