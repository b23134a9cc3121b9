//! Divides a load among agents (pure): each gets a range of the thread numbers. Which requests a thread
//! sends follows from its number alone, so the agents together send what one process would.

use crate::{agent::MOST_PROCESSES, error::Error};
use regatta_load::Plan;
use regatta_record::Part;

/// What an agent can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    /// Number of its CPUs.
    pub cores: u32,
    /// Number of connections that one of its load processes can open.
    pub connections: u64,
}

/// Divides a plan among agents: the parts of the processes of each. An agent gets at most a thread per
/// core, and always one. There are as many processes as its limit of connections needs.
///
/// # Errors
/// [`Error::Division`] if there is not enough work for every agent, or there are too many connections.
pub(super) fn divide(plan: &Plan, agents: &[Capacity]) -> Result<Vec<Vec<Part>>, Error> {
    let most = plan.most_threads();
    if most < agents.len() {
        return Err(Error::Division(format!(
            "{} agents need at least as many connections that send requests: there are {most}",
            agents.len()
        )));
    }
    let threads = threads(agents, most);
    let total = threads.iter().sum();
    let (mut first, mut divided) = (0, Vec::new());
    for (own, agent) in threads.into_iter().zip(agents) {
        divided.push(processes(plan, (first, own, total), agent.connections)?);
        first += own;
    }
    let processes = divided.iter().map(Vec::len).sum::<usize>() as u32;
    for (number, part) in (0..).zip(divided.iter_mut().flatten()) {
        (part.process, part.processes) = (number, processes);
    }
    Ok(divided)
}

/// Maximum number of connections of a load on these agents, each with a thread per core.
pub(super) fn most_connections(agents: &[Capacity]) -> u64 {
    let threads: u64 = agents.iter().map(|agent| u64::from(agent.cores)).sum();
    let of_thread = |agent: &Capacity| {
        let processes = agent.cores.min(MOST_PROCESSES as u32).max(1);
        agent.connections / u64::from(agent.cores.div_ceil(processes).max(1))
    };
    let least = agents.iter().map(of_thread).min().unwrap_or(0);
    threads.saturating_mul(least)
}

/// The number of threads of each agent, at most `most` together: one after the other goes to the agent
/// that has the fewest for its cores.
fn threads(agents: &[Capacity], most: usize) -> Vec<u32> {
    let mut threads = vec![1; agents.len()];
    for _ in agents.len()..most {
        let free = (0..agents.len()).filter(|&agent| threads[agent] < agents[agent].cores);
        let load = |agent: usize| f64::from(threads[agent]) / f64::from(agents[agent].cores);
        match free.min_by(|&a, &b| load(a).total_cmp(&load(b))) {
            Some(agent) => threads[agent] += 1,
            None => break,
        }
    }
    threads
}

/// Divides the threads of an agent, `own` of `total` from number `first`, among its processes.
fn processes(
    plan: &Plan,
    (first, own, total): (u32, u32, u32),
    limit: u64,
) -> Result<Vec<Part>, Error> {
    let most = own.min(MOST_PROCESSES as u32);
    for processes in 1..=most {
        let part = |nth: u32| Part {
            process: 0,
            processes: 1,
            threads: total,
            first: first + nth,
            step: processes,
            own: (own - nth).div_ceil(processes),
        };
        let parts: Vec<Part> = (0..processes).map(part).collect();
        if parts.iter().all(|part| plan.connections_of(*part) as u64 <= limit) {
            return Ok(parts);
        }
    }
    Err(Error::Division(format!(
        "{} connections need more descriptors than the limits of the agents permit: raise their hard limit \
         (ulimit -Hn), or use more agents",
        plan.most_open()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regatta_script::Workload;

    fn plan(connections: usize) -> Plan {
        let workload = Workload::parse("double").unwrap();
        Plan { connections, ..Plan::closed("127.0.0.1:1".parse().unwrap(), workload) }
    }

    fn cores(cores: &[u32]) -> Vec<Capacity> {
        cores.iter().map(|&cores| Capacity { cores, connections: 1_000_000 }).collect()
    }

    #[test]
    fn each_agent_gets_threads_by_its_cores() {
        let counts = |connections: usize, of: &[u32]| {
            let divided = divide(&plan(connections), &cores(of)).unwrap();
            divided
                .iter()
                .map(|parts| parts.iter().map(|part| part.own).sum())
                .collect::<Vec<u32>>()
        };
        assert_eq!(counts(1_000, &[3, 2, 1]), [3, 2, 1]);
        assert_eq!(counts(1_000, &[16, 4]), [16, 4]);
        assert_eq!(counts(10, &[16, 4]), [8, 2], "no thread without a connection");
        assert_eq!(counts(2, &[16, 4]), [1, 1]);
    }

    #[test]
    fn an_agent_has_as_many_processes_as_its_limit_needs() {
        let limits = [(4, 500), (2, 1_000)];
        let agents = limits.map(|(cores, connections)| Capacity { cores, connections });
        let divided = divide(&plan(1_500), &agents).unwrap();
        assert_eq!(divided.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        let error = divide(&plan(4_000), &agents).unwrap_err().to_string();
        assert!(error.starts_with("4000 connections need more descriptors"), "{error}");
    }

    #[test]
    fn the_agents_can_divide_as_many_connections_as_they_say() {
        for agents in [&[(4, 500), (2, 1_000)][..], &[(200, 100), (1, 90)], &[(1, 7)]] {
            let capacity = |&(cores, connections)| Capacity { cores, connections };
            let agents: Vec<Capacity> = agents.iter().map(capacity).collect();
            let most = most_connections(&agents);
            assert!(divide(&plan(most as usize), &agents).is_ok(), "{agents:?}: {most}");
            assert!(most >= 7, "{agents:?}: {most}");
        }
    }

    #[test]
    fn fewer_connections_than_agents_are_refused() {
        let error = divide(&plan(2), &cores(&[1, 1, 1])).unwrap_err().to_string();
        assert_eq!(
            error,
            "3 agents need at least as many connections that send requests: there are 2"
        );
    }

    proptest! {
        #[test]
        fn every_thread_belongs_to_one_process(
            connections in 1..5_000_usize,
            of in prop::collection::vec((1..40_u32, 20..2_000_u64), 1..6),
        ) {
            let agents = of.iter().map(|&(cores, connections)| Capacity { cores, connections });
            let Ok(divided) = divide(&plan(connections), &agents.collect::<Vec<_>>()) else {
                return Ok(());
            };
            let parts: Vec<Part> = divided.into_iter().flatten().collect();
            let mut numbers: Vec<u32> = parts.iter().flat_map(|part| part.numbers()).collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..parts[0].threads).collect::<Vec<_>>());
            prop_assert!(parts.iter().all(|part| part.is_possible()));
            let sum: u64 = parts.iter().map(|part| part.of_process(connections as u64)).sum();
            prop_assert_eq!(sum, connections as u64);
        }
    }
}
