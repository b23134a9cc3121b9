//! What a load is asked to do, and the reasons why it may refuse. Nothing here acts.

use crate::Tls;
use regatta_record::{Burst, Drive, Part};
use regatta_script::{Compiled, Order, Place, Workload};
use std::{io, net::SocketAddr, sync::atomic::AtomicU64, time::Duration};

/// One load: who is asked what, by how many, for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub target: SocketAddr,
    /// TLS with it; `None`: plain.
    pub tls: Option<Tls>,
    /// What is sent and what must come back.
    pub workload: Workload,
    /// The host that requests name, where they do.
    pub host: String,
    /// The path of a built-in workload, in front of any query; `None`: its own.
    pub path: Option<String>,
    /// Connections open at a time.
    pub connections: usize,
    /// Further connections that send one request when they open, to be known as accepted, and are
    /// silent from then on. They are open before the window; one that the server closes is counted
    /// and opened again like the others; one that it ends as it said, after a pause that doubles
    /// while the first reply ends it. Only with [`Until::Elapsed`], and not with [`Drive::Churn`].
    pub idle: usize,
    /// So many of those read nothing after their first reply, with a small receive buffer: where a server
    /// sends unasked, they are slow readers. They are owed nothing then, and nothing is noticed of their end.
    pub stalled: usize,
    /// Further connections whose members come and go from the warm-up to the end of the window, where servers
    /// send unasked: each stays for a random time of 0 to 2 s after its first reply, so about as many leave per
    /// second as there are. One that leaves is owed what was sent before, waits until it has that, and then
    /// ends its connection: half of them by a Close frame and the server's answer to it, half by a reset.
    /// Another one comes in its place at once. They ask nothing but the request that opens them. Only with
    /// [`Until::Elapsed`], and not with [`Drive::Churn`].
    pub passing: usize,
    /// Requests outstanding on each connection, at most [`Plan::MAX_PIPELINE`].
    pub pipeline: usize,
    /// When requests are sent.
    ///
    /// [`Drive::Closed`]: as fast as the replies come.
    ///
    /// [`Drive::Open`]: at most [`Plan::MAX_RATE`] requests per second, scheduled ahead from `seed`.
    /// Each is sent when it is due, on the connection that has been free longest (with fewer than
    /// `pipeline` outstanding). Where none is free, requests stand in line; one that has stood there for
    /// longer than `timeout` is given up, and so is what is left 1 s (or `timeout`, if shorter) after
    /// the window: see [`crate::OpenTally::unsent`]. Latency counts from the intended send. A connection
    /// that the server ended as it said is opened again by the next request that takes it, whose latency
    /// includes that. The warm-up has a schedule of its own at the same rate. Only with
    /// [`Until::Elapsed`].
    ///
    /// [`Drive::Bounded`]: connections take turns, the one that has been free longest first, and each
    /// has at most `pipeline` requests outstanding. The first request of a connection that was lost and
    /// is opened again is beside the bound; one that the server ended as it said is opened again in its
    /// turn. Only with [`Until::Elapsed`]. There are at most as many load threads as requests in flight.
    ///
    /// [`Drive::Churn`]: every request has its own connection: connect, send, read the reply, close;
    /// latency counts from before the connect. Where a workload has conversations of several steps, each
    /// of these has its own; the latency of further steps counts from their write. The pipeline must
    /// be 1. Towards a loopback IPv4 target the connections come from 126 addresses in
    /// turn; towards any other the kernel chooses, and its ports last for some 470 connections a second
    /// (28,000 a minute) unless `net.ipv4.tcp_tw_reuse` is 1: then connecting fails with "cannot assign
    /// requested address", is counted and tried again.
    ///
    /// [`Drive::Burst`]: load instances, begun at once, with an equal share of the connections each;
    /// every connection connects, sends its requests, reads the replies and closes. There is no warm-up,
    /// and the window opens before the first connect, so that connecting is included.
    /// [`crate::Tally::instances_ns`] tells how long each took. A connection that could not be opened is
    /// tried again after a pause. One that is lost later is not: its requests without a reply, those not
    /// sent yet included, are lost and counted under the kind of the loss. There are at most as many load
    /// threads as instances. Only with [`Until::Done`].
    pub drive: Drive,
    /// How long before a send of an open loop the load thread stops sleeping and spins, since a
    /// sleeping thread wakes late ([`Plan::SPIN`] is sensible). Zero where the load shares its CPUs
    /// with the server: it would take them from it. No thread spins while no connection is free.
    pub spin: Duration,
    /// The load threads never sleep in warm-up and window: they ask epoll again and again. Then no
    /// reply has to wake a CPU, which the kernel would charge to the server that sent it; that part
    /// of a cost over loopback is large, jumps with the state of the machine, and is not there over
    /// a network. Not where the load shares its CPUs with the server.
    pub busy_poll: bool,
    /// Load threads, each with its own loop and its own share of the connections.
    pub threads: usize,
    /// CPUs that the load threads are pinned to, round-robin; empty: not pinned.
    pub cpus: Vec<u32>,
    /// How long a reply may take; at most [`Plan::MAX_TIMEOUT`].
    pub timeout: Duration,
    /// How long no further connection may come open before the run is given up
    /// ([`Plan::PATIENCE`] is sensible).
    pub patience: Duration,
    /// What comes before the measured window. Not used with [`Until::Requests`].
    pub warm_up: WarmUp,
    /// When the measured window ends.
    pub until: Until,
    /// The share of the requests that may fail, above 0 and up to 1. The load goes on after a wrong
    /// reply and counts it, on the same connection where the protocol permits that; the share itself is
    /// for whoever judges. `None`: a wrong reply ends the run, as it must in a race.
    pub tolerates: Option<f64>,
    /// Of a few requests, in the warm-up and after the window, the last byte is held back for 50 ms: a
    /// reply that comes before it is wrong, since nobody can know the request yet. Not with TLS, nor
    /// without a window of time; after the window only where connections are kept in closed loop.
    pub withholds: bool,
    /// Connections to a loopback IPv4 target come from a network of 127.0.0.0/8 that the seed draws, not
    /// from 127.0.0.1: a server cannot know ahead who asks.
    pub draws_sources: bool,
    /// Seed of the requests.
    pub seed: u64,
}

/// What comes before the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Exactly this long; zero for none.
    Fixed(Duration),
    /// Until the rate is steady, which is when the last three slices of 100 ms lie within 10% of one
    /// another; but no less than a server that was observed before needs.
    Steady {
        /// So long at least.
        least: Duration,
        /// So many requests at least.
        requests: u64,
        /// The window opens after this long, whatever is steady or lacks.
        longest: Duration,
    },
    /// Until the caller says that the server is warm: [`crate::Edges::is_warm`].
    Judged {
        /// The window opens after this long all the same.
        longest: Duration,
    },
}

impl WarmUp {
    /// Until the rate is steady, but no longer than this.
    pub fn steady(longest: Duration) -> WarmUp {
        WarmUp::Steady { least: Duration::ZERO, requests: 0, longest }
    }
}

/// When the measured window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After this long.
    Elapsed(Duration),
    /// When this many requests were sent and are settled (answered or lost). The server gets
    /// exactly so many in all, and those once more that it left behind a connection's end that it had
    /// said; there is no warm-up, and the window opens before the first connect,
    /// so that connecting is included. With fewer requests than connections, only as many
    /// connections as requests are opened. On a hub, and where connections store values first, all of
    /// them are opened first, each sends one more request to join, and then the window opens.
    Requests(u64),
    /// When every connection of a burst has done its part: with [`Drive::Burst`], and only with it.
    Done,
}

impl Plan {
    /// Most requests outstanding on one connection.
    pub const MAX_PIPELINE: usize = 65_536;
    /// Most requests outstanding in all: each takes 8 bytes, in an open loop 24.
    pub const MAX_OUTSTANDING: usize = 1 << 26;
    /// Longest limit for a reply: the end of the latency histogram.
    pub const MAX_TIMEOUT: Duration = Duration::from_secs(120);
    /// Most requests per second of an open loop: some times what a few threads can send.
    pub const MAX_RATE: u32 = 10_000_000;
    /// A sensible [`Plan::spin`] on a CPU that is the load's own.
    pub const SPIN: Duration = Duration::from_micros(50);
    /// A sensible [`Plan::patience`].
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// A closed loop of one connection, one request at a time, on any CPU, for a second without a
    /// warm-up: what other plans are made of.
    pub fn closed(target: SocketAddr, workload: Workload) -> Plan {
        Plan {
            target,
            tls: None,
            workload,
            host: String::new(),
            path: None,
            connections: 1,
            idle: 0,
            stalled: 0,
            passing: 0,
            pipeline: 1,
            drive: Drive::Closed,
            spin: Duration::ZERO,
            busy_poll: false,
            threads: 1,
            cpus: Vec::new(),
            timeout: Duration::from_secs(10),
            patience: Plan::PATIENCE,
            warm_up: WarmUp::Fixed(Duration::ZERO),
            until: Until::Elapsed(Duration::from_secs(1)),
            tolerates: None,
            withholds: false,
            draws_sources: false,
            seed: 1,
        }
    }

    /// The same plan with no more connections than requests. On a hub all stay: each is owed what others send.
    pub(crate) fn needed(&self) -> Plan {
        let connections = match self.until {
            Until::Requests(_) if self.joins_first() => self.connections,
            Until::Requests(n) => self.connections.min(usize::try_from(n).unwrap_or(usize::MAX)),
            Until::Elapsed(_) | Until::Done => self.connections,
        };
        Plan { connections, ..self.clone() }
    }

    /// How many load threads have something to do at most. Connections that never ask read what is pushed to
    /// them, so their threads have something to do even if they may have no request in flight.
    pub(crate) fn most_threads(&self) -> usize {
        match self.drive {
            Drive::Burst(burst) => burst.instances as usize,
            Drive::Bounded { in_flight } if !self.workload.is_pushed() => {
                self.connections.min(in_flight.get() as usize)
            }
            Drive::Bounded { .. } | Drive::Closed | Drive::Open { .. } | Drive::Churn => {
                self.connections
            }
        }
    }

    /// How many connections ask, and how many requests they may send, of a part of the plan that gets
    /// `share(n)` of `n` things.
    pub(crate) fn share(&self, share: impl Fn(usize) -> usize) -> (usize, u64) {
        match (self.drive, self.until) {
            // An instance lies within one thread.
            (Drive::Burst(burst), _) => {
                let instances = burst.instances as usize;
                let connections = self.connections / instances * share(instances);
                (connections, connections as u64 * u64::from(burst.requests))
            }
            (_, Until::Requests(n)) => {
                let requests = share(n as usize) + share(self.joining());
                (share(self.connections), requests as u64)
            }
            (_, Until::Elapsed(_) | Until::Done) => (share(self.connections), u64::MAX),
        }
    }

    /// Whether all connections are opened before a number of requests is counted. Otherwise a hub would owe the
    /// first broadcasts to a few members only, and what connections store at first would be timed.
    pub(crate) fn joins_first(&self) -> bool {
        matches!(self.until, Until::Requests(_))
            && (self.workload.is_pushed() || self.workload.prepares())
            && !self.drive.churns()
    }

    /// Requests with which connections join before those that are counted: the first of each connection.
    pub(crate) fn joining(&self) -> usize {
        if self.joins_first() { self.connections } else { 0 }
    }

    /// How many connections are open at a time, at most.
    pub(crate) fn most_open(&self) -> usize {
        self.connections + self.idle + self.passing
    }

    /// How many of them are those of `part`.
    pub(crate) fn connections_of(&self, part: Part) -> usize {
        let share = |n: usize| part.of_process(n as u64) as usize;
        self.share(share).0 + share(self.idle) + share(self.passing)
    }

    /// The exchanges of this plan. `shared` is what load processes share, if there are several.
    pub(crate) fn compile(&self, shared: Option<&'static [AtomicU64]>) -> Result<Compiled, Error> {
        let place =
            Place { host: &self.host, path: self.path.as_deref(), closes: self.drive.churns() };
        let order = Order { seed: self.seed, pipeline: self.pipeline, place, shared };
        self.workload.compile(&order).map_err(|too_long| Error::Plan(too_long.to_string()))
    }

    /// Says what is wrong with the plan itself, before anything is opened.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Plan(what));
        let churns = self.drive.churns();
        let shortest = match (self.drive, self.until) {
            (Drive::Burst(burst), _) => burst.requests.into(),
            (_, Until::Elapsed(window)) => window.as_millis() as u64,
            (_, Until::Requests(n)) => n,
            (_, Until::Done) => u64::MAX,
        };
        if self.connections == 0 || self.threads == 0 || self.pipeline == 0 {
            return refuse("connections, threads and pipeline must each be at least 1".into());
        }
        if self.pipeline > Self::MAX_PIPELINE {
            return refuse(format!(
                "a pipeline of {} is more than {} requests per connection",
                self.pipeline,
                Self::MAX_PIPELINE
            ));
        }
        let outstanding = self.connections.saturating_mul(self.pipeline);
        if outstanding.saturating_add(self.idle + self.passing) > Self::MAX_OUTSTANDING {
            return refuse(format!(
                "{} connections with {} requests each are more than {} outstanding requests",
                self.connections,
                self.pipeline,
                Self::MAX_OUTSTANDING
            ));
        }
        if churns && self.pipeline > 1 {
            return refuse("with a connection per request the pipeline must be 1".into());
        }
        if let Drive::Burst(Burst { instances, .. }) = self.drive
            && (instances == 0 || !self.connections.is_multiple_of(instances as usize))
        {
            return refuse(format!(
                "a burst of {instances} instances cannot share {} connections equally",
                self.connections
            ));
        }
        if matches!(self.drive, Drive::Burst(_)) != (self.until == Until::Done) {
            return refuse(
                "a burst ends when it is done, and nothing else does: no window of time or number of \
                 requests with it"
                    .into(),
            );
        }
        if self.stalled > self.idle {
            return refuse(format!(
                "{} connections that do not read are more than the {} idle ones that they are part of",
                self.stalled, self.idle
            ));
        }
        if self.stalled > 0 && self.tls.is_some() {
            return refuse("connections that do not read are plain; TLS is not supported".into());
        }
        if self.stalled > 0 && !self.workload.is_pushed() {
            return refuse(format!(
                "connections that do not read apply to servers that send unasked, such as hub; this load \
                 runs {}",
                self.workload.name()
            ));
        }
        if self.passing > 0 && !self.workload.is_pushed() {
            return refuse(format!(
                "members that come and go apply to servers that send unasked, such as hub; this load runs {}, \
                 for which churn is a connection per request",
                self.workload.name()
            ));
        }
        let by_time = matches!(self.until, Until::Elapsed(_));
        if self.passing > 0 && (churns || !by_time) {
            return refuse(
                "members that come and go need a window of time, and members that stay beside them"
                    .into(),
            );
        }
        if self.idle > 0 && (churns || !by_time) {
            return refuse(
                "idle connections need a window of time, and connections that are kept beside them"
                    .into(),
            );
        }
        match self.drive {
            Drive::Open { rate, .. } if rate.get() > Self::MAX_RATE => refuse(format!(
                "{rate} requests per second are more than a load can make; at most {} can be asked \
                 for",
                Self::MAX_RATE
            )),
            Drive::Open { .. } if !by_time => refuse("a rate needs a window of time".into()),
            Drive::Bounded { .. } if !by_time => {
                refuse("a number of requests in flight needs a window of time".into())
            }
            _ => Ok(()),
        }?;
        if shortest == 0 {
            return refuse("the window must have at least 1 ms or 1 request".into());
        }
        if self.timeout.is_zero() || self.timeout > Self::MAX_TIMEOUT {
            return refuse(format!(
                "the timeout is {:?}; it must be above 0 and at most {:?}",
                self.timeout,
                Self::MAX_TIMEOUT
            ));
        }
        Ok(())
    }
}

/// Why there is no result at all. A contender that answers wrongly or dies under load is no error:
/// that stands in the [`crate::Tally`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan contradicts itself or a limit.
    #[error("{0}")]
    Plan(String),
    /// The descriptor limit is too low for the connections.
    #[error(
        "{wanted} connections need more descriptors than the load may have: {possible} connections are \
         possible; raise the hard limit (ulimit -Hn)"
    )]
    Descriptors {
        /// Connections asked for.
        wanted: usize,
        /// Connections for which descriptors would be left.
        possible: usize,
    },
    /// A load process failed. The others were ended.
    #[error("load process {number} of {processes} {because}")]
    Process {
        /// Its number, counted from 1.
        number: usize,
        /// How many there were.
        processes: usize,
        /// What happened, as the rest of a sentence.
        because: String,
    },
    /// Not all connections could be opened. One is open once its first reply came and was right.
    #[error("{opened} of {wanted} connections came to a first reply; last error: {last}")]
    NotOpened {
        /// Most connections that were open at a time.
        opened: usize,
        /// Connections asked for.
        wanted: usize,
        /// What the last attempt met.
        last: String,
    },
    /// TLS does not come to stand with this server: its certificate does not fit, or it speaks
    /// another protocol.
    #[error("{0}")]
    Tls(String),
    /// The machine refused something that the load itself needs.
    #[error("the load cannot {what}: {error}")]
    Machine {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}
