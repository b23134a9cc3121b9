//! `regatta load --on`: a load from several machines, over SSH or by a standing fleet.

use super::{args::LoadArgs, server::Server, stages};
use crate::output;
use anyhow::bail;
use indicatif::HumanCount;
use regatta_fleet::{AgentRun, Fleet, FleetRun, Void};
use regatta_judge::BUSY;
use regatta_load::{LoadProcessConfig, Plan, Tally, Watch, run_in_processes};
use regatta_record::{
    CellFinding, Drive, FORMAT, Figure, Kind, Latency, LoadAcross, LoadAgent, LoadAgents, Machines,
    Verdict, VoidLoad, VoidLoadAgent, encode_histogram,
};

/// Checks that a load can run on several machines.
pub fn check(args: &LoadArgs, plan: &Plan) -> anyhow::Result<()> {
    let refused = [
        (args.requests.is_some(), "-n", "the window would end at another time on each; use -d"),
        (args.burst.is_some(), "--burst", "its instances start and end on one machine; use -d"),
        (args.verify, "--verify", "it needs the time of each operation by one clock"),
        (args.passing > 0, "--passing", "members of a hub that leave are checked in shared memory"),
        (args.stalled > 0, "--stalled", "every member of the hub must get every broadcast"),
        (plan.unix.is_some(), "--unix-socket", "such a socket belongs to one machine"),
    ];
    if let Some((_, option, because)) = refused.into_iter().find(|(is_given, ..)| *is_given) {
        bail!("{option} does not work from several machines (--on): {because}");
    }
    if plan.workload.shared_words() > 0 {
        check_hub(args, plan)?;
    } else if let Some(threshold) = args.fail_if.iter().find(|threshold| threshold.is_across()) {
        let name = plan.workload.name();
        bail!(
            "--fail-if '{threshold}' is about deliveries of a hub between machines; this load runs {name}"
        );
    }
    Ok(plan.check()?)
}

/// Checks that a load whose connections must know of each other, as the members of a hub, can run on several
/// machines.
fn check_hub(args: &LoadArgs, plan: &Plan) -> anyhow::Result<()> {
    let refused = [
        (args.drive().churns(), "--churn", "the members of a hub must stay"),
        (args.tolerate.is_some(), "--tolerate", "every member must get every broadcast"),
    ];
    let implied = args.fail_if.iter().find(|threshold| threshold.tolerates().is_some());
    let implied = implied.map(|threshold| format!("--fail-if '{threshold}'"));
    let implied = implied.as_deref().filter(|_| plan.tolerates.is_some());
    let implied = implied.map(|option| {
        (true, option, "it implies --tolerate, and every member must get every broadcast")
    });
    let mut all = refused.into_iter().chain(implied);
    if let Some((_, option, because)) = all.find(|(is_given, ..)| *is_given) {
        let name = plan.workload.name();
        bail!(
            "{option} does not work with the workload {name} from several machines (--on): {because}"
        );
    }
    match args.on.hosts.len() > Machines::MOST {
        true => bail!(
            "the workload {} runs on up to {} machines, and --on has {}",
            plan.workload.name(),
            Machines::MOST,
            args.on.hosts.len()
        ),
        false => Ok(()),
    }
}

/// What the agents of a load did.
pub struct OnAgents {
    agents: Vec<AgentRun>,
    edges_within_ns: Option<u64>,
    across: Option<LoadAcross>,
}

/// Carries out the load, on agents if there are some.
pub fn run(
    fleet: Option<&mut Fleet>,
    plan: &Plan,
    processes: &LoadProcessConfig,
    watch: Watch<'_>,
) -> anyhow::Result<(Tally, Option<OnAgents>)> {
    let Some(fleet) = fleet else {
        let Watch { observer, progress, stop } = watch;
        return Ok((run_in_processes(plan, processes, observer, progress, stop)?, None));
    };
    let run = fleet.run(plan, watch).map_err(|void| anyhow::Error::new(*void))?;
    let FleetRun { whole, agents, edges_within_ns, across } = run;
    Ok((whole, Some(OnAgents { agents, edges_within_ns, across })))
}

/// Reports what agents counted of a load that has no result: on stderr, and in the file of --json.
pub fn void(args: &LoadArgs, error: &anyhow::Error) -> anyhow::Result<()> {
    let Some(Void { error, agents }) = error.downcast_ref::<Void>() else { return Ok(()) };
    for agent in agents {
        let (replies, errors) = (HumanCount(agent.replies), HumanCount(agent.errors));
        let name = &agent.name;
        output::message(&format!("agent {name}: {replies} replies and {errors} errors until then"));
    }
    let Some(path) = &args.json else { return Ok(()) };
    let agent = |agent: &regatta_fleet::AgentSoFar| VoidLoadAgent {
        name: agent.name.clone(),
        cores: agent.cores,
        threads: agent.threads,
        replies: agent.replies,
        errors: agent.errors,
    };
    let agents = agents.iter().map(agent).collect();
    let void = VoidLoad { format: FORMAT, void: error.to_string(), agents };
    output::write(path, &regatta_report::pretty(&void))
}

/// The same plan with as many CPUs as the agents have together, if there are agents.
pub fn on_their_cpus(plan: &Plan, on_agents: Option<&OnAgents>) -> Plan {
    let Some(on_agents) = on_agents else { return plan.clone() };
    let cores = on_agents.agents.iter().map(|agent| agent.cores).sum();
    Plan { cpus: (0..cores).collect(), ..plan.clone() }
}

impl OnAgents {
    /// The result of each agent, judged separately. `plan` and `server` are those of the whole load.
    pub fn result(&self, plan: &Plan, server: &Server<'_>) -> LoadAgents {
        let agents = self.agents.iter().map(|agent| of_agent(plan, agent, server)).collect();
        let (edges_within_ns, across) = (self.edges_within_ns, self.across.clone());
        LoadAgents { edges_within_ns, across, agents }
    }
}

fn of_agent(plan: &Plan, agent: &AgentRun, server: &Server<'_>) -> LoadAgent {
    let plan = &agent.plan(plan);
    let AgentRun { name, cores, connections, parts, rtt_ns, clock_bound_ns, tally, .. } = agent;
    let unanswered = tally.open_loop.as_ref().map_or(0, |open| open.unanswered());
    let duration_s = tally.window_ns as f64 / 1e9;
    let used_s = (tally.load_cpu_ns - tally.spun_ns) as f64 / 1e9;
    let spent = server.spent();
    let busy = (duration_s > 0.0).then(|| used_s / duration_s / tally.threads as f64);
    let verdict = match only_receives(plan, agent) {
        true => of_receivers(busy.unwrap_or(0.0)),
        false => server.judge(plan, tally, spent.as_ref()),
    };
    LoadAgent {
        name: name.clone(),
        cores: *cores,
        threads: tally.threads as u32,
        processes: parts.len() as u32,
        connections: *connections,
        requests: tally
            .open_loop
            .as_ref()
            .map_or(tally.requests, |open| open.due - unanswered - open.refused),
        errors: tally.errors,
        rate_per_s: if duration_s > 0.0 { tally.requests as f64 / duration_s } else { 0.0 },
        latency_ns: Latency::of_censored(&tally.histogram, unanswered),
        histogram: encode_histogram(&tally.histogram),
        busy,
        rtt_ns: *rtt_ns,
        clock_bound_ns: *clock_bound_ns,
        verdict: stages::verdict(verdict, &stages::results(plan, tally, server)),
    }
}

/// Whether the members of a hub on an agent send nothing and did nothing wrong: with fewer requests in flight
/// than load threads, the last threads only receive.
fn only_receives(plan: &Plan, agent: &AgentRun) -> bool {
    let Drive::Bounded { in_flight } = plan.drive else { return false };
    let AgentRun { tally, .. } = agent;
    let is_right = tally.first_wrong.is_none() && tally.errors.total() == 0 && !tally.server_died;
    agent.share(in_flight.get().into()) == 0 && is_right
}

/// The verdict on an agent whose members only receive.
fn of_receivers(busy: f64) -> Verdict {
    match busy >= BUSY {
        true => Verdict::new(
            Kind::GeneratorBound,
            format!("its members only receive, and its load threads were busy {busy:.2}"),
        ),
        false => Verdict::new(Kind::Idle, "its members only receive: --in-flight is small"),
    }
}

/// How many of the figures of a load a verdict voids.
fn severity(verdict: &Verdict) -> usize {
    [Figure::Rate, Figure::Latency].into_iter().filter(|figure| verdict.voids(*figure)).count()
}

/// The verdict on a load by agents: if an agent has the worst one, it comes first, with the agent's name. Windows
/// that may not be the same come before that, and a fault of the server before both.
pub fn verdict(whole: Verdict, agents: Option<&LoadAgents>, duration_s: f64) -> Verdict {
    let Some(on) = agents else { return whole };
    let judged = with_worst(whole, &on.agents);
    let Some(apart) = apart(on, duration_s) else { return judged };
    let mut finding = CellFinding::new(Kind::GeneratorBound, apart);
    finding.remedy = Some("use a longer window, or machines that are nearer".into());
    with(judged, finding, Kind::GeneratorBound.voids())
}

/// Says how far the windows of the agents may be apart, if that is too much to add up what they counted: more
/// than 1% of the window, and more than 10 ms.
fn apart(on: &LoadAgents, duration_s: f64) -> Option<String> {
    let limit_ns = (duration_s * 1e7).max(1e7);
    let clocks = on.agents.iter().map(|agent| agent.clock_bound_ns).max();
    let apart_ns = on.edges_within_ns.max(clocks)? as f64;
    let [apart, limit] = [apart_ns, limit_ns].map(regatta_report::time);
    (apart_ns > limit_ns)
        .then(|| format!("the windows of the agents may be {apart} apart, more than {limit}"))
}

fn with_worst(mut whole: Verdict, agents: &[LoadAgent]) -> Verdict {
    let worst = agents.iter().rev().max_by_key(|agent| severity(&agent.verdict));
    let Some(worst) = worst else { return whole };
    let least = severity(&whole).max(1);
    if is_fault(&whole) || severity(&worst.verdict) < least {
        return whole;
    }
    let mut finding = worst.verdict.first().clone();
    finding.agent = Some(worst.name.clone());
    whole.findings.retain(|one| one.kind != finding.kind);
    // The cost of the server was judged for the whole load.
    let void: Vec<Figure> =
        worst.verdict.void.iter().copied().filter(|figure| *figure != Figure::Cost).collect();
    with(whole, finding, &void)
}

/// A fault of the server.
fn is_fault(verdict: &Verdict) -> bool {
    verdict
        .findings
        .first()
        .is_some_and(|one| matches!(one.kind, Kind::Disqualified | Kind::Failed))
}

/// Adds a finding as the first one, but after a fault of the server.
pub(super) fn with(mut verdict: Verdict, finding: CellFinding, void: &[Figure]) -> Verdict {
    verdict.findings.insert(usize::from(is_fault(&verdict)), finding);
    let more = void.iter().copied().filter(|figure| !verdict.voids(*figure)).collect::<Vec<_>>();
    verdict.void.extend(more);
    verdict
}

/// The table of the agents, how well their windows agree, and the deliveries between them. Void figures are in
/// parentheses; `verdict` is that on the whole load.
pub fn table(on: &LoadAgents, duration_s: f64, verdict: &Verdict) -> String {
    const COLUMNS: [&str; 9] =
        ["cores", "conn", "rate", "p50", "p99", "busy", "RTT", "clock", "verdict"];
    let rows: Vec<[String; 9]> =
        [COLUMNS.map(String::from)].into_iter().chain(on.agents.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let names = ["agents"].into_iter().chain(on.agents.iter().map(|agent| agent.name.as_str()));
    let name_width = names.clone().map(|name| name.chars().count()).max().unwrap_or(0).max(11);
    let mut text = String::new();
    for (name, row) in names.zip(&rows) {
        text += &format!("{name:<name_width$}");
        for (column, cell) in row.iter().enumerate().take(COLUMNS.len() - 1) {
            let width = width(column).unwrap_or(0);
            text += &format!(" {}{cell}", " ".repeat(1 + width - cell.chars().count()));
        }
        text += &format!("  {}\n", row[COLUMNS.len() - 1]);
    }
    if let Some(within_ns) = on.edges_within_ns.filter(|_| duration_s > 0.0) {
        let within = regatta_report::time(within_ns as f64);
        let share = within_ns as f64 / 1e7 / duration_s;
        text += &format!(
            "{:<name_width$} agree within {within} ({share:.3}% of {duration_s:.2} s)\n",
            "windows"
        );
    }
    for line in on.across.iter().flat_map(|all| across(all, verdict)) {
        text += &format!("{:<name_width$} {}\n", line.0, line.1);
    }
    text
}

/// The lines of the deliveries between agents.
fn across(across: &LoadAcross, verdict: &Verdict) -> Vec<(&'static str, String)> {
    let time = |ns: Option<u64>| ns.map_or("–".into(), |ns| regatta_report::time(ns as f64));
    let Latency { p50, p99, max, .. } = across.latency_ns;
    let latencies = format!(
        "p50 {}  p99 {}  max {}, each ±{}",
        time(p50),
        time(p99),
        time(max),
        time(Some(across.bound_ns))
    );
    let void = across.void();
    let is_void = void.is_some() || verdict.voids(Figure::Latency);
    let shown = if is_void { format!("({latencies})") } else { latencies };
    let mut lines = vec![
        (
            "across",
            format!("{} deliveries to members on another agent", HumanCount(across.deliveries)),
        ),
        ("  latency", shown),
    ];
    lines.extend(void.map(|because| ("", format!("void: {because}"))));
    lines
}

fn row(agent: &LoadAgent) -> [String; 9] {
    let verdict = &agent.verdict;
    let voided = |figure, value: String| match verdict.voids(figure) {
        true => format!("({value})"),
        false => value,
    };
    let time = |ns: Option<u64>| ns.map_or("–".into(), |ns| regatta_report::time(ns as f64));
    let because = match severity(verdict) {
        0 => String::new(),
        _ => format!(": {}", verdict.first()),
    };
    [
        agent.cores.to_string(),
        HumanCount(agent.connections).to_string(),
        voided(Figure::Rate, format!("{}/s", HumanCount(agent.rate_per_s.round() as u64))),
        voided(Figure::Latency, time(agent.latency_ns.p50)),
        voided(Figure::Latency, time(agent.latency_ns.p99)),
        agent.busy.map_or("–".into(), |busy| format!("{busy:.2}")),
        time(Some(agent.rtt_ns)),
        format!("±{}", time(Some(agent.clock_bound_ns))),
        format!("{}{because}", verdict.kind().name()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::Errors;

    fn agent(name: &str, verdict: Verdict) -> LoadAgent {
        LoadAgent {
            name: name.into(),
            cores: 8,
            threads: 8,
            processes: 1,
            connections: 2_000,
            requests: 100_000,
            errors: Errors::default(),
            rate_per_s: 99_800.0,
            latency_ns: Latency { p50: Some(410_000), p99: Some(1_900_000), ..Latency::default() },
            histogram: String::new(),
            busy: Some(0.61),
            rtt_ns: 88_000,
            clock_bound_ns: 31_000,
            verdict,
        }
    }

    fn on(agents: &[LoadAgent]) -> LoadAgents {
        LoadAgents { edges_within_ns: Some(66_000), across: None, agents: agents.to_vec() }
    }

    fn held() -> Verdict {
        Verdict::new(Kind::AtAskedRate, "the rate was held")
    }

    #[test]
    fn the_worst_agent_is_named_in_the_verdict() {
        let busy = Verdict::new(Kind::GeneratorBound, "the load was busy");
        let on = on(&[agent("gen1", held()), agent("gen2", busy)]);
        let named = verdict(held(), Some(&on), 1.0);
        assert_eq!(
            named.because(),
            "agent gen2: the load was busy. Also at-asked-rate: the rate was held"
        );
        assert!(named.voids(Figure::Rate) && named.voids(Figure::Latency));
        assert!(!named.voids(Figure::Cost));
        assert_eq!(verdict(held(), None, 1.0), held());
    }

    #[test]
    fn a_fault_of_the_server_comes_before_an_agent() {
        let busy = Verdict::new(Kind::GeneratorBound, "the load was busy");
        let wrong = Verdict::new(Kind::Disqualified, "a reply was wrong");
        assert_eq!(verdict(wrong.clone(), Some(&on(&[agent("gen1", busy)])), 1.0), wrong);
    }

    #[test]
    fn windows_too_far_apart_void_the_sums() {
        let of = |edges_ns: u64, clock_bound_ns: u64, whole: Verdict, duration_s: f64| {
            let agents = vec![LoadAgent { clock_bound_ns, ..agent("gen1", held()) }];
            let on = LoadAgents { edges_within_ns: Some(edges_ns), across: None, agents };
            verdict(whole, Some(&on), duration_s)
        };
        let ms = 1_000_000;
        assert_eq!(of(10 * ms, 10 * ms, held(), 0.3), held(), "10 ms is enough for short windows");
        assert_eq!(of(30 * ms, 30 * ms, held(), 3.0), held(), "1% is enough for long ones");
        for (edges_ns, clock_ns) in [(31 * ms, ms), (ms, 31 * ms)] {
            let apart = of(edges_ns, clock_ns, held(), 3.0);
            let because = apart.because();
            assert!(because.starts_with("the windows of the agents may be 31.0"), "{because}");
            assert!(because.contains("Also at-asked-rate"), "{because}");
            assert!(apart.voids(Figure::Rate) && apart.voids(Figure::Latency), "{apart:?}");
        }
        let wrong = Verdict::new(Kind::Disqualified, "a reply was wrong");
        assert_eq!(of(31 * ms, ms, wrong, 3.0).kind(), Kind::Disqualified);
    }

    #[test]
    fn the_table_has_a_line_for_each_agent_with_void_figures_in_parentheses() {
        let busy = Verdict::new(Kind::GeneratorBound, "the load was busy");
        let on = on(&[agent("gen1", held()), agent("generator2", busy)]);
        let table = table(&on, 3.0, &held());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[0].starts_with("agents       cores   conn"), "{table}");
        assert!(lines[1].starts_with("gen1 ") && lines[1].ends_with("at-asked-rate"), "{table}");
        assert!(lines[2].contains("(99,800/s)"), "{table}");
        assert!(lines[2].ends_with("generator-bound: the load was busy"), "{table}");
        assert!(
            lines[3].starts_with("windows     agree within ") && lines[3].contains("0.002%"),
            "{table}"
        );
    }

    #[test]
    fn deliveries_between_agents_have_their_bound_and_are_void_if_a_clock_failed() {
        let of = |impossible: u64, unchecked: u64, verdict: &Verdict| -> Vec<String> {
            let latency_ns = Latency { p50: Some(142_000), ..Latency::default() };
            let (histogram, pairs) = (String::new(), Vec::new());
            let deliveries = 78_168;
            let across = LoadAcross {
                deliveries,
                impossible,
                unchecked,
                bound_ns: 42_600,
                latency_ns,
                histogram,
                pairs,
            };
            let on = LoadAgents { across: Some(across), ..on(&[]) };
            let table = table(&on, 3.0, verdict);
            table.lines().skip(2).map(str::to_owned).collect()
        };
        let lines = |impossible: u64, verdict: &Verdict| of(impossible, 0, verdict);
        let right = lines(0, &held());
        assert_eq!(right[0], "across      78,168 deliveries to members on another agent");
        assert_eq!(right[1], "  latency   p50 142 µs  p99 –  max –, each ±42.6 µs");
        let busy = Verdict::new(Kind::GeneratorBound, "the load was busy");
        assert_eq!(lines(0, &busy)[1], "  latency   (p50 142 µs  p99 –  max –, each ±42.6 µs)");
        let failed = lines(3, &held());
        assert!(failed[1].contains("(p50 "), "{failed:?}");
        let causes =
            "void: 3 more came before they were sent, so a clock has failed, or the server";
        assert!(failed[2].contains(causes), "{failed:?}");
        let closed = of(0, 2, &held());
        assert!(closed[1].contains("(p50 "), "{closed:?}");
        assert!(closed[2].contains("void: the connections of 2 members were closed"), "{closed:?}");
    }
}
