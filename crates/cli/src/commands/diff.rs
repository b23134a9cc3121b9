//! `regatta diff`: compares two result directories and finds what became more expensive.

use crate::{exit::Outcome, options::values::percent, output};
use anyhow::{Context, bail};
use regatta_judge::{Side, diff};
use regatta_race::Store;
use regatta_record::{Asked, Decision, Round};
use std::path::{Path, PathBuf};

/// Compare the costs of two results. Each cost is divided by that of the null server of the same blocks
/// or rounds, which cancels changes of the machine between the two runs.
///
/// A more reliable gate is one race of both builds, because they are then alive together:
/// race './old {port}' './new {port}' --fail-over 5%
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta diff results/main results/branch
  regatta diff results/main results/branch --fail-over 5% --md comment.md

Exit status without --fail-over: 0 compared; 2 wrong usage.
With --fail-over: 0 every cost is within the limit, with 95% confidence; 1 a cost exceeds the limit,
cannot be judged, or is only in OLD; 2 wrong usage; 3 not decided, because an interval contains the
limit.")]
pub struct DiffArgs {
    /// The result directory to compare with
    old: PathBuf,
    /// The result directory to judge
    new: PathBuf,
    /// Fail (exit status 1) if, with 95% confidence, a cost increased by more than this, e.g. 5%; exit
    /// with status 3 if an interval contains the limit
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_over: Option<f64>,
    /// Write the comparison as Markdown for a pull request; - for stdout instead of the table
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Write the comparison as JSON; - for stdout instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Reads both directories, compares them and prints the comparison.
pub fn run(args: DiffArgs) -> anyhow::Result<Outcome> {
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if is_stdout(&args.json) && is_stdout(&args.md) {
        bail!("--json and --md cannot both write to stdout; write one of them to a file");
    }
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    let names = [&args.old, &args.new].map(|dir| dir.display().to_string());
    let side = |name, (asked, rounds)| Side { name, asked, rounds };
    let gate =
        diff(side(&names[0], (&old.0, &old.1)), side(&names[1], (&new.0, &new.1)), args.fail_over)?;
    let mut table = true;
    for (path, form) in [
        (&args.json, regatta_report::gate_json as fn(&_) -> String),
        (&args.md, regatta_report::gate_markdown),
    ] {
        if let Some(path) = path {
            output::write(path, &form(&gate))?;
            table &= path != Path::new("-");
        }
    }
    if table {
        let text = regatta_report::gate_terminal(&gate, output::width(), output::colour());
        output::print(&text)?;
    }
    Ok(match gate.decision() {
        _ if gate.fail_over.is_none() => Outcome::Success,
        Decision::Passed => Outcome::Success,
        Decision::Failed => Outcome::Failure,
        Decision::NotDecided => Outcome::NotDecided,
    })
}

fn read(dir: &Path) -> anyhow::Result<(Asked, Vec<Round>)> {
    Store::read(dir).with_context(|| {
        format!(
            "{} cannot be compared: expected a result directory of `regatta race`, with race.toml and \
             rounds.jsonl",
            dir.display()
        )
    })
}
