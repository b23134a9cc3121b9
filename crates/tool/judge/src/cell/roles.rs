//! The cost of each role of a contender: the server itself, and each kind of process behind it.

use crate::statistics::{Series, geometric, is_known, known, log, median, present};
use regatta_record::{Operation, RoleCost, RoleUsage, Round, Server};
use std::collections::BTreeSet;

/// A role in the rounds of one cell.
#[derive(Debug)]
pub struct Role {
    name: String,
    count: u32,
    cpus: Vec<u32>,
    /// Logarithm of its CPU per operation (ns) by pass.
    cost: Series,
    share: Option<f64>,
    busy: Option<f64>,
    memory_bytes: Option<u64>,
}

impl Role {
    /// All roles, the server first; empty if the contender has only one. Costs are per operation of
    /// the kind `per`.
    pub fn all(rounds: &[Option<&Round>], per: &Operation) -> Vec<Role> {
        let first = rounds.iter().flatten().find(|round| !round.roles.is_empty());
        let Some(first) = first else { return Vec::new() };
        first.roles.iter().map(|role| Role::of(role, rounds, per)).collect()
    }

    fn of(role: &RoleUsage, rounds: &[Option<&Round>], per: &Operation) -> Role {
        let name = &role.name;
        let cost = |round: &Round| {
            let used = used(round, name)?;
            log(used.cpu_ns as f64 / round.count_of(per) as f64)
        };
        let seen = || {
            rounds.iter().flatten().filter_map(|round| {
                let whole = round.server.as_ref()?;
                Some((*round, whole, used(round, name)?))
            })
        };
        let cpu: f64 = seen().map(|(_, _, used)| used.cpu_ns as f64).sum();
        let of_all: f64 = seen().map(|(_, whole, _)| whole.cpu_ns as f64).sum();
        let could: f64 = seen().map(|(round, _, used)| time_of(round, used.usable_cpus())).sum();
        let memory = seen().map(|(_, _, used)| used.memory_bytes as f64).collect();
        Role {
            name: name.clone(),
            count: role.count,
            cpus: role.cpus.clone(),
            cost: rounds.iter().map(|round| round.and_then(cost)).collect(),
            share: (of_all > 0.0).then(|| cpu / of_all),
            busy: (could > 0.0).then(|| cpu / could),
            memory_bytes: median(memory).map(|bytes| bytes as u64),
        }
    }

    /// The figures for the cell.
    pub fn figures(&self, seed: u64) -> RoleCost {
        let cost = geometric(&present(&self.cost), seed);
        RoleCost {
            name: self.name.clone(),
            count: self.count,
            cpus: self.cpus.clone(),
            cost_ns_per_request: known(cost),
            cost_not_known: cost.is_some_and(|cost| !is_known(&cost)),
            share: self.share,
            busy: self.busy,
            memory_bytes: self.memory_bytes,
        }
    }
}

/// Returns how busy a contender with several roles was, and on how many CPUs: the busiest of its
/// sets of CPUs. Roles that share CPUs form one set. If each role has its own CPUs, the busiest one
/// is the limit, however idle the others are. `None` if the contender has one role, or was not
/// observed.
pub fn busiest(rounds: &[&Round]) -> Option<(f64, u32)> {
    let first = rounds.iter().find(|round| !round.roles.is_empty())?;
    let each = sets(&first.roles).into_iter().filter_map(|names| {
        let (mut used_ns, mut could_ns, mut most) = (0.0, 0.0, 0);
        for round in rounds {
            let all: Option<Vec<&Server>> = names.iter().map(|name| used(round, name)).collect();
            let Some(all) = all else { continue };
            let cpus: BTreeSet<u32> = round
                .roles
                .iter()
                .filter(|role| names.contains(&role.name))
                .flat_map(|role| role.cpus.iter().copied())
                .collect();
            let threads: u32 = all.iter().map(|server| server.threads).sum();
            let usable = (cpus.len() as u32).min(threads).max(1);
            used_ns += all.iter().map(|server| server.cpu_ns as f64).sum::<f64>();
            could_ns += time_of(round, usable);
            most = most.max(usable);
        }
        (could_ns > 0.0).then(|| (used_ns / could_ns, most))
    });
    each.max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// Groups the names of roles that share CPUs, directly or through other roles.
fn sets(roles: &[RoleUsage]) -> Vec<Vec<String>> {
    let mut sets: Vec<(BTreeSet<u32>, Vec<String>)> = Vec::new();
    for role in roles {
        let mut cpus: BTreeSet<u32> = role.cpus.iter().copied().collect();
        let mut names = vec![role.name.clone()];
        // A role that may run anywhere shares CPUs with all.
        let (with, without): (Vec<_>, Vec<_>) = sets.into_iter().partition(|(others, _)| {
            cpus.is_empty() || others.is_empty() || !others.is_disjoint(&cpus)
        });
        sets = without;
        for (others, other_names) in with {
            cpus.extend(others);
            names.extend(other_names);
        }
        sets.push((cpus, names));
    }
    sets.into_iter().map(|(_, names)| names).collect()
}

fn used<'a>(round: &'a Round, name: &str) -> Option<&'a Server> {
    round.roles.iter().find(|role| role.name == name)?.used.as_ref()
}

/// The time of `cpus` CPUs inside the window, in nanoseconds.
fn time_of(round: &Round, cpus: u32) -> f64 {
    round.window_ns as f64 * f64::from(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, cpus: &[u32]) -> RoleUsage {
        RoleUsage { name: name.into(), count: 1, cpus: cpus.to_vec(), used: None }
    }

    #[test]
    fn roles_with_a_cpu_in_common_are_one_set() {
        let named = |roles: &[RoleUsage]| -> Vec<String> {
            let mut sets: Vec<String> = sets(roles)
                .into_iter()
                .map(|mut names| {
                    names.sort();
                    names.join("+")
                })
                .collect();
            sets.sort();
            sets
        };
        let apart = [role("server", &[0]), role("app", &[1]), role("db", &[2, 3])];
        assert_eq!(named(&apart), ["app", "db", "server"]);
        let chained = [role("server", &[0]), role("app", &[1]), role("db", &[0, 1])];
        assert_eq!(named(&chained), ["app+db+server"]);
        assert_eq!(named(&[role("server", &[0]), role("app", &[])]), ["app+server"]);
    }

    #[test]
    fn a_cost_is_not_known_only_if_its_order_of_magnitude_is_not() {
        let figures = |cost: &[f64]| {
            let cost = cost.iter().map(|ns| log(*ns)).collect();
            let (name, cpus, count) = ("db".into(), vec![0], 1);
            let (share, busy, memory_bytes) = (None, None, None);
            Role { name, count, cpus, cost, share, busy, memory_bytes }.figures(1)
        };
        let [close, far, none] = [figures(&[9.0, 10.0, 11.0]), figures(&[1.0, 1e4]), figures(&[])];
        assert!(close.cost_ns_per_request.is_some() && !close.cost_not_known);
        assert!(far.cost_ns_per_request.is_none() && far.cost_not_known);
        assert!(none.cost_ns_per_request.is_none() && !none.cost_not_known);
    }
}
