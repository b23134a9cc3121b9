//! What the rounds of one cell showed: figures by pass, totals, and what went wrong.

use crate::{
    latency::{self, Latencies},
    operations::Operations,
    roles::{self, Role},
    signals::Signals,
    statistics::{Series, log, mean, median},
    took::Took,
};
use regatta_record::{
    Asked, Drive, Errors, Exchange, KernelMemorySource, Kind, Latency, LoadShape, Operation,
    Outcome, ReplySeen, Round, Server, Settling, Unseen, UsageSource, Verdict,
};
use std::collections::BTreeSet;

/// One cell's rounds, read. Only rounds that finished enter figures, and a cell that is settled
/// without figures (disqualified, failed, skipped, cannot hold) has none at all.
#[derive(Debug, Default)]
pub struct Observed {
    /// Name of the contender.
    pub name: String,
    /// Rounds that are there, however they ended.
    pub there: u32,
    /// Rounds that entered the figures.
    pub finished: u32,
    /// Rounds in which the server was not observed, out of `finished`.
    pub unobserved: u32,
    /// The verdict, where it follows from how the rounds ended alone.
    pub settled: Option<Verdict>,
    /// Logarithm of server CPU per operation of the kind that costs are per (ns) by pass.
    pub cost: Series,
    /// Logarithm of server CPU per request (ns) by pass.
    pub cost_of_request: Series,
    /// The same without what a probe saw of the machine, where that was much: what contenders are
    /// compared by.
    pub compared: Series,
    /// Logarithm of what the probe read (ns) by pass, before the contender was started.
    pub probe: Series,
    /// The same after it was gone.
    pub probe_after: Series,
    /// How long its CPUs were at work after it had ended, in seconds, of the rounds that tell.
    pub busy_after_s: Vec<f64>,
    /// Logarithm of requests per second by pass.
    pub rate: Series,
    /// Logarithm of load CPU per operation likewise (ns) by pass.
    pub load_cost: Series,
    /// Logarithm of the mean wall time of an instance of a burst (s) by pass.
    pub instance: Series,
    /// Logarithm of requests per second of the load beside, by pass.
    pub beside: Series,
    /// The slowest instance of all rounds, in seconds.
    pub slowest_instance_s: Option<f64>,
    /// Right answers.
    pub requests: u64,
    /// Errors in rounds that finished all the same.
    pub errors: Errors,
    /// What the histograms say.
    pub latencies: Latencies,
    /// What was counted of further kinds of operations.
    pub operations: Vec<Operations>,
    /// The kind of operation whose latency is that of the cell.
    pub latency_of: Operation,
    /// What the machine did.
    pub signals: Signals,
    /// Why a histogram could not be read, where one could not.
    pub unreadable: Option<String>,
    /// Median over rounds.
    pub memory_bytes: Option<u64>,
    /// User memory that a connection added, bytes, median over rounds.
    pub user_per_connection: Option<f64>,
    /// The kernel's, likewise.
    pub kernel_per_connection: Option<f64>,
    /// Where that was read.
    pub kernel_source: Option<KernelMemorySource>,
    /// Of both kinds, per operation likewise, over the rounds that were observed.
    pub switches_per_request: Option<f64>,
    /// CPU time over (window × CPUs), of all observed rounds together.
    pub server_busy: Option<f64>,
    /// CPU time of the busiest thread over the window, of all rounds together that tell.
    pub busiest_thread: Option<f64>,
    /// What the load used of its CPUs, without what it spun.
    pub load_busy: Option<f64>,
    /// What it spun.
    pub load_spun: Option<f64>,
    /// CPUs of server and load.
    pub cpus: (u32, u32),
    /// What its roles took, where it has more than one.
    pub roles: Vec<Role>,
    /// How it warmed up, where that was seen.
    pub settling: Option<Settling>,
    /// A reply.
    pub reply: Option<ReplySeen>,
    /// Rounds whose warm-up was shorter than was seen to be needed, out of `finished`.
    pub cut_short: u32,
    /// Members that came and went, warm-ups included.
    pub passed: u64,
    /// What it did that voids no figure: how many rounds remark on it, and what the first says.
    pub remark: Option<(u32, String)>,
    /// Somebody else served its port: in how many rounds, and what the first says.
    pub served_by_others: Option<(u32, String)>,
    /// A thread of it might run on other CPUs than it was given, likewise.
    pub left_its_cpus: Option<(u32, String)>,
    /// What its processes took for how many operations, by pass.
    pub took: Vec<Option<Took>>,
    /// Where the server's CPU time was read.
    pub sources: BTreeSet<&'static str>,
    /// Share of the CPU time that its processes which ended may have used beyond it, of all rounds
    /// together that tell.
    pub unseen: Option<f64>,
    /// Rounds in which that could not be bounded.
    pub unbounded: u32,
    /// `user + system` over the CPU time, of all observed rounds together.
    pub split_over_cpu: Option<f64>,
    /// Length of all windows together, in seconds.
    pub window_s: f64,
    /// Right answers by slice, a list for each round.
    pub slices: Vec<Vec<u64>>,
}

impl Observed {
    /// Reads a cell: `rounds` by pass, `None` where a pass is not there; `skipped` is why the
    /// contender did not take part. `asked` says per which kind of operation costs are, and of which kind
    /// the latency is.
    pub fn of(
        name: &str,
        skipped: Option<String>,
        rounds: &[Option<&Round>],
        asked: &Asked,
    ) -> Self {
        let there: Vec<&Round> = rounds.iter().flatten().copied().collect();
        let settled = settled(skipped, &there, &asked.cost_per);
        let void = Observed {
            name: name.to_owned(),
            there: there.len() as u32,
            cost: vec![None; rounds.len()],
            cost_of_request: vec![None; rounds.len()],
            compared: vec![None; rounds.len()],
            probe: vec![None; rounds.len()],
            probe_after: vec![None; rounds.len()],
            rate: vec![None; rounds.len()],
            load_cost: vec![None; rounds.len()],
            instance: vec![None; rounds.len()],
            beside: vec![None; rounds.len()],
            ..Observed::default()
        };
        match settled {
            Some(verdict) => Observed { settled: Some(verdict), ..void },
            None if there.is_empty() => void,
            None => void.with_figures(rounds, &there, asked),
        }
    }

    /// Adds the figures; every round of `there` finished with answers.
    fn with_figures(mut self, rounds: &[Option<&Round>], there: &[&Round], asked: &Asked) -> Self {
        let per = &asked.cost_per;
        let by_pass = |figure: &dyn Fn(&Round) -> Option<f64>| -> Series {
            rounds.iter().map(|r| r.and_then(figure).and_then(log)).collect()
        };
        let cost_per = |r: &Round, per: &Operation| {
            Some(r.server.as_ref()?.cpu_ns as f64 / r.count_of(per) as f64)
        };
        self.cost = by_pass(&|r| cost_per(r, per));
        self.cost_of_request = by_pass(&|r| cost_per(r, &Operation::REQUESTS));
        self.compared = self.cost.clone();
        let probe = |r: &Round, nth: usize| Some(r.machine?.probe_ns?[nth] as f64);
        self.probe = by_pass(&|r| probe(r, 0));
        self.probe_after = by_pass(&|r| probe(r, 1));
        let busy = there.iter().filter_map(|r| r.machine?.busy_after_ns);
        self.busy_after_s = busy.map(|ns| ns as f64 / 1e9).collect();
        self.rate = by_pass(&|r| Some(r.requests as f64 / (r.window_ns as f64 / 1e9)));
        self.load_cost = by_pass(&|r| Some(r.load_work_ns() as f64 / r.count_of(per) as f64));

        self.beside = by_pass(&|r| {
            let beside = r.background?;
            Some(beside.requests as f64 / (beside.window_ns as f64 / 1e9))
        });
        self.instance = by_pass(&|r| mean(&seconds(&r.instances_ns)));
        let instances = there.iter().flat_map(|r| seconds(&r.instances_ns));
        self.slowest_instance_s = instances.max_by(f64::total_cmp);

        self.finished = there.len() as u32;
        self.requests = there.iter().map(|r| r.requests).sum();
        there.iter().for_each(|r| self.errors.add(&r.errors));
        self.settling = there.iter().find_map(|round| round.settling);
        self.reply = there.iter().find_map(|round| round.reply);
        self.cut_short = there.iter().filter(|round| is_cut_short(round)).count() as u32;
        self.passed = there.iter().map(|round| round.passed).sum();
        self.remark = said(there, |r| r.remark.as_ref());
        self.served_by_others = said(there, |r| r.served_by_others.as_ref());
        self.left_its_cpus = said(there, |r| r.left_its_cpus.as_ref());
        self.took = rounds.iter().map(|r| r.and_then(|r| Took::of(r, per))).collect();
        self.roles = Role::all(rounds, per);
        self.window_s = there.iter().map(|r| r.window_ns as f64 / 1e9).sum();
        self.slices = there.iter().map(|r| r.slices.clone()).collect();
        let of_load = there.iter().map(|r| r.window_ns as f64 * f64::from(r.load_cpus)).sum();
        self.load_busy = fraction(there.iter().map(|r| r.load_work_ns() as f64).sum(), of_load);
        self.load_spun = fraction(there.iter().map(|r| r.load_spun_ns as f64).sum(), of_load);
        self.cpus.1 = there.iter().map(|r| r.load_cpus).max().unwrap_or(0);
        self.signals = Signals::of(there);
        match latency::read(there) {
            Ok(latencies) => self.latencies = latencies,
            Err(why) => self.unreadable = Some(why),
        }
        match Operations::all(rounds, &asked.latency_of) {
            Ok(operations) => self.operations = operations,
            Err(why) => self.unreadable = Some(why),
        }
        self.latency_of = asked.latency_of.clone();
        self.with_usage(there, per)
    }

    /// Latency of the kind of operation that was asked for: percentiles of all rounds, and 50, 90, 95, 99
    /// and 99.9 of each. `None` where there were none of that kind.
    pub fn latency(&self) -> Option<(&Latency, &[[Option<u64>; 5]])> {
        if self.latency_of.is_request() {
            return Some((&self.latencies.all, &self.latencies.by_round));
        }
        self.operations.iter().find_map(|one| one.latency(&self.latency_of))
    }

    /// The percentiles of that latency by pass: 50, 90, 95, 99 and 99.9, each where the pass has it.
    /// `None`: the pass was not run.
    pub fn latency_by_pass(&self) -> Vec<Option<[Option<u64>; 5]>> {
        let mut by_round = self.latency().map_or(&[][..], |(_, by_round)| by_round).iter();
        // Every round that was run has a rate; one without an answer fails its cell.
        let of_pass = |rate: &Option<f64>| rate.and_then(|_| by_round.next().copied());
        self.rate.iter().map(of_pass).collect()
    }

    /// Adds what was read of the contender's processes.
    fn with_usage(mut self, there: &[&Round], per: &Operation) -> Self {
        let seen: Vec<_> = there.iter().filter_map(|r| Some((*r, r.server.as_ref()?))).collect();
        self.unobserved = (there.len() - seen.len()) as u32;
        let cpu_ns: f64 = seen.iter().map(|(_, s)| s.cpu_ns as f64).sum();
        self.server_busy = fraction(
            cpu_ns,
            seen.iter().map(|(r, s)| r.window_ns as f64 * f64::from(s.usable_cpus())).sum(),
        );
        let bounded = || {
            seen.iter().filter_map(|(_, s)| match s.unseen? {
                Unseen::AtMostNs(ns) => Some((ns as f64, s.cpu_ns as f64)),
                Unseen::Unbounded => None,
            })
        };
        self.unseen =
            fraction(bounded().map(|(ns, _)| ns).sum(), bounded().map(|(_, cpu)| cpu).sum());
        let is_unbounded = |(_, s): &&(&Round, &Server)| s.unseen == Some(Unseen::Unbounded);
        self.unbounded = seen.iter().filter(is_unbounded).count() as u32;
        let busiest = || seen.iter().filter_map(|(r, s)| Some((r, s.busiest_thread_ns?)));
        self.busiest_thread = fraction(
            busiest().map(|(_, ns)| ns as f64).sum(),
            busiest().map(|(r, _)| r.window_ns as f64).sum(),
        );
        self.split_over_cpu =
            fraction(seen.iter().map(|(_, s)| s.user_ns as f64 + s.system_ns as f64).sum(), cpu_ns);
        self.switches_per_request = fraction(
            seen.iter().map(|(_, s)| (s.voluntary_switches + s.involuntary_switches) as f64).sum(),
            seen.iter().map(|(r, _)| r.count_of(per) as f64).sum(),
        );
        self.cpus.0 = seen.iter().map(|(_, s)| s.usable_cpus()).max().unwrap_or(0);
        if let Some((busy, cpus)) = roles::busiest(there) {
            (self.server_busy, self.cpus.0) = (Some(busy), cpus);
        }
        self.sources = seen.iter().map(|(_, s)| source_name(s)).collect();
        self.memory_bytes = median(seen.iter().map(|(_, s)| s.memory_bytes as f64).collect())
            .map(|bytes| bytes as u64);
        self.with_memory_of_connections(&seen)
    }

    /// Adds what each connection took. Bursts and churn leave none open to tell it.
    fn with_memory_of_connections(mut self, seen: &[(&Round, &Server)]) -> Self {
        let lasts = |load: &LoadShape| match load.drive {
            Drive::Closed | Drive::Bounded { .. } | Drive::Open { .. } => true,
            Drive::Churn | Drive::Burst(_) => false,
        };
        let lasting = || seen.iter().filter(|(r, _)| lasts(&r.load)).copied();
        let each = |r: &Round, bytes: i64| bytes as f64 / f64::from(r.load.open());
        let user = lasting().filter_map(|(r, s)| Some(each(r, s.user_growth_bytes?)));
        self.user_per_connection = median(user.collect());
        let kernel = lasting().filter_map(|(r, s)| Some(each(r, s.kernel_growth?.bytes)));
        self.kernel_per_connection = median(kernel.collect());
        self.kernel_source = lasting().find_map(|(_, s)| Some(s.kernel_growth?.source));
        self
    }
}

/// Whether the warm-up was shorter, or had fewer requests, than was seen to be needed.
fn is_cut_short(round: &Round) -> bool {
    round
        .warm_up
        .is_some_and(|done| done.ns < done.needed_ns || done.requests < done.needed_requests)
}

/// How many rounds say something, and what the first of them says.
fn said(rounds: &[&Round], what: impl Fn(&Round) -> Option<&String>) -> Option<(u32, String)> {
    let all: Vec<&String> = rounds.iter().filter_map(|round| what(round)).collect();
    all.first().map(|first| (all.len() as u32, (*first).clone()))
}

fn seconds(ns: &[u64]) -> Vec<f64> {
    ns.iter().map(|ns| *ns as f64 / 1e9).collect()
}

/// What follows from how the rounds ended. One wrong exchange disqualifies a cell and one failed
/// round fails it, however many went well: a contender that answers rightly six times of seven is
/// no contender. A round without one right answer failed too, and so did one without what costs are
/// `per`.
fn settled(skipped: Option<String>, there: &[&Round], per: &Operation) -> Option<Verdict> {
    if let Some(why) = skipped {
        return Some(Verdict::new(Kind::Skipped, why));
    }
    let n = there.len();
    let told = |kind, hits: Vec<(u32, String)>| {
        let (round, because) = hits.first()?;
        let text = format!("in {} of {n} rounds, first in round {round}: {because}", hits.len());
        Some(Verdict::new(kind, text))
    };
    let each = |why: &dyn Fn(&Round) -> Option<String>| -> Vec<(u32, String)> {
        there.iter().filter_map(|r| Some((r.round + 1, why(r)?))).collect()
    };
    let cannot_hold = there.iter().find_map(|r| match &r.outcome {
        Outcome::CannotHold { because } => Some(Verdict::new(Kind::CannotHold, because)),
        _ => None,
    });
    told(Kind::Disqualified, each(&wrong))
        .or_else(|| told(Kind::Failed, each(&|round| failure(round, per))))
        .or(cannot_hold)
}

/// Why a round disqualifies, with the first wrong exchange where one was seen.
fn wrong(round: &Round) -> Option<String> {
    match &round.outcome {
        Outcome::Disqualified { because, exchange: Some(exchange) } => {
            Some(format!("{}; {}", because.trim_end_matches('.'), told(exchange)))
        }
        Outcome::Disqualified { because, exchange: None } => Some(because.clone()),
        Outcome::Finished if round.errors.wrong_reply > 0 => {
            Some(format!("{} wrong replies were counted", round.errors.wrong_reply))
        }
        _ => None,
    }
}

fn told(e: &Exchange) -> String {
    let nth = e.reply_index + 1;
    format!(
        "sent {}, expected {}, received {} (reply {nth} on its connection)",
        e.sent, e.expected, e.received
    )
}

fn failure(round: &Round, per: &Operation) -> Option<String> {
    match &round.outcome {
        Outcome::Failed { because } => Some(because.clone()),
        Outcome::Finished if round.requests == 0 || round.window_ns == 0 => Some(
            "not one right answer inside the window; try a longer window or fewer connections"
                .to_owned(),
        ),
        Outcome::Finished if round.count_of(per) == 0 => Some(format!(
            "not one {} inside the window, and costs are per {}; try a longer window",
            per.one, per.one
        )),
        _ => None,
    }
}

fn fraction(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn source_name(server: &Server) -> &'static str {
    match server.source {
        // The clocks were held against a control group, and the better of the two was taken.
        UsageSource::ProcessClocks | UsageSource::CgroupV2 | UsageSource::CgroupV1
            if matches!(server.unseen, Some(Unseen::AtMostNs(_))) =>
        {
            "process clocks and cgroup"
        }
        UsageSource::ProcessClocks => "process clocks",
        UsageSource::CgroupV2 => "cgroup v2",
        UsageSource::CgroupV1 => "cgroup v1",
        UsageSource::ProcessTree => "process tree (10 ms steps)",
    }
}
