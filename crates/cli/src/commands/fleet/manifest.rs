//! `regatta fleet manifest`: what starts the agents of a fleet on the machines of Kubernetes or Slurm.

use crate::{
    exit::Outcome,
    options::values::{connections, limit, rate},
    output,
};
use anyhow::Context;
use regatta_fleet::nats::{Kubernetes, Limits, Members, Memory, Slurm, Targets};
use std::{
    env, fs,
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
    time::Duration,
};

/// Print a manifest that starts the agents of a fleet, each on a machine of its own
#[derive(Debug, clap::Args)]
pub struct ManifestArgs {
    /// The scheduler
    #[command(subcommand)]
    scheduler: Scheduler,
}

#[derive(Debug, clap::Subcommand)]
enum Scheduler {
    /// For Kubernetes 1.24 or later: an Indexed Job with a pod for each agent, and a Secret with their files.
    /// The Secret has the keys of the agents
    #[command(after_help = "Examples:
  regatta fleet manifest kubernetes fleet --targets 10.0.0.0/24:8000-8999 \\
      --image registry.example/regatta:0.1.0 --cpus 4 | kubectl apply -f -

Exit status: 0 printed; 2 wrong usage, or a wrong file.")]
    Kubernetes {
        #[command(flatten)]
        agents: AgentsArgs,
        /// The image, whose entry point is regatta, the same build as the leader's
        #[arg(long)]
        image: String,
        /// CPUs of each pod, which no other pod gets if the nodes have the static policy for CPUs
        #[arg(long, value_name = "N")]
        cpus: NonZeroU32,
        /// Memory of each pod, e.g. 512Mi or 2Gi
        #[arg(long, value_name = "SIZE", default_value = "1Gi")]
        memory: Memory,
    },
    /// For Slurm: a batch script with a node for each agent
    #[command(after_help = "Examples:
  regatta fleet manifest slurm fleet --targets 10.0.0.0/24:8000-8999 \\
      --time 2h | sbatch --partition=bench

Exit status: 0 printed; 2 wrong usage, or a wrong file.")]
    Slurm {
        #[command(flatten)]
        agents: AgentsArgs,
        /// The program on the nodes, the same build as the leader's. Default: the path of this one
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
    },
}

/// The agents, and what they do.
#[derive(Debug, clap::Args)]
struct AgentsArgs {
    /// The folder that `regatta fleet init` has written. Nodes of Slurm read it at the same path
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Only these agents of the fleet. Default: all
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    agents: Vec<String>,
    /// How long the agents run
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "1h")]
    time: Duration,
    /// What they may load, as for `regatta agent`
    #[arg(long, value_name = "NETWORK:PORTS,…", value_delimiter = ',', required = true)]
    targets: Vec<Targets>,
    /// Maximum requests per second of each agent. A load without a rate is refused then
    #[arg(long, value_name = "R", value_parser = rate)]
    max_rate: Option<NonZeroU32>,
    /// Maximum connections of each agent
    #[arg(long, value_name = "N", value_parser = connections)]
    max_connections: Option<NonZeroUsize>,
    /// Maximum length of a session of a leader
    #[arg(long, value_name = "TIME", value_parser = limit)]
    max_session: Option<Duration>,
}

impl AgentsArgs {
    fn read(&self) -> anyhow::Result<(Members, Limits)> {
        let limits = Limits {
            targets: self.targets.clone(),
            max_rate: self.max_rate,
            max_connections: self.max_connections.map(|most| most.get() as u64),
            max_session: self.max_session,
        };
        Ok((Members::read(&self.folder, &self.agents)?, limits))
    }
}

/// Prints a manifest.
pub fn run(args: ManifestArgs) -> anyhow::Result<Outcome> {
    let text = match args.scheduler {
        Scheduler::Kubernetes { agents, image, cpus, memory } => {
            let (members, limits) = agents.read()?;
            Kubernetes { image, cpus, memory, time: agents.time }.manifest(&members, &limits)?
        }
        Scheduler::Slurm { agents, program } => {
            let (members, limits) = agents.read()?;
            let program = match program {
                Some(program) => program,
                None => env::current_exe().context("cannot find the path of this program")?,
            };
            let folder = fs::canonicalize(&agents.folder);
            let folder =
                folder.with_context(|| format!("cannot find {}", agents.folder.display()))?;
            Slurm { program, folder, time: agents.time }.script(&members, &limits)?
        }
    };
    // Not `output::print`, which shows commands as they can be called here.
    output::write(Path::new("-"), &text)?;
    Ok(Outcome::Success)
}
