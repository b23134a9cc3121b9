//! Remedies, spelled out as commands and options for the CPUs of this machine.

use regatta_record::{CpuSets, LoadShape, joined};

/// For a server and a load that may run on each other's CPUs.
const APART: &str = "give each its own CPUs: --cpus for the load, `taskset -c` for the server";

/// The kind of run that the remedy applies to.
#[derive(Clone, Copy, Debug)]
pub enum Remedy<'a> {
    /// A race.
    Race {
        /// CPUs of the race.
        cpus: &'a CpuSets,
        /// The load.
        load: &'a LoadShape,
    },
    /// `regatta load`.
    Load {
        /// Number of its threads.
        threads: u32,
        /// Whether they may run on the server's CPUs.
        shares: bool,
    },
    /// `regatta load --on`: the load of agents on other machines, which have all of their CPUs.
    Agents,
}

impl Remedy<'_> {
    /// For a load that was busy.
    pub fn more_for_load(self) -> String {
        match self {
            Remedy::Race { cpus, load } => {
                let own = cpus.of_load(load);
                match free(cpus, load) {
                    Some(cpu) => format!(
                        "give the load a {} core: --load-cpus {}",
                        nth(own.len() + 1),
                        joined(&[&own[..], &[cpu]].concat(), ",")
                    ),
                    None => "this machine has no CPU left for the load: set a lower `rate` in the \
                             race file"
                        .to_owned(),
                }
            }
            Remedy::Load { threads, .. } => format!(
                "give the load a {} thread, on a CPU that the server does not need: --threads {}",
                nth(threads as usize + 1),
                threads + 1
            ),
            Remedy::Agents => {
                "load from more machines, or from some with more cores (--on)".to_owned()
            }
        }
    }

    /// For a load whose CPU another program took.
    pub fn another_for_load(self) -> String {
        match self {
            Remedy::Race { cpus, load } => match free(cpus, load) {
                Some(cpu) => format!("stop it, or pass --load-cpus {cpu}"),
                None => "stop it, because this machine has no other CPU for the load".to_owned(),
            },
            Remedy::Load { shares: true, .. } => APART.to_owned(),
            Remedy::Load { .. } => "stop it, or give the load another CPU (--cpus)".to_owned(),
            Remedy::Agents => "stop it, or load from another machine (--on)".to_owned(),
        }
    }

    /// For a server whose CPU another program took.
    pub fn another_for_server(self) -> String {
        match self {
            Remedy::Race { cpus, load } => match free(cpus, load) {
                Some(cpu) => format!("stop it, or pass --server-cpus {cpu}"),
                None => "stop it, because this machine has no other CPU for the server".to_owned(),
            },
            Remedy::Load { shares: true, .. } => APART.to_owned(),
            Remedy::Load { .. } | Remedy::Agents => {
                "stop it, or start the server on another CPU (taskset -c)".to_owned()
            }
        }
    }

    /// For a server that does not hold a rate.
    pub fn more_for_server(self) -> String {
        match self {
            Remedy::Race { cpus, load } => match free(cpus, load) {
                Some(cpu) => format!(
                    "lower the rate, or give it a {} core: --server-cpus {}",
                    nth(cpus.of_server(load).len() + 1),
                    joined(&[&cpus.of_server(load)[..], &[cpu]].concat(), ",")
                ),
                None => self.less().to_owned(),
            },
            Remedy::Load { .. } | Remedy::Agents => {
                format!("{}, or give it more CPUs", self.less())
            }
        }
    }

    /// For a server that does not hold a rate and cannot use more CPUs.
    pub fn less(self) -> &'static str {
        match self {
            Remedy::Race { .. } => "lower the rate (`rate` in the race file)",
            Remedy::Load { .. } | Remedy::Agents => "lower the requested rate",
        }
    }

    /// For a cell in which neither side was busy.
    pub fn more_requests(self) -> &'static str {
        match self {
            Remedy::Race { .. } => {
                "more `connections` or a deeper `pipeline` in the race file would show the limit"
            }
            Remedy::Load { .. } | Remedy::Agents => {
                "more connections (--connections) or deeper pipelining (--pipeline) would show \
                 the limit"
            }
        }
    }

    /// Whether server and load were put on the same CPUs.
    pub fn shares(self) -> bool {
        match self {
            Remedy::Race { cpus, load } => {
                let server = cpus.of_server(load);
                !cpus.apart && cpus.of_load(load).iter().any(|cpu| server.contains(cpu))
            }
            Remedy::Load { shares, .. } => shares,
            Remedy::Agents => false,
        }
    }
}

/// Returns a CPU that neither side has.
fn free(cpus: &CpuSets, load: &LoadShape) -> Option<u32> {
    let (server, own) = (cpus.of_server(load), cpus.of_load(load));
    cpus.spare.iter().copied().find(|cpu| !server.contains(cpu) && !own.contains(cpu))
}

fn nth(n: usize) -> String {
    match n {
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{n}th"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_for_agents_name_no_options_that_are_refused_with_on() {
        let agents = Remedy::Agents;
        let all = [agents.more_for_load(), agents.another_for_load(), agents.another_for_server()];
        let is_refused = |text: &String| text.contains("--threads") || text.contains("--cpus");
        assert!(!all.iter().any(is_refused), "{all:?}");
    }

    #[test]
    fn remedies_name_cpus_of_this_machine() {
        let load = &LoadShape::closed(64, 1);
        let four =
            &CpuSets { server: vec![0], load: vec![1], spare: vec![2, 3], ..CpuSets::default() };
        let remedy = Remedy::Race { cpus: four, load };
        assert_eq!(remedy.more_for_load(), "give the load a second core: --load-cpus 1,2");
        assert_eq!(remedy.another_for_load(), "stop it, or pass --load-cpus 2");
        assert!(remedy.more_for_server().ends_with("a second core: --server-cpus 0,2"));

        let on_three = &LoadShape { cores: Some(3), ..*load };
        let remedy = Remedy::Race { cpus: four, load: on_three };
        assert!(remedy.more_for_load().contains("no CPU left"), "the contender has 0, 2 and 3");

        let two = &CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
        let remedy = Remedy::Race { cpus: two, load };
        assert!(remedy.more_for_load().starts_with("this machine has no CPU left for the load"));
        assert!(!remedy.shares());
        let same =
            &CpuSets { server: vec![0, 1], load: vec![1], spare: vec![], ..CpuSets::default() };
        assert!(Remedy::Race { cpus: same, load }.shares());
        assert!(
            Remedy::Load { threads: 1, shares: false }.more_for_load().ends_with("--threads 2")
        );
    }
}
