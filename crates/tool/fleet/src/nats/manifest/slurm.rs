//! A batch script of Slurm with a node for each agent.

use super::{Limits, Members, units};
use crate::error::Error;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// What runs on the nodes.
#[derive(Clone, Debug)]
pub struct Slurm {
    /// The program there.
    pub program: PathBuf,
    /// The folder with the files of the fleet there.
    pub folder: PathBuf,
    /// How long the agents run.
    pub time: Duration,
}

impl Slurm {
    /// Returns the script.
    ///
    /// # Errors
    /// [`Error::Nats`] if a path is no UTF-8, or the broker is on the node of each of several agents.
    pub fn script(&self, members: &Members, limits: &Limits) -> Result<String, Error> {
        if members.is_local && members.agents.len() > 1 {
            return Err(Error::Nats(
                "the broker has a loopback address, which is each node itself: expected a fleet whose broker nodes can \
                 reach (regatta fleet init --broker)"
                    .into(),
            ));
        }
        let (program, folder) = (path(&self.program)?, path(&self.folder)?);
        let (title, count) = (members.title(), members.agents.len());
        let minutes = units(self.time, 60);
        let names: Vec<&str> = members.agents.iter().map(|agent| agent.name.as_str()).collect();
        let (names, options) = (names.join(" "), shell_words::join(limits.options()));
        Ok(format!(
            r#"#!/bin/bash
# The agents of a fleet, written by `regatta fleet manifest slurm`: one on each node. Options of sbatch, e.g.
# --partition, replace those below.
#SBATCH --job-name={title}
#SBATCH --nodes={count}
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time={minutes}
#SBATCH --no-requeue
set -euo pipefail

program={program}
folder={folder}
options=({options})

# A task is the agent with its number, and may use all CPUs of its node. If one ends, all end.
srun --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1 --label bash -euc '
    agents=({names})
    exec "$1" agent --fleet "$2/${{agents[$SLURM_PROCID]}}.toml" "${{@:3}}"
' agent "$program" "$folder" "${{options[@]}}"
"#
        ))
    }
}

/// A path as a word of a shell.
fn path(path: &Path) -> Result<String, Error> {
    let text = path.to_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| {
        Error::Nats(format!("expected a path in UTF-8 for Slurm, got {}", path.display()))
    })?;
    Ok(shell_words::quote(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{super::Member, *};
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    fn members(count: usize, is_local: bool) -> Members {
        let agent = |n: usize| {
            let (name, file, seed) = (format!("gen{n}"), String::new(), String::new());
            Member { name, file, seed }
        };
        let agents = (1..=count).map(agent).collect();
        Members { fleet: "f00".into(), agents, ca: None, is_local }
    }

    fn limits() -> Limits {
        let targets = vec!["[fd00::/64]:80-81".parse().unwrap()];
        Limits { targets, max_rate: None, max_connections: None, max_session: None }
    }

    fn slurm(folder: &str) -> Slurm {
        let (program, time) = ("/opt/regatta".into(), Duration::from_secs(3_601));
        Slurm { program, folder: folder.into(), time }
    }

    #[test]
    fn each_task_is_an_agent_on_a_node_of_its_own() {
        let script = slurm("/home/a b/it's").script(&members(2, false), &limits()).unwrap();
        for line in [
            "#SBATCH --job-name=regatta-f00-agents",
            "#SBATCH --nodes=2",
            "#SBATCH --ntasks-per-node=1",
            "#SBATCH --exclusive",
            "#SBATCH --time=61",
            "program=/opt/regatta",
            "folder='/home/a b/it'\\''s'",
            "options=('--targets=[fd00::/64]:80-81')",
            "    agents=(gen1 gen2)",
        ] {
            assert!(script.lines().any(|one| one == line), "{line}:\n{script}");
        }
    }

    #[test]
    fn a_broker_on_each_of_several_nodes_is_refused() {
        let error = slurm("/x").script(&members(2, true), &limits()).unwrap_err().to_string();
        assert!(error.starts_with("the broker has a loopback address"), "{error}");
        assert!(slurm("/x").script(&members(1, true), &limits()).is_ok());
    }

    #[test]
    fn a_path_that_the_script_cannot_have_is_refused() {
        let folder = PathBuf::from(OsStr::from_bytes(b"/x\xff"));
        let error =
            Slurm { folder, ..slurm("") }.script(&members(1, false), &limits()).unwrap_err();
        assert!(error.to_string().starts_with("expected a path in UTF-8 for Slurm"), "{error}");
    }
}
