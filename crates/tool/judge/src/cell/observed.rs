//! The rounds of one cell: figures by pass, totals, and errors.

use crate::{
    cell::{
        latency::{self, Latencies},
        operations::Operations,
        roles::{self, Role},
        signals::Signals,
        took::MeasuredWork,
    },
    statistics::{Series, log, mean, median},
};
use regatta_record::{
    Asked, Drive, Errors, Exchange, KernelMemorySource, Kind, Latency, Life, LoadShape, Operation,
    Outcome, ReplySeen, Round, Server, Settling, SomeStarts, Unseen, UsageSource, Verdict,
};
use std::collections::BTreeSet;

/// The rounds of one cell. Only finished rounds enter figures. A cell that is settled without
/// figures (disqualified, failed, skipped, cannot hold) has none at all.
#[derive(Debug, Default)]
pub struct CellRounds {
    /// Name of the contender.
    pub name: String,
    /// Rounds that were run, whatever their outcome.
    pub run: u32,
    /// Rounds that entered the figures.
    pub finished: u32,
    /// Rounds in which the server was not observed, out of `finished`.
    pub unobserved: u32,
    /// The verdict, if the outcomes of the rounds alone decide it.
    pub settled: Option<Verdict>,
    /// Logarithm of server CPU per operation of the kind that costs are per (ns), by pass.
    pub cost: Series,
    /// Logarithm of server CPU per request (ns), by pass.
    pub cost_of_request: Series,
    /// How long its CPUs were still busy after it exited, in seconds, for the rounds that recorded
    /// it.
    pub busy_after_s: Vec<f64>,
    /// Logarithm of requests per second by pass.
    pub rate: Series,
    /// Logarithm of load CPU per operation of the same kind (ns), by pass.
    pub load_cost: Series,
    /// Logarithm of the mean wall time of an instance of a burst (s) by pass.
    pub instance: Series,
    /// Logarithm of requests per second of the load beside, by pass.
    pub beside: Series,
    /// The slowest instance of all rounds, in seconds.
    pub slowest_instance_s: Option<f64>,
    /// Correct replies.
    pub requests: u64,
    /// Errors in rounds that finished nevertheless.
    pub errors: Errors,
    /// Latencies, from the histograms.
    pub latencies: Latencies,
    /// Counts of further kinds of operations.
    pub operations: Vec<Operations>,
    /// The kind of operation that the cell's latency measures.
    pub latency_of: Operation,
    /// State of the machine.
    pub signals: Signals,
    /// Why a histogram could not be read, if one could not.
    pub unreadable: Option<String>,
    /// Median over rounds.
    pub memory_bytes: Option<u64>,
    /// User memory that a connection added, bytes, median over rounds.
    pub user_per_connection: Option<f64>,
    /// Kernel memory, in the same way.
    pub kernel_per_connection: Option<f64>,
    /// Where the kernel memory was read.
    pub kernel_source: Option<KernelMemorySource>,
    /// Context switches of both kinds per operation of the kind that costs are per, over the
    /// observed rounds.
    pub switches_per_request: Option<f64>,
    /// CPU time over (window × CPUs), over all observed rounds; with several roles, that of the busiest
    /// set of CPUs.
    pub server_busy: Option<f64>,
    /// CPU time of the busiest thread over the window, over all rounds that recorded it.
    pub busiest_thread: Option<f64>,
    /// Fraction of its CPUs that the load used, without spinning.
    pub load_busy: Option<f64>,
    /// Fraction of its CPUs that the load spun.
    pub load_spun: Option<f64>,
    /// CPUs that the server could keep busy, and CPUs of the load.
    pub cpus: (u32, u32),
    /// Figures of its roles, if it has more than one.
    pub roles: Vec<Role>,
    /// How it warmed up, if observed.
    pub settling: Option<Settling>,
    /// Settings of the machine that changed in one of its rounds.
    pub settings_changed: Option<String>,
    /// A reply.
    pub reply: Option<ReplySeen>,
    /// Bytes of all replies, and their number, in rounds where each should be as long as `reply`.
    pub alike: (u64, u64),
    /// Rounds whose warm-up was shorter than the observed need, out of `finished`.
    pub cut_short: u32,
    /// Members that joined and left, warm-ups included.
    pub passed: u64,
    /// Behaviour that voids no figure: number of rounds with a remark, and the first remark.
    pub remark: Option<(u32, String)>,
    /// Another program served its port: number of rounds, and the first report.
    pub served_by_others: Option<(u32, String)>,
    /// One of its threads could run on other CPUs than assigned: number of rounds, and the first
    /// report.
    pub left_its_cpus: Option<(u32, String)>,
    /// Many deliveries were owed to nobody, because members were away: number of rounds, and the highest share.
    pub away: Option<(u32, f64)>,
    /// CPU time of its processes and number of operations, by pass.
    pub took: Vec<Option<MeasuredWork>>,
    /// Sources of the server's CPU time.
    pub sources: BTreeSet<&'static str>,
    /// CPU time that processes may have used before they exited and that was not measured, as a
    /// fraction of the measured CPU time, over all rounds that recorded it.
    pub unseen: Option<f64>,
    /// Rounds in which that time has no upper bound.
    pub unbounded: u32,
    /// `user + system` over the CPU time, over all observed rounds.
    pub split_over_cpu: Option<f64>,
    /// Total length of all windows, in seconds.
    pub window_s: f64,
    /// In a duel: its lives, by pass.
    pub lives: Vec<Option<Life>>,
    /// Correct replies by slice of the window, one list per round.
    pub slices: Vec<Vec<u64>>,
}

impl CellRounds {
    /// Reads a cell: `rounds` by pass, `None` for a pass that was not run; `skipped` is why the
    /// contender did not take part. `asked` gives the kind of operation that costs are per, and the
    /// kind that the latency measures.
    pub fn of(
        name: &str,
        skipped: Option<String>,
        rounds: &[Option<&Round>],
        asked: &Asked,
    ) -> Self {
        let run: Vec<&Round> = rounds.iter().flatten().copied().collect();
        let settled = settled(skipped, &run, &asked.cost_per);
        let void = CellRounds {
            name: name.to_owned(),
            run: run.len() as u32,
            cost: vec![None; rounds.len()],
            cost_of_request: vec![None; rounds.len()],
            rate: vec![None; rounds.len()],
            load_cost: vec![None; rounds.len()],
            instance: vec![None; rounds.len()],
            beside: vec![None; rounds.len()],
            ..CellRounds::default()
        };
        match settled {
            Some(verdict) => CellRounds { settled: Some(verdict), ..void },
            None if run.is_empty() => void,
            None => void.with_figures(rounds, &run, asked),
        }
    }

    /// Adds the figures; every round of `run` finished with correct replies.
    fn with_figures(mut self, rounds: &[Option<&Round>], run: &[&Round], asked: &Asked) -> Self {
        let per = &asked.cost_per;
        let by_pass = |figure: &dyn Fn(&Round) -> Option<f64>| -> Series {
            rounds.iter().map(|r| r.and_then(figure).and_then(log)).collect()
        };
        let cost_per = |r: &Round, per: &Operation| {
            Some(r.server.as_ref()?.cpu_ns as f64 / r.count_of(per) as f64)
        };
        self.cost = by_pass(&|r| cost_per(r, per));
        self.cost_of_request = by_pass(&|r| cost_per(r, &Operation::REQUESTS));
        let busy = run.iter().filter_map(|r| r.machine?.busy_after_ns);
        self.busy_after_s = busy.map(|ns| ns as f64 / 1e9).collect();
        self.rate = by_pass(&|r| Some(r.requests as f64 / (r.window_ns as f64 / 1e9)));
        self.load_cost = by_pass(&|r| Some(r.load_work_ns() as f64 / r.count_of(per) as f64));

        self.beside = by_pass(&|r| {
            let beside = r.background?;
            Some(beside.requests as f64 / (beside.window_ns as f64 / 1e9))
        });
        self.instance = by_pass(&|r| mean(&seconds(&r.instances_ns)));
        let instances = run.iter().flat_map(|r| seconds(&r.instances_ns));
        self.slowest_instance_s = instances.max_by(f64::total_cmp);

        self.finished = run.len() as u32;
        self.requests = run.iter().map(|r| r.requests).sum();
        run.iter().for_each(|r| self.errors.add(&r.errors));
        self.settling = run.iter().find_map(|round| round.settling);
        self.settings_changed = run.iter().find_map(|round| round.settings_changed.clone());
        self.reply = run.iter().find_map(|round| round.reply);
        for (round, bytes) in run.iter().filter_map(|r| Some((r, r.reply_bytes?))) {
            self.alike = (self.alike.0 + bytes, self.alike.1 + round.requests);
        }
        self.cut_short = run.iter().filter(|round| is_cut_short(round)).count() as u32;
        self.passed = run.iter().map(|round| round.passed).sum();
        self.remark = reported(run, |r| r.remark.as_ref());
        self.served_by_others = reported(run, |r| r.served_by_others.as_ref());
        self.left_its_cpus = reported(run, |r| r.left_its_cpus.as_ref());
        let absent = run.iter().filter_map(|r| r.share_of_absent()).map(|share| (1, share));
        self.away = absent.reduce(|(all, most), (one, share)| (all + one, share.max(most)));
        self.took = rounds.iter().map(|r| r.and_then(|r| MeasuredWork::of(r, per))).collect();
        self.roles = Role::all(rounds, per);
        self.window_s = run.iter().map(|r| r.window_ns as f64 / 1e9).sum();
        self.lives = rounds.iter().map(|round| round.and_then(|r| r.life.clone())).collect();
        self.slices = run.iter().map(|r| r.slices.clone()).collect();
        let of_load = run.iter().map(|r| r.window_ns as f64 * f64::from(r.load_cpus)).sum();
        self.load_busy = fraction(run.iter().map(|r| r.load_work_ns() as f64).sum(), of_load);
        self.load_spun = fraction(run.iter().map(|r| r.load_spun_ns as f64).sum(), of_load);
        self.cpus.1 = run.iter().map(|r| r.load_cpus).max().unwrap_or(0);
        self.signals = Signals::of(run);
        match latency::read(run) {
            Ok(latencies) => self.latencies = latencies,
            Err(why) => self.unreadable = Some(why),
        }
        match Operations::all(rounds, &asked.latency_of) {
            Ok(operations) => self.operations = operations,
            Err(why) => self.unreadable = Some(why),
        }
        self.latency_of = asked.latency_of.clone();
        self.with_usage(run, per)
    }

    /// CPU use without load, as a fraction of one CPU; `None` without an idle slice.
    pub fn standing(&self) -> Option<f64> {
        let idle = || self.lives.iter().flatten().filter_map(|life| life.idle);
        fraction(idle().map(|i| i.cpu_ns as f64).sum(), idle().map(|i| i.ns as f64).sum())
    }

    /// Latency of the requested kind of operation: percentiles of all rounds, and 50, 90, 95, 99
    /// and 99.9 of each. `None` if there were no operations of that kind.
    pub fn latency(&self) -> Option<(&Latency, &[[Option<u64>; 5]])> {
        if self.latency_of.is_request() {
            return Some((&self.latencies.all, &self.latencies.by_round));
        }
        self.operations.iter().find_map(|one| one.latency(&self.latency_of))
    }

    /// The percentiles of that latency by pass: 50, 90, 95, 99 and 99.9, each if the pass has it.
    /// `None`: the pass was not run, or there were no operations of that kind.
    pub fn latency_by_pass(&self) -> Vec<Option<[Option<u64>; 5]>> {
        let mut by_round = self.latency().map_or(&[][..], |(_, by_round)| by_round).iter();
        // Every round that was run has a rate; a round without a correct reply fails its cell.
        let of_pass = |rate: &Option<f64>| rate.and_then(|_| by_round.next().copied());
        self.rate.iter().map(of_pass).collect()
    }

    /// Adds the figures of the contender's processes.
    fn with_usage(mut self, run: &[&Round], per: &Operation) -> Self {
        let seen: Vec<_> = run.iter().filter_map(|r| Some((*r, r.server.as_ref()?))).collect();
        self.unobserved = (run.len() - seen.len()) as u32;
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
        if let Some((busy, cpus)) = roles::busiest(run) {
            (self.server_busy, self.cpus.0) = (Some(busy), cpus);
        }
        self.sources = seen.iter().map(|(_, s)| source_name(s)).collect();
        self.memory_bytes = median(seen.iter().map(|(_, s)| s.memory_bytes as f64).collect())
            .map(|bytes| bytes as u64);
        self.with_memory_of_connections(&seen)
    }

    /// Adds the memory of each connection. Bursts and churn leave no connections open to measure.
    fn with_memory_of_connections(mut self, seen: &[(&Round, &Server)]) -> Self {
        let lasts = |load: &LoadShape| match load.drive {
            Drive::Closed | Drive::Bounded { .. } | Drive::Open { .. } => true,
            Drive::Churn | Drive::Burst(_) => false,
        };
        let lasting = || seen.iter().filter(|(r, _)| lasts(&r.load)).copied();
        let each = |r: &Round, bytes: i64| bytes as f64 / f64::from(r.load.max_open_connections());
        let user = lasting().filter_map(|(r, s)| Some(each(r, s.user_growth_bytes?)));
        self.user_per_connection = median(user.collect());
        let kernel = lasting().filter_map(|(r, s)| Some(each(r, s.kernel_growth?.bytes)));
        self.kernel_per_connection = median(kernel.collect());
        self.kernel_source = lasting().find_map(|(_, s)| Some(s.kernel_growth?.source));
        self
    }
}

/// Whether the warm-up was shorter, or had fewer requests, than the observed need.
fn is_cut_short(round: &Round) -> bool {
    round
        .warm_up
        .is_some_and(|done| done.ns < done.needed_ns || done.requests < done.needed_requests)
}

/// Counts the rounds with a report, and returns the first.
fn reported(rounds: &[&Round], what: impl Fn(&Round) -> Option<&String>) -> Option<(u32, String)> {
    let all: Vec<&String> = rounds.iter().filter_map(|round| what(round)).collect();
    all.first().map(|first| (all.len() as u32, (*first).clone()))
}

fn seconds(ns: &[u64]) -> Vec<f64> {
    ns.iter().map(|ns| *ns as f64 / 1e9).collect()
}

/// The verdict that follows from the outcomes of the rounds. One wrong exchange disqualifies a cell
/// and one failed round fails it, however many rounds went well: six correct rounds out of seven
/// are not enough. A round without a correct reply also failed, and so did a round without any
/// operation that costs are `per`.
fn settled(skipped: Option<String>, run: &[&Round], per: &Operation) -> Option<Verdict> {
    if let Some(why) = skipped {
        return Some(Verdict::new(Kind::Skipped, why));
    }
    let of = run.len() as u32;
    let decided = |kind, hits: Vec<(u32, String)>| {
        let (first, because) = hits.first()?;
        let mut verdict = Verdict::new(kind, because);
        let seen = hits.len() as u32;
        verdict.first_mut().starts = Some(SomeStarts { seen, of, first: Some(*first) });
        Some(verdict)
    };
    // Counted are the starts of this contender: the numbers of lives are those of all heats.
    let each = |why: &dyn Fn(&Round) -> Option<String>| -> Vec<(u32, String)> {
        run.iter().zip(1..).filter_map(|(round, start)| Some((start, why(round)?))).collect()
    };
    let cannot_hold = run.iter().find_map(|r| match &r.outcome {
        Outcome::CannotHold { because } => Some(Verdict::new(Kind::CannotHold, because)),
        _ => None,
    });
    decided(Kind::Disqualified, each(&wrong))
        .or_else(|| decided(Kind::Failed, each(&|round| failure(round, per))))
        .or(cannot_hold)
}

/// Why a round disqualifies, with the first wrong exchange if one was recorded.
fn wrong(round: &Round) -> Option<String> {
    match &round.outcome {
        Outcome::Disqualified { because, exchange: Some(exchange) } => {
            Some(format!("{}; {}", because.trim_end_matches('.'), in_words(exchange)))
        }
        Outcome::Disqualified { because, exchange: None } => Some(because.clone()),
        Outcome::Finished if round.errors.wrong_reply > 0 => {
            Some(format!("{} wrong replies were counted", round.errors.wrong_reply))
        }
        _ => None,
    }
}

fn in_words(e: &Exchange) -> String {
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
            "no correct reply inside the window; try a longer window or fewer connections"
                .to_owned(),
        ),
        Outcome::Finished if round.count_of(per) == 0 => Some(format!(
            "no {} inside the window, and costs are per {}; try a longer window",
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
        // If what may be missing has a bound, these sources agree: their figures can be compared.
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
