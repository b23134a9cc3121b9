//! `regatta doctor`: finds problems of this machine that would make results wrong, with remedies.
//!
//! A check has two parts: a reading from the system, and a pure judgement of it. Nothing on the machine
//! is changed, except that control groups, a ring and sockets are created and removed at once. A
//! self-test loads the CPUs, at most 64, for two seconds.

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

use crate::{exit::Outcome, output};
use check::{Check, Mark};
use std::path::PathBuf;

/// Check this machine, in its current state, for problems that would make results wrong, and print the
/// remedies. Loads all CPUs for two seconds to measure how noisy they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "Marks:
  ok    as it should be
  note  worth knowing when results are read or compared
  warn  some results would be wrong or missing
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

/// The JSON form.
#[derive(serde::Serialize)]
struct Checks<'a> {
    checks: &'a [Check],
}

/// Runs all checks and prints them.
pub fn run(args: DoctorArgs) -> anyhow::Result<Outcome> {
    let checks = checks();
    if let Some(path) = &args.json {
        output::write(path, &regatta_report::pretty(&Checks { checks: &checks }))?;
    }
    if args.json.as_deref() != Some("-".as_ref()) {
        output::print(&show::show(&checks, output::width(), output::colour()))?;
    }
    let bad = checks.iter().any(|check| check.mark == Mark::Bad);
    Ok(if bad { Outcome::Failure } else { Outcome::Success })
}

fn checks() -> Vec<Check> {
    // First, so that its sample does not include the work of the other checks.
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
