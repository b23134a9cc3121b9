//! `regatta report`: a result directory again, in any form. Needs nothing but the directory.

use crate::{exit::Done, output};
use anyhow::bail;
use regatta_judge::judge;
use regatta_race::Store;
use std::path::PathBuf;

/// Show a result directory again. Everything is recomputed from its rounds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta report results/20260101-120000-double
  regatta report results/20260101-120000-double --html page.html --csv cells.csv --md -")]
pub struct ReportArgs {
    /// A result directory
    dir: PathBuf,
    /// Write the page; - for stdout
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the judged summary as JSON; - for stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables as Markdown; - for stdout
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Write a row per cell as CSV; - for stdout
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Reads, judges and writes.
pub fn run(args: ReportArgs) -> anyhow::Result<Done> {
    let (asked, rounds) = Store::read(&args.dir)?;
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
        bail!("only one form can go to stdout; give the others a file");
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
    Ok(Done::Well)
}
