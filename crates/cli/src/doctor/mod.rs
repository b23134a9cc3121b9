//! `regatta doctor`: what here would make results wrong, each with the remedy.
//!
//! A check has two parts: what is read from the system, and a pure judgement of it. Nothing is
//! changed here but for what is tried and taken back at once: a control group, a ring, a socket; and
//! all CPUs work for two seconds.

mod busy;
mod check;
mod connections;
mod cpus;
mod kernel;
mod limits;
mod network;
mod noise;
mod selftest;
mod show;

use crate::{exit::Done, output};
use anyhow::Context;
use check::{Check, Mark};
use std::path::PathBuf;

/// Say what on this machine, and at this moment, would make results wrong, with the remedy. Works
/// on all CPUs for two seconds, to tell how noisy they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "Marks:
  ok    as it should be
  note  to be known when results are read or compared
  warn  some results would be wrong, or not be there
  bad   a race would be refused or meaningless; the exit status is 1

Examples:
  regatta doctor
  regatta doctor && regatta race
  regatta doctor --json - | jq -r '.checks[] | select(.mark != \"ok\") | .remedy'")]
pub struct DoctorArgs {
    /// Write the checks as JSON; - for stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The machine form.
#[derive(serde::Serialize)]
struct Checks<'a> {
    checks: &'a [Check],
}

/// Looks, judges and tells.
pub fn run(args: DoctorArgs) -> anyhow::Result<Done> {
    let checks = checks();
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&Checks { checks: &checks })
            .context("the checks have no JSON")?;
        output::write(path, &format!("{json}\n"))?;
    }
    if args.json.as_deref() != Some("-".as_ref()) {
        output::print(&show::show(&checks, output::width(), output::colour()))?;
    }
    let bad = checks.iter().any(|check| check.mark == Mark::Bad);
    Ok(if bad { Done::Short } else { Done::Well })
}

fn checks() -> Vec<Check> {
    // First, so that the work of the other checks is not in its sample.
    let busy = busy::checks();
    let noise = noise::checks();
    let setup = regatta_host::read_setup(env!("CARGO_PKG_VERSION"), None, Vec::new());
    let mut checks = cpus::checks(&setup);
    checks.extend(busy);
    checks.extend(noise);
    checks.extend(limits::checks());
    checks.extend(network::checks(&setup));
    checks.extend(kernel::checks());
    checks
}
