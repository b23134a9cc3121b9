//! What a load process counted. Counts of several processes are put together without loss: the same
//! samples give the same counts, however many processes recorded them. There is no moment in it, only
//! lengths of time, so that no two clocks need agree.

use crate::{ArrivalsSeen, Errors, Exchange, FORMAT, TlsSpoken, Unlike, hdr};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one load process counted, or several together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Requests answered rightly inside the measured window.
    pub requests: u64,
    /// Length of the window by the process's own clock, in nanoseconds; of several processes the
    /// longest, so that no rate is told too high. 0: it never opened.
    pub window_ns: u64,
    /// Right replies in each slice of the window, all of them.
    pub slices: Vec<u64>,
    /// Length of a slice in nanoseconds.
    pub slice_ns: u64,
    /// Errors by kind, over the whole run.
    pub errors: Errors,
    /// Why connections were lost or not opened, in words, and how often.
    pub causes: BTreeMap<String, u64>,
    /// A reply of which only a part came before its connection was lost, where there was one.
    pub first_unfinished: Option<Exchange>,
    /// Requests inside the window that got no reply within the limit.
    pub timeouts_in_window: u64,
    /// The first wrong exchange.
    pub first_wrong: Option<FirstWrong>,
    /// Latency in nanoseconds.
    #[serde(with = "hdr")]
    pub histogram: Histogram<u64>,
    /// CPU of the load threads inside the window, user and system, in nanoseconds.
    pub load_cpu_ns: u64,
    /// Of that: spent on polling with nothing to do.
    pub spun_ns: u64,
    /// Time that the load threads inside the window were runnable and had no CPU, in nanoseconds;
    /// `None` where a kernel does not tell.
    pub run_delay_ns: Option<u64>,
    /// How often load threads inside the window were given a CPU, likewise.
    pub turns: Option<u64>,
    /// Connections that came open over the whole run.
    pub connections_opened: u64,
    /// Of a burst: from the window's begin to the last reply of each instance, by its number, in
    /// nanoseconds; 0 for one that got none.
    pub instances_ns: BTreeMap<u32, u64>,
    /// With a rate: what became of what was due.
    pub open_loop: Option<OpenCounted>,
    /// How TLS was spoken, if it was.
    pub tls: Option<TlsSpoken>,
}

/// A wrong exchange, and when it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstWrong {
    /// How long after the process was told to begin, in nanoseconds. Processes are told at the same
    /// moment, as far as a message takes no time.
    pub after_ns: u64,
    /// What was seen.
    pub exchange: Exchange,
}

/// What became of the requests of an open loop that were due inside the window: each is exactly one
/// of answered (in all of the histograms), timed out, lost, unsent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenCounted {
    /// Requests whose intended send lay inside the window.
    pub due: u64,
    /// Of those: not written.
    pub unsent: u64,
    /// Of those: written late ([`crate::OpenLoop::LATE_NS`]).
    pub late: u64,
    /// Of those: written, and without a reply within the limit.
    pub timed_out: u64,
    /// Of those: written, and lost otherwise.
    pub lost: u64,
    /// Nanoseconds from the intended send until a connection was free.
    #[serde(with = "hdr")]
    pub wait: Histogram<u64>,
    /// Nanoseconds from then until the write.
    #[serde(with = "hdr")]
    pub lag: Histogram<u64>,
    /// Nanoseconds from the write to the reply.
    #[serde(with = "hdr")]
    pub service: Histogram<u64>,
    /// How the requests arrived.
    pub arrivals: ArrivalsSeen,
}

impl Counted {
    /// Nothing yet, of a load whose histograms are like `empty` and whose slices have this length in
    /// nanoseconds.
    pub fn nothing(empty: Histogram<u64>, slice_ns: u64) -> Counted {
        Counted {
            format: FORMAT,
            requests: 0,
            window_ns: 0,
            slices: Vec::new(),
            slice_ns,
            errors: Errors::default(),
            causes: BTreeMap::new(),
            first_unfinished: None,
            timeouts_in_window: 0,
            first_wrong: None,
            histogram: empty,
            load_cpu_ns: 0,
            spun_ns: 0,
            run_delay_ns: Some(0),
            turns: Some(0),
            connections_opened: 0,
            instances_ns: BTreeMap::new(),
            open_loop: None,
            tls: None,
        }
    }

    /// Adds what another process, or another thread, counted.
    ///
    /// # Errors
    /// Where the two are not of the same load: histograms of another range or precision, slices of
    /// another length, an instance of a burst in both. Nothing is added then.
    pub fn add(&mut self, other: Counted) -> Result<(), Unlike> {
        self.check_like(&other)?;
        self.requests += other.requests;
        self.window_ns = self.window_ns.max(other.window_ns);
        self.slices.resize(self.slices.len().max(other.slices.len()), 0);
        self.slices.iter_mut().zip(&other.slices).for_each(|(sum, n)| *sum += n);
        self.errors.add(&other.errors);
        for (cause, times) in other.causes {
            *self.causes.entry(cause).or_default() += times;
        }
        self.first_unfinished = self.first_unfinished.take().or(other.first_unfinished);
        self.timeouts_in_window += other.timeouts_in_window;
        self.first_wrong = match (self.first_wrong.take(), other.first_wrong) {
            (Some(ours), Some(theirs)) if theirs.after_ns < ours.after_ns => Some(theirs),
            (ours, theirs) => ours.or(theirs),
        };
        hdr::add(&mut self.histogram, &other.histogram)?;
        self.load_cpu_ns += other.load_cpu_ns;
        self.spun_ns += other.spun_ns;
        self.run_delay_ns = self.run_delay_ns.zip(other.run_delay_ns).map(|(a, b)| a + b);
        self.turns = self.turns.zip(other.turns).map(|(a, b)| a + b);
        self.connections_opened += other.connections_opened;
        self.instances_ns.extend(other.instances_ns);
        match (&mut self.open_loop, other.open_loop) {
            (Some(ours), Some(theirs)) => ours.add(&theirs)?,
            (ours @ None, theirs) => *ours = theirs,
            (Some(_), None) => {}
        }
        self.tls = self.tls.take().or(other.tls);
        Ok(())
    }

    fn check_like(&self, other: &Counted) -> Result<(), Unlike> {
        if self.format != other.format {
            let (ours, theirs) = (self.format, other.format);
            return Err(Unlike(format!("one is of format {ours}, another of format {theirs}")));
        }
        if self.slice_ns != other.slice_ns {
            let (ours, theirs) = (self.slice_ns, other.slice_ns);
            return Err(Unlike(format!("slices of {ours} ns and of {theirs} ns")));
        }
        if let Some(twice) = other.instances_ns.keys().find(|i| self.instances_ns.contains_key(i)) {
            return Err(Unlike(format!("instance {twice} of the burst was counted twice")));
        }
        hdr::check_like(&self.histogram, &other.histogram)?;
        match (&self.open_loop, &other.open_loop) {
            (Some(ours), Some(theirs)) => ours.check_like(theirs),
            _ => Ok(()),
        }
    }

    /// Says what contradicts itself in what a process told of itself; `rate` is whether the load was
    /// an open loop.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, rate: bool) -> Result<(), Unlike> {
        let refuse = |what: String| Err(Unlike(what));
        let sum: u64 = self.slices.iter().sum();
        if self.format != FORMAT {
            return refuse(format!("format {}, and this program knows {FORMAT}", self.format));
        }
        if sum != self.requests {
            return refuse(format!("{} requests, and {sum} in their slices", self.requests));
        }
        if self.spun_ns > self.load_cpu_ns {
            return refuse("more CPU spun than used".into());
        }
        if self.open_loop.is_some() != rate {
            return refuse("an open loop where there is none, or the other way round".into());
        }
        let latencies = self.histogram.len();
        let Some(open) = &self.open_loop else {
            return match latencies == self.requests {
                true => Ok(()),
                false => refuse(format!("{} requests with {latencies} latencies", self.requests)),
            };
        };
        let parts = [&open.wait, &open.lag, &open.service];
        if parts.iter().any(|part| part.len() != latencies) {
            return refuse("latencies that do not all have their three parts".into());
        }
        let settled = latencies + open.unsent + open.timed_out + open.lost;
        if settled != open.due {
            return refuse(format!("{} requests due, and the outcome of {settled}", open.due));
        }
        parts.iter().try_for_each(|part| hdr::check_like(&self.histogram, part))
    }
}

impl OpenCounted {
    fn add(&mut self, other: &OpenCounted) -> Result<(), Unlike> {
        self.due += other.due;
        self.unsent += other.unsent;
        self.late += other.late;
        self.timed_out += other.timed_out;
        self.lost += other.lost;
        hdr::add(&mut self.wait, &other.wait)?;
        hdr::add(&mut self.lag, &other.lag)?;
        hdr::add(&mut self.service, &other.service)?;
        self.arrivals.add(&other.arrivals)
    }

    fn check_like(&self, other: &OpenCounted) -> Result<(), Unlike> {
        hdr::check_like(&self.wait, &other.wait)?;
        hdr::check_like(&self.lag, &other.lag)?;
        hdr::check_like(&self.service, &other.service)?;
        self.arrivals.check_like(&other.arrivals)
    }
}
