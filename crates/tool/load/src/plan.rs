//! The plan of a load. Nothing here performs I/O.

use crate::{Error, Tls};
use regatta_record::{Burst, Drive, Machines, Part, Stage};
use regatta_script::{CompileOptions, Compiled, Destination, Pushes, Workload};
use serde::{Deserialize, Serialize};
use std::{net::SocketAddr, path::PathBuf, sync::atomic::AtomicU64, time::Duration};

/// One load: the server, the requests, the number of connections, and the duration. Load processes get it as JSON.
/// Except for CPU numbers and paths, nothing in it is specific to one machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The server.
    pub target: SocketAddr,
    /// Further nodes of the server, which serve the same messages: connections are spread over all nodes, slot
    /// `n` at node `n` modulo their number, the server itself first. Only where the server pushes messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// The Unix socket of the server; then `target` is not used. If the server's queue of new connections
    /// is full, connecting fails, and is retried after a pause.
    pub unix: Option<PathBuf>,
    /// TLS settings; `None` for plain TCP.
    pub tls: Option<Tls>,
    /// The requests to send and the replies to expect.
    pub workload: Workload,
    /// The host that requests name, in protocols that have one.
    pub host: String,
    /// The path of a built-in workload, without the query, or the database of a store, e.g.
    /// `/5`; `None`: the workload's default.
    pub path: Option<String>,
    /// Active connections, which send the requests, open at a time.
    pub connections: usize,
    /// Additional connections that send one request when they open, to confirm that the server
    /// accepted them, and are silent from then on. They are open before the window. One that the
    /// server closes unannounced is counted as an error and reopened like the others. One whose close
    /// the server announced is reopened after a pause, which doubles as long as the first reply
    /// announces the close. Only with [`Until::Elapsed`], and not with [`Drive::Churn`].
    pub idle: usize,
    /// How many of the idle connections stop reading after their first reply. They have a small receive
    /// buffer, so they are slow consumers where the server pushes messages. Messages to them are not
    /// checked, and their close is not noticed.
    pub stalled: usize,
    /// Additional members that join and leave a server that pushes messages, from the warm-up to the end
    /// of the window. Each stays for a random time of 0 to 2 s after its first reply, so about as many
    /// leave per second as there are. A leaving member waits for every message sent before it began to
    /// leave, and then closes: half of them with a Close frame that the server must answer, half with a
    /// reset. A new member replaces it at once. Members send no request except the one that opens their
    /// connection. Only with [`Until::Elapsed`], and not with [`Drive::Churn`].
    pub passing: usize,
    /// Requests outstanding on each connection, at most [`Plan::MAX_PIPELINE`].
    pub pipeline: usize,
    /// When requests are sent.
    ///
    /// [`Drive::Closed`]: each reply triggers the next request.
    ///
    /// [`Drive::Open`]: at most [`Plan::MAX_RATE`] requests per second, scheduled ahead from `seed`.
    /// Each is sent when it is due, on the connection that has been free longest (with fewer than
    /// `pipeline` outstanding). If none is free, requests queue. A request that queues for longer than
    /// `timeout` is given up, and so is every request still queued 1 s (or `timeout`, if shorter) after
    /// the window: see [`crate::OpenTally::counts`]. Latency counts from the intended send. If the
    /// server announced the close of a connection, the next request that takes the connection reopens
    /// it, and its latency includes the connect. The warm-up has a separate schedule at the same rate.
    /// Only with [`Until::Elapsed`].
    ///
    /// [`Drive::Bounded`]: connections take turns, the one that has been free longest first, and each
    /// has at most `pipeline` requests outstanding. When a lost connection is reopened, its first
    /// request does not count towards the bound. A connection whose close the server announced is
    /// reopened in its turn. Only with [`Until::Elapsed`]. There are at most as many load threads as
    /// requests in flight, unless the server pushes messages.
    ///
    /// [`Drive::Churn`]: every request has its own connection: connect, send, read the reply, close.
    /// Latency counts from before the connect. In workloads with conversations of several steps, every
    /// conversation has its own connection, and the latency of later steps counts from their write. The
    /// pipeline must be 1. For a loopback IPv4 target, connections use 126 source addresses in turn. For
    /// any other target the kernel chooses the source, and its ports suffice for about 470 connections
    /// per second (28,000 per minute) unless `net.ipv4.tcp_tw_reuse` is 1. When they run out, connecting
    /// fails with "cannot assign requested address"; the failure is counted and the connect retried.
    ///
    /// [`Drive::Burst`]: load instances that start together, each with an equal share of the
    /// connections. Every connection connects, sends its requests, reads the replies and closes. There
    /// is no warm-up, and the window opens before the first connect, so that connecting is included; all
    /// connections are opened at once. [`crate::Tally::instances_ns`] is the time that each instance took. A connection that cannot be
    /// opened is retried after a pause. One that is lost later is not: its requests without a reply,
    /// including those not sent yet, count as errors of the kind of the loss. There are at most as many
    /// load threads as instances. Only with [`Until::Done`].
    pub drive: Drive,
    /// How long before a send of an open loop the load thread stops sleeping and spins, because a
    /// sleeping thread wakes late ([`Plan::SPIN`] is a good value). Use zero if the load shares its
    /// CPUs with the server: spinning would take CPU from it. No thread spins while no connection is
    /// free.
    pub spin: Duration,
    /// The load threads never sleep in the warm-up and the window: they poll epoll continuously. Then no
    /// reply has to wake a CPU. The kernel would charge that wake-up to the server that sent the reply;
    /// over loopback this cost is large and varies with the state of the machine, and over a network
    /// it does not exist. Do not use it if the load shares its CPUs with the server.
    pub busy_poll: bool,
    /// Load threads, each with its own loop and its own share of the connections.
    pub threads: usize,
    /// CPUs that the load threads are pinned to, round-robin; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Maximum time for a reply; at most [`Plan::MAX_TIMEOUT`].
    pub timeout: Duration,
    /// The run is given up if no further connection opens for this long ([`Plan::PATIENCE`] is a good
    /// value), or for 0.2 s more than `timeout` if that is longer: a connection is open when its first
    /// reply has arrived. A server that answers nothing for this long plus `timeout` counts as dead.
    pub patience: Duration,
    /// The warm-up before the measured window. Not used with [`Until::Requests`] and [`Until::Done`].
    pub warm_up: WarmUp,
    /// When the measured window ends.
    pub until: Until,
    /// The share of the requests that may fail, above 0 and up to 1. After a wrong reply the load counts
    /// it and continues, on the same connection if the protocol permits that. The load does not compare
    /// the share itself; the caller does. `None`: a wrong reply ends the run, as it must in a race.
    pub tolerates: Option<f64>,
    /// All connections must get the pushed messages in one order. Otherwise only those of one sender have an
    /// order.
    #[serde(default)]
    pub in_one_order: bool,
    /// The server may announce that it has lost pushed messages, which is counted apart
    /// ([`regatta_record::AnnouncedLosses`]). Otherwise that is an error. Not with members that join and leave.
    #[serde(default)]
    pub allows_gaps: bool,
    /// Holds back the last byte of a few requests for 50 ms, in the warm-up and after the window. A
    /// reply that arrives before that byte is wrong, because the server cannot know the request yet. Has
    /// no effect with TLS, or without a window of a fixed duration. After the window it applies only to
    /// connections that are kept in a closed loop.
    pub withholds: bool,
    /// Connections to a loopback IPv4 target come from a network of 127.0.0.0/8 that the seed selects,
    /// not from 127.0.0.1, so that a server cannot know the clients' addresses in advance.
    pub draws_sources: bool,
    /// Reports the counts of each second of the window in [`crate::Progress::seconds`], while the load
    /// runs. Each load thread needs memory for three histograms then, instead of one.
    pub seconds: bool,
    /// Parts of the window of an open loop with a rate of their own, see [`Plan::in_stages`], which also
    /// sets the drive and the length of the window. Empty: the window has the rate of the drive.
    pub stages: Vec<Stage>,
    /// The machines of the load, if there are several and its connections must know of each other. Their
    /// members stay from start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<Machines>,
    /// Seed of the requests, of the schedule of an open loop, and of most other random choices.
    pub seed: u64,
}

/// A further node of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its address.
    pub target: SocketAddr,
    /// The host that requests to it name.
    pub host: String,
}

/// How the warm-up before the measured window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarmUp {
    /// This long, to within a few milliseconds; zero for none.
    Fixed(Duration),
    /// Until the rate is steady and both minimums are reached, or `longest` is over. It is steady when
    /// the rates of the last three slices of 100 ms lie within 10% of one another. The minimums come
    /// from an earlier observation of the server.
    Steady {
        /// Minimum duration.
        least: Duration,
        /// Minimum number of requests.
        requests: u64,
        /// Maximum duration: after it the window opens in any case.
        longest: Duration,
    },
    /// Until the caller decides that the server is warm: [`crate::LoadObserver::is_warm`].
    Judged {
        /// Maximum duration: after it the window opens in any case.
        longest: Duration,
    },
}

impl WarmUp {
    /// Until the rate is steady, for at most `longest`.
    pub fn steady(longest: Duration) -> WarmUp {
        WarmUp::Steady { least: Duration::ZERO, requests: 0, longest }
    }
}

/// When the measured window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// After this long.
    Elapsed(Duration),
    /// When this many requests were sent and are settled (answered or lost). The server receives
    /// exactly this many, plus repeats of those that it left unanswered after it announced the close
    /// of their connection. There is no warm-up, and the window opens before the first connect, so that
    /// connecting is included; all connections are opened at once. With fewer requests than connections,
    /// only as many connections as requests are opened. On a hub, and where connections store values first,
    /// all connections are opened first, each sends one additional request to join, and then the window
    /// opens (not with [`Drive::Churn`]).
    Requests(u64),
    /// When every connection of a burst is finished: with [`Drive::Burst`], and only with it.
    Done,
}

impl Plan {
    /// Maximum number of requests outstanding on one connection.
    pub const MAX_PIPELINE: usize = 65_536;
    /// Maximum number of requests outstanding in total: each takes 8 bytes, in an open loop 24.
    pub const MAX_OUTSTANDING: usize = 1 << 26;
    /// Maximum of [`Plan::timeout`]. The latency histogram covers twice that.
    pub const MAX_TIMEOUT: Duration = Duration::from_secs(120);
    /// The same if replies may come in any order: each takes about 250 bytes.
    pub const MAX_STREAMS: usize = 1 << 22;
    /// Maximum number of requests per second of an open loop: several times what a few threads can send.
    pub const MAX_RATE: u32 = 10_000_000;
    /// A good value for [`Plan::spin`] on a CPU that only the load uses.
    pub const SPIN: Duration = Duration::from_micros(50);
    /// A good value for [`Plan::patience`].
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// A closed loop of one connection, one request at a time, on any CPU, for a second without a
    /// warm-up. Other plans start from this one.
    pub fn closed(target: SocketAddr, workload: Workload) -> Plan {
        Plan {
            target,
            nodes: Vec::new(),
            unix: None,
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
            in_one_order: false,
            allows_gaps: false,
            withholds: false,
            draws_sources: false,
            seconds: false,
            stages: Vec::new(),
            machines: None,
            seed: 1,
        }
    }

    /// The same plan with no more connections than requests. If all connections join first, all stay:
    /// on a hub, each receives what the others send.
    pub fn needed(&self) -> Plan {
        let connections = match self.until {
            Until::Requests(_) if self.joins_first() => self.connections,
            Until::Requests(n) => self.connections.min(usize::try_from(n).unwrap_or(usize::MAX)),
            Until::Elapsed(_) | Until::Done => self.connections,
        };
        Plan { connections, ..self.clone() }
    }

    /// Maximum number of load threads that have work. Connections that send no requests still read the
    /// messages pushed to them, so their threads have work without a request in flight.
    pub fn most_threads(&self) -> usize {
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

    /// The number of active connections of a part of the plan, and the number of requests that they may
    /// send. Of `n` items, the part gets `share(n)`.
    pub(crate) fn share(&self, share: impl Fn(usize) -> usize) -> (usize, u64) {
        match (self.drive, self.until) {
            // One thread runs all connections of an instance.
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

    /// Whether all connections are opened before a number of requests is counted. Otherwise the first
    /// broadcasts of a hub would go to a few members only, and storing the initial values would be
    /// timed.
    pub(crate) fn joins_first(&self) -> bool {
        matches!(self.until, Until::Requests(_))
            && (self.workload.is_pushed() || self.workload.prepares())
            && !self.drive.churns()
    }

    /// Maximum number of connections of one of `processes` load processes that wait for their first reply at a time,
    /// if no due request opens them. Where the window opens before the first connect, all are opened at once, as
    /// `ab -c` does: their number is that of the clients which the server has to accept. Otherwise opening is not
    /// measured, and they are fewer than the shortest accept queues in practice (100 and 128).
    pub(crate) fn most_opening(&self, processes: usize) -> usize {
        const OVER_ALL: usize = 64;
        let at_once = !matches!(self.until, Until::Elapsed(_)) && !self.joins_first();
        if at_once { self.connections } else { (OVER_ALL / processes).max(1) }
    }

    /// Number of requests that join connections before the counted ones: the first of each connection.
    pub(crate) fn joining(&self) -> usize {
        if self.joins_first() { self.connections } else { 0 }
    }

    /// Maximum number of connections open at a time.
    pub fn most_open(&self) -> usize {
        self.connections.saturating_add(self.idle).saturating_add(self.passing)
    }

    /// How many of these connections belong to `part`.
    pub fn connections_of(&self, part: Part) -> usize {
        let share = |n: usize| part.of_process(n as u64) as usize;
        let active = self.share(share).0;
        active.saturating_add(share(self.idle)).saturating_add(share(self.passing))
    }

    /// Compiles the exchanges of this plan. `shared` is the memory that load processes share, if there
    /// are several.
    pub(crate) fn compile(&self, shared: Option<&'static [AtomicU64]>) -> Result<Compiled, Error> {
        let place = Destination {
            host: &self.host,
            path: self.path.as_deref(),
            closes: self.drive.churns(),
            timeout: Some(self.timeout),
        };
        let own = (!self.nodes.is_empty()).then_some(self.host.as_str());
        let further = self.nodes.iter().map(|node| node.host.as_str());
        let hosts: Vec<&str> = own.into_iter().chain(further).collect();
        let pushes = Pushes {
            hosts: &hosts,
            in_one_order: self.in_one_order,
            may_be_lost: self.allows_gaps,
            tolerates: self.tolerates.is_some(),
        };
        let (seed, pipeline, machines) = (self.seed, self.pipeline, self.machines.as_ref());
        let order = CompileOptions { seed, pipeline, place, shared, machines, pushes };
        self.workload.compile(&order).map_err(|too_long| Error::Plan(too_long.to_string()))
    }

    /// Checks the plan for contradictions, before anything is opened.
    ///
    /// # Errors
    /// [`Error::Plan`] for the first contradiction.
    #[expect(clippy::too_many_lines, reason = "a check for each setting")]
    pub fn check(&self) -> Result<(), Error> {
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
        let multiplexed = self.workload.is_multiplexed();
        let most = if multiplexed { Self::MAX_STREAMS } else { Self::MAX_OUTSTANDING };
        // Streams take memory on idle connections, too.
        let busy = self.connections.saturating_add(if multiplexed { self.idle } else { 0 });
        let outstanding = busy.saturating_mul(self.pipeline);
        if outstanding.saturating_add(self.idle).saturating_add(self.passing) > most {
            return refuse(format!(
                "{} connections with {} requests each are more than {most} outstanding requests",
                self.connections, self.pipeline,
            ));
        }
        if churns && self.pipeline > 1 {
            return refuse("with a connection per request, the pipeline must be 1".into());
        }
        if self.pipeline > 1 && self.workload.is_sequential() {
            return refuse(format!(
                "the workload {} has conversations, whose steps follow one another, but the server \
                 processes {} requests of a connection at the same time: use a pipeline of 1",
                self.workload.name(),
                self.pipeline
            ));
        }
        if let Drive::Burst(Burst { instances, .. }) = self.drive
            && (instances == 0 || !self.connections.is_multiple_of(instances as usize))
        {
            return refuse(format!(
                "{} connections cannot be divided equally among {instances} instances of a burst",
                self.connections
            ));
        }
        if matches!(self.drive, Drive::Burst(_)) != (self.until == Until::Done) {
            return refuse(
                "a burst takes neither a duration nor a number of requests; every other load needs \
                 one of them"
                    .into(),
            );
        }
        if self.stalled > self.idle {
            return refuse(format!(
                "{} stalled connections are more than the {} idle ones that they are part of",
                self.stalled, self.idle
            ));
        }
        if self.stalled > 0 && self.tls.is_some() {
            return refuse("stalled connections do not support TLS".into());
        }
        if self.stalled > 0 && !self.workload.is_pushed() {
            return refuse(format!(
                "stalled connections need a workload in which the server pushes messages, e.g. hub; \
                 this load runs {}",
                self.workload.name()
            ));
        }
        if self.passing > 0 && !self.workload.is_pushed() {
            return refuse(format!(
                "members that join and leave need a workload in which the server pushes messages, \
                 e.g. hub; this load runs {}. To open a connection per request, use churn",
                self.workload.name()
            ));
        }
        let by_time = matches!(self.until, Until::Elapsed(_));
        if self.passing > 0 && (churns || !by_time) {
            return refuse(
                "members that join and leave need a load with a duration, and members that stay"
                    .into(),
            );
        }
        if self.idle > 0 && (churns || !by_time) {
            return refuse(
                "idle connections need a load with a duration, and connections that are kept open"
                    .into(),
            );
        }
        match self.drive {
            Drive::Open { rate, .. } if rate.get() > Self::MAX_RATE => refuse(format!(
                "a rate of {rate} requests per second is too high; the maximum is {}",
                Self::MAX_RATE
            )),
            Drive::Open { .. } if !by_time => refuse("a rate needs a load with a duration".into()),
            Drive::Bounded { .. } if !by_time => {
                refuse("a number of requests in flight needs a load with a duration".into())
            }
            _ => Ok(()),
        }?;
        self.check_stages()?;
        self.check_machines()?;
        self.check_pushes()?;
        if shortest == 0 {
            return refuse("the window must last at least 1 ms or 1 request".into());
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

impl Plan {
    /// The address of the node that a slot is at.
    pub(crate) fn target_of(&self, slot: usize) -> SocketAddr {
        match slot % (self.nodes.len() + 1) {
            0 => self.target,
            node => self.nodes[node - 1].target,
        }
    }

    /// Checks what concerns pushed messages.
    fn check_pushes(&self) -> Result<(), Error> {
        let name = self.workload.name();
        let refuse = |what: String| Err(Error::Plan(what));
        let is_given = [
            (!self.nodes.is_empty(), "several nodes"),
            (self.in_one_order, "one order of the messages"),
            (self.allows_gaps, "announced losses"),
        ];
        let Some((_, what)) = is_given.into_iter().find(|(is_given, _)| *is_given) else {
            return Ok(());
        };
        if !self.workload.is_pushed() || self.workload.cost_per().is_request() {
            return refuse(format!(
                "{what}: needs a workload whose messages are pushed to all members, e.g. hub; this load runs \
                 {name}"
            ));
        }
        if self.drive.churns() {
            return refuse(format!(
                "{what}: needs members that stay, not a connection per request"
            ));
        }
        if self.unix.is_some() && !self.nodes.is_empty() {
            return refuse("several nodes: a Unix socket belongs to one".into());
        }
        self.check_nodes()?;
        if self.machines.is_some() {
            return refuse(format!("{what}: not with a load from several machines"));
        }
        if self.allows_gaps && self.passing > 0 {
            return refuse("announced losses: not with members that join and leave".into());
        }
        Ok(())
    }

    /// Checks that there are as many nodes as are named, and that each has a sending member.
    fn check_nodes(&self) -> Result<(), Error> {
        let all = self.nodes.len() + 1;
        for node in 1..all {
            let address = self.target_of(node);
            if (0..node).any(|other| self.target_of(other) == address) {
                return Err(Error::Plan(format!(
                    "several nodes: two of them have the address {address}; each must be another server"
                )));
            }
        }
        if self.connections < all {
            return Err(Error::Plan(format!(
                "several nodes: {all} nodes need at least {all} connections, one at each; this load has {}",
                self.connections
            )));
        }
        Ok(())
    }

    /// Checks that the members of a hub on several machines all stay. Broadcasts to one that leaves could
    /// only be counted by a clock that all machines share.
    fn check_machines(&self) -> Result<(), Error> {
        let Some(machines) = &self.machines else { return Ok(()) };
        let refused = [
            (self.passing > 0, "members that join and leave"),
            (self.stalled > 0, "members that stop reading"),
            (self.drive.churns(), "a connection per request"),
            (self.tolerates.is_some(), "tolerated errors"),
            (machines.count() > Machines::MOST, "more than 16 machines"),
            (!machines.is_possible(self.threads as u32), "machines without all of its threads"),
        ];
        match refused.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, what)) => Err(Error::Plan(format!(
                "a hub that is loaded from several machines excludes {what}"
            ))),
            None => Ok(()),
        }
    }
}

/// A number of processes and of load threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Number of processes. 1: the calling process alone.
    pub processes: usize,
    /// Number of load threads over all processes: a multiple of `processes`.
    pub threads: usize,
}

impl Split {
    /// The part of process `process`, counted from 0.
    pub(crate) fn part(self, process: usize) -> Part {
        Part::equal(process as u32, self.processes as u32, self.threads as u32)
    }
}
