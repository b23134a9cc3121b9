//! A contender of a race, wherever it runs.
//!
//! If the agent of another machine is lost, everything here yields nothing, and quickly: the race is then
//! interrupted, nothing of the life or round is stored, and [`Server::lost`] says why.

use crate::{
    ask::entrant::Entrant,
    machine_error::MachineError,
    site::{
        ends::{Deaths, Stopped},
        held::Held,
        server::Server,
        start::{Addresses, Start, StartHere, Started, start},
        wire::{Answer, Ask, Observed, Reading},
    },
};
use regatta_host::{LinkMeter, Meter};
use regatta_record::{CpuSets, LoadShape, MachineUse, NetworkUse};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

/// A contender that was started. Dropping it kills its processes.
pub(crate) struct Hosted<'a> {
    addresses: Addresses,
    place: Place<'a>,
}

enum Place<'a> {
    Here(Box<Held>),
    There(Box<Elsewhere<'a>>),
}

/// A contender on the server machine.
struct Elsewhere<'a> {
    server: &'a Server,
    number: u32,
    /// Its CPU time, read after it was frozen and not yet asked for. One message does both.
    laps: Option<Vec<Option<u64>>>,
    thawed: Thawed,
    /// The CPU of its whole machine from when it was thawed until it was frozen, if known.
    machine: Option<MachineUse>,
    /// This machine's end of the network to it.
    link: Option<LinkMeter>,
    /// What both ends carried in the same time.
    network: NetworkUse,
    is_stopped: bool,
}

/// How long a contender ran, by the clock of its machine: messages take time, in which it runs, too.
#[derive(Clone, Copy, Debug, Default)]
struct Thawed {
    /// When it was thawed, or when its CPU time was last read since then, nanoseconds.
    from_ns: Option<u64>,
    /// From then until it was frozen, nanoseconds.
    lasted_ns: Option<u64>,
}

impl Thawed {
    fn begins(&mut self, now: Option<&Answer>) {
        self.from_ns = now_ns(now);
    }

    fn ends(&mut self, now: Option<&Answer>) {
        let ns = now_ns(now).zip(self.from_ns.take());
        self.lasted_ns = ns.map(|(now, from)| now.saturating_sub(from));
    }
}

fn now_ns(answer: Option<&Answer>) -> Option<u64> {
    match answer {
        Some(Answer::Now(ns)) => Some(*ns),
        _ => None,
    }
}

impl<'a> Hosted<'a> {
    /// Starts a contender on this machine, or on the server machine if there is one.
    pub fn start(
        here: StartHere<'_>,
        server: Option<&'a Server>,
        entrant: &Entrant,
        load: LoadShape,
    ) -> Result<Start<Hosted<'a>>, MachineError> {
        let Some(server) = server else {
            return Ok(match start(here, entrant, load)? {
                Start::Ready(started) => Start::Ready(Box::new(Hosted::here(entrant, *started))),
                Start::Failed { because } => Start::Failed { because },
                Start::Interrupted => Start::Interrupted,
            });
        };
        Ok(match server.start(&entrant.name, load)? {
            Start::Ready(started) => {
                let (number, addresses) = *started;
                let address = addresses.own;
                let place = Elsewhere {
                    server,
                    number,
                    laps: None,
                    thawed: Thawed::default(),
                    machine: None,
                    link: LinkMeter::of(address.ip()),
                    network: NetworkUse::default(),
                    is_stopped: false,
                };
                let mut hosted = Hosted { addresses, place: Place::There(Box::new(place)) };
                if let Err(error) = reach(address)
                    && hosted.deaths().server.is_none()
                {
                    return Err(MachineError::Unreachable { address, error });
                }
                Start::Ready(Box::new(hosted))
            }
            Start::Failed { because } => Start::Failed { because },
            Start::Interrupted => Start::Interrupted,
        })
    }

    fn here(entrant: &Entrant, started: Started) -> Hosted<'a> {
        let addresses = Addresses::at(Ipv4Addr::LOCALHOST.into(), started.port, &started.nodes);
        Hosted { addresses, place: Place::Here(Box::new(Held::new(&entrant.name, started))) }
    }

    /// The address at which a load reaches it.
    pub fn address(&self) -> SocketAddr {
        self.addresses.own
    }

    /// The same, with those of its further nodes.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Whether it can be frozen: not if it ran before the race.
    pub fn can_freeze(&self) -> bool {
        match &self.place {
            Place::Here(held) => held.can_freeze(),
            Place::There(_) => true,
        }
    }

    /// The CPUs of this machine that it has.
    pub fn cpus_here(&self) -> Vec<u32> {
        match &self.place {
            Place::Here(held) => held.cpus(),
            Place::There(_) => Vec::new(),
        }
    }

    /// A meter of its CPU time, if it runs on this machine.
    pub fn meter(&self) -> Option<Meter> {
        match &self.place {
            Place::Here(held) => Some(held.meter()),
            Place::There(_) => None,
        }
    }

    /// Keeps it from running, and returns when it no longer runs. The error is a sentence.
    pub fn freeze(&mut self) -> Result<(), String> {
        let frozen = match &mut self.place {
            Place::Here(held) => held.answer(Ask::Freeze),
            Place::There(there) => there.freeze(),
        };
        done(Some(frozen))
    }

    /// Lets it run. The error is a sentence.
    pub fn thaw(&mut self) -> Result<(), String> {
        let Place::There(there) = &mut self.place else { return done(self.ask(Ask::Thaw)) };
        // From here on; what was carried while it was frozen does not count.
        there.link.as_mut().and_then(LinkMeter::lap);
        let mut answers = there.ask(vec![Ask::Link, Ask::Machine, Ask::Now, Ask::Thaw]);
        there.thawed.begins(answers.get(2));
        done(answers.pop())
    }

    /// How long it ran until it was frozen, by the clock of its machine: since it was thawed, or since its CPU time
    /// was last read, nanoseconds. `None` on this machine, where no message delays that.
    pub fn thawed_ns(&self) -> Option<u64> {
        match &self.place {
            Place::Here(_) => None,
            Place::There(there) => there.thawed.lasted_ns,
        }
    }

    /// The CPU of its whole machine from when it was thawed until it was frozen. `None` on this machine, or if it is
    /// not known.
    pub fn machine_used(&self) -> Option<MachineUse> {
        match &self.place {
            Place::Here(_) => None,
            Place::There(there) => there.machine,
        }
    }

    /// What the network to it carried from when it was thawed until it was frozen. `None` on this machine, or if it is
    /// not known.
    pub fn network_used(&self) -> Option<&NetworkUse> {
        match &self.place {
            Place::Here(_) => None,
            Place::There(there) => Some(&there.network),
        }
    }

    /// The CPU time of each role since the last call, nanoseconds, in the order of their start.
    pub fn laps(&mut self) -> Option<Vec<Option<u64>>> {
        let answer = match &mut self.place {
            Place::Here(held) => held.answer(Ask::Laps),
            Place::There(there) if there.laps.is_some() => return there.laps.take(),
            Place::There(there) => {
                let mut answers = there.ask(vec![Ask::Laps, Ask::Now]);
                there.thawed.begins(answers.pop().as_ref());
                answers.pop()?
            }
        };
        match answer {
            Answer::Laps(laps) => Some(laps),
            _ => None,
        }
    }

    /// The CPU time of all of its processes since their start, nanoseconds.
    pub fn cpu_ns(&mut self) -> Option<u64> {
        match self.ask(Ask::CpuNs)? {
            Answer::CpuNs(cpu_ns) => cpu_ns,
            _ => None,
        }
    }

    /// Begins the readings of a load.
    pub fn observe(&mut self, cpus: &CpuSets, load: LoadShape) {
        self.ask(Ask::Observe { cpus: cpus.clone(), load });
    }

    /// Takes the readings that belong to moments of the load, one after the other.
    pub fn read(&mut self, readings: &[Reading]) {
        let asks = readings.iter().map(|reading| Ask::Read(*reading));
        match &mut self.place {
            Place::Here(held) => asks.for_each(|ask| drop(held.answer(ask))),
            Place::There(there) => drop(there.ask(asks.collect())),
        }
    }

    /// Looks which processes serve its port, and on which CPUs.
    pub fn look(&mut self) {
        self.ask(Ask::Look);
    }

    /// Ends the readings. Returns what was read and seen.
    pub fn observed(&mut self) -> Observed {
        match self.ask(Ask::Observed) {
            Some(Answer::Observed(observed)) => *observed,
            _ => Observed::default(),
        }
    }

    /// Which of its processes ended by themselves.
    pub fn deaths(&mut self) -> Deaths {
        match self.ask(Ask::Deaths) {
            Some(Answer::Deaths(deaths)) => deaths,
            _ => Deaths::default(),
        }
    }

    /// Stops it, and checks that nothing remains.
    pub fn stop(mut self) -> Stopped {
        if let Place::There(there) = &mut self.place {
            there.is_stopped = true;
        }
        match self.ask(Ask::Stop) {
            Some(Answer::Stopped(stopped)) => stopped,
            _ => Stopped { remark: Ok(None), cpu_ns: None },
        }
    }

    /// `None`: its machine is lost.
    fn ask(&mut self, ask: Ask) -> Option<Answer> {
        match &mut self.place {
            Place::Here(held) => Some(held.answer(ask)),
            Place::There(there) => there.ask(vec![ask]).pop(),
        }
    }
}

impl Elsewhere<'_> {
    /// Freezes it, and takes in the same message what belongs to the time since it was thawed.
    fn freeze(&mut self) -> Answer {
        let asks = vec![Ask::Freeze, Ask::Now, Ask::Machine, Ask::Link, Ask::Laps];
        let mut answers = self.ask(asks).into_iter();
        let frozen = answers.next();
        self.thawed.ends(answers.next().as_ref());
        self.machine = match answers.next() {
            Some(Answer::Machine(used)) => used,
            _ => None,
        };
        self.network.server = match answers.next() {
            Some(Answer::Link(carried)) => carried,
            _ => None,
        };
        self.network.load = self.link.as_mut().and_then(LinkMeter::lap);
        if let Some(Answer::Laps(laps)) = answers.next() {
            self.laps = Some(laps);
        }
        frozen.unwrap_or(Answer::Done(Ok(())))
    }

    fn ask(&mut self, asks: Vec<Ask>) -> Vec<Answer> {
        self.server.ask(self.number, asks)
    }
}

impl Drop for Elsewhere<'_> {
    fn drop(&mut self) {
        if !self.is_stopped {
            self.ask(vec![Ask::Stop]);
        }
    }
}

/// Connects once to a contender that is ready, and closes the connection.
fn reach(address: SocketAddr) -> io::Result<()> {
    /// A lost packet is sent again after 1 s, and then after 2 s.
    const WITHIN: Duration = Duration::from_secs(4);
    TcpStream::connect_timeout(&address, WITHIN).map(drop)
}

fn done(answer: Option<Answer>) -> Result<(), String> {
    match answer {
        Some(Answer::Done(done)) => done,
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_port_that_cannot_be_reached_is_named() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(reach(address).is_ok());
        drop(listener);
        let error = MachineError::Unreachable { address, error: reach(address).unwrap_err() };
        let expected = format!(
            "port {} of 127.0.0.1 is not reachable from this machine: is there a firewall? (",
            address.port()
        );
        assert!(error.to_string().starts_with(&expected), "{error}");
    }

    #[test]
    fn the_time_that_a_contender_ran_is_taken_from_its_own_clock() {
        let mut thawed = Thawed::default();
        thawed.begins(Some(&Answer::Now(100)));
        thawed.ends(Some(&Answer::Now(150)));
        assert_eq!(thawed.lasted_ns, Some(50));
        thawed.ends(Some(&Answer::Now(170)));
        assert_eq!(thawed.lasted_ns, None, "it was frozen");
        thawed.begins(None);
        thawed.ends(Some(&Answer::Now(200)));
        assert_eq!(thawed.lasted_ns, None, "its machine is lost");
    }
}
