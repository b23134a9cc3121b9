//! `regatta report`: shows a result directory in any form. Needs only the directory.

use crate::{exit::Outcome, output, screen::Screen};
use anyhow::{Context, bail};
use regatta_judge::judge;
use regatta_race::{Store, StoredEvents};
use std::path::{Path, PathBuf};

/// Show the results in a result directory. Everything is recomputed from its rounds. With --replay, the
/// output of the race is printed again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta report results/20260101-120000-double
  regatta report results/20260101-120000-double --html page.html --csv cells.csv --md -
  regatta report results/20260101-120000-double --replay")]
pub struct ReportArgs {
    /// The result directory
    dir: PathBuf,
    /// Print the output of the race again, to stdout and stderr, including resumed parts. It is derived
    /// from the events in events.jsonl
    #[arg(long, conflicts_with_all = ["html", "json", "md", "csv"])]
    replay: bool,
    /// Write the HTML page; - for stdout
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the judged summary as JSON; - for stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables as Markdown; - for stdout
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Write one CSV row per cell; - for stdout
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Reads, judges and writes.
pub fn run(args: ReportArgs) -> anyhow::Result<Outcome> {
    if args.replay {
        return replay(&args.dir);
    }
    let (asked, rounds) = Store::read(&args.dir).with_context(|| {
        format!(
            "{} cannot be shown: expected a result directory of `regatta race`, with race.toml and \
             rounds.jsonl",
            args.dir.display()
        )
    })?;
    let summary = judge(&asked, &rounds);
    type Form = fn(&regatta_record::Summary) -> String;
    let forms: [(&Option<PathBuf>, Form); 4] = [
        (&args.html, regatta_report::html),
        (&args.json, regatta_report::json),
        (&args.md, regatta_report::markdown),
        (&args.csv, regatta_report::csv),
    ];
    let to_stdout = |(path, _): &&(&Option<PathBuf>, Form)| path.as_deref() == Some("-".as_ref());
    if forms.iter().filter(to_stdout).count() > 1 {
        bail!(
            "only one of --html, --json, --md and --csv can write to stdout; write the others to files"
        );
    }
    let mut written = false;
    for (path, form) in forms {
        if let Some(path) = path {
            output::write(path, &form(&summary))?;
            written = true;
        }
    }
    if !written {
        output::print(&regatta_report::terminal(&summary, output::width(), output::colour()))?;
    }
    Ok(Outcome::Success)
}

fn replay(dir: &Path) -> anyhow::Result<Outcome> {
    let mut screen = Screen::new();
    let mut events = StoredEvents::open(dir)?;
    let read = events.try_for_each(|event| event.map(|event| screen.show(&event)));
    screen.printed()?;
    read?;
    Ok(Outcome::Success)
}
