//! `regatta fleet` and `regatta agents`: the files of a standing fleet, its relays, and who is there.

mod manifest;

use crate::{exit::Outcome, output};
use anyhow::Context;
use regatta_fleet::{
    Build,
    nats::{Listed, Seen, State, init, list},
};
use std::path::{Path, PathBuf};

/// Make the files of a standing fleet: agents that dial out to a NATS broker, and wait there for a leader
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta fleet init --broker 10.0.0.9 --agents gen1,gen2 fleet
  regatta fleet manifest slurm fleet --targets 10.0.0.0/24:80 | sbatch

Exit status: 0 written; 2 wrong usage, or a file could not be written.")]
pub struct FleetArgs {
    /// The action
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Write a new folder: nats.conf for the broker, and for the leader and each agent NAME.toml and its key,
    /// NAME.nk. Unless the broker is on this machine, also a CA and a certificate of the broker
    Init {
        /// The address of the broker, as agents and leader reach it. The port is 4222 unless it has one
        #[arg(long, value_name = "HOST[:PORT]")]
        broker: String,
        /// The names of the agents
        #[arg(long, value_name = "NAME,…", value_delimiter = ',', required = true)]
        agents: Vec<String>,
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    Manifest(manifest::ManifestArgs),
}

/// Runs an action.
pub fn run(args: FleetArgs) -> anyhow::Result<Outcome> {
    match args.action {
        Action::Init { broker, agents, folder } => made(&broker, &agents, &folder),
        Action::Manifest(args) => manifest::run(args),
    }
}

/// Writes the files of a fleet.
fn made(broker: &str, agents: &[String], folder: &Path) -> anyhow::Result<Outcome> {
    init(folder, broker, agents)?;
    let (dir, first) = (folder.display(), &agents[0]);
    let [of_broker, of_agent] = match folder.join("ca.pem").exists() {
        true => ["nats.conf, broker.pem and broker.key", "NAME.toml, NAME.nk and ca.pem"],
        false => ["nats.conf", "NAME.toml and NAME.nk"],
    };
    output::print(&format!(
        "wrote {dir}. Keep it secret: a program with a key of it is that agent, or the leader\n\
         broker  {of_broker}: cd {dir} && nats-server -c nats.conf\n\
         agents  {of_agent}; e.g. regatta agent --fleet {first}.toml --targets NETWORK:PORTS\n\
         leader  regatta agents --fleet {dir}/leader.toml\n\
        \u{20}       regatta load URL --fleet {dir}/leader.toml --on {}\n",
        agents.join(",")
    ))?;
    Ok(Outcome::Success)
}

/// List the agents of a standing fleet: CPUs, state, round trip and program of each
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta agents --fleet fleet/leader.toml

Exit status: 0 all agents answered; 1 an agent did not, or two have the same name; 2 wrong usage, or the broker cannot be reached.")]
pub struct AgentsArgs {
    /// The leader's file, which `regatta fleet init` has written
    #[arg(long, value_name = "leader.toml")]
    fleet: PathBuf,
}

/// Lists the agents.
pub fn agents(args: AgentsArgs) -> anyhow::Result<Outcome> {
    let listed = list(&args.fleet)?;
    let build = Build::running(env!("REGATTA_VERSION")).context("cannot read this program")?;
    output::print(&table(&listed, &build))?;
    let is_good = |agent: &Listed| agent.seen.as_ref().is_some_and(|seen| !seen.is_double);
    match listed.iter().all(is_good) {
        true => Ok(Outcome::Success),
        false => Ok(Outcome::Failure),
    }
}

/// The agents, one in each line.
fn table(listed: &[Listed], ours: &Build) -> String {
    let width = listed.iter().map(|agent| agent.name.len()).max().unwrap_or(0).max(5);
    let line = |name: &str, [cores, state, rtt, build]: [&str; 4]| {
        format!("{name:<width$}  {cores:>5}  {state:<6}  {rtt:>7}  {build}\n")
    };
    let mut text = line("agent", ["cores", "state", "RTT", "build"]);
    for Listed { name, seen } in listed {
        let Some(Seen { about, is_double, rtt }) = seen else {
            text += &line(name, ["–", "absent", "–", "–"]);
            continue;
        };
        let state = match about.state {
            _ if *is_double => "double",
            State::Busy => "busy",
            State::Idle => "idle",
        };
        let sha = about.build.get(..12).unwrap_or(&about.build);
        let build = match about.build == ours.sha256 {
            true => "this one".to_owned(),
            false => format!("another: {} {} {sha}", about.version, about.arch),
        };
        let rtt = regatta_report::time(rtt.as_nanos() as f64);
        text += &line(name, [&about.cores.to_string(), state, &rtt, &build]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_fleet::nats::About;
    use std::time::Duration;

    #[test]
    fn the_table_has_a_line_for_each_agent_and_names_other_builds() {
        let seen = |build: &str, state| {
            let (version, build, arch) = ("0.1.0".into(), build.to_owned(), "x86_64".into());
            let is_double = build == "aa";
            let about = About { version, build, arch, cores: 8, state };
            Some(Seen { about, is_double, rtt: Duration::from_micros(320) })
        };
        let listed = |name: &str, seen| Listed { name: name.into(), seen };
        let all = [
            listed("generator1", seen("aa", State::Idle)),
            listed("gen2", seen("bb", State::Busy)),
            listed("gen3", None),
        ];
        let ours = Build { version: "0.1.0".into(), sha256: "aa".into() };
        assert_eq!(
            table(&all, &ours),
            "agent       cores  state       RTT  build\n\
             generator1      8  double   320 µs  this one\n\
             gen2            8  busy     320 µs  another: 0.1.0 x86_64 bb\n\
             gen3            –  absent        –  –\n"
        );
    }
}
