//! `regatta report`: shows a result directory, or the summary of one, in any form. Needs nothing else.

use crate::{
    exit::Outcome,
    options::{formats::Formats, values::columns},
    output,
    program_name::summary_as_called,
    screen::Screen,
};
use anyhow::{Context, bail};
use regatta_judge::judge;
use regatta_race::{Store, StoredEvents};
use regatta_record::{Round, Summary, check_format};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Show the results in a result directory. Everything is recomputed from its rounds. With --replay, the
/// output of the race is printed again.
///
/// A summary that was written with --json, such as those of published/, can be shown too, without its
/// rounds: not as a page or an HdrHistogram log.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta report results/20260101-120000-double
  regatta report results/20260101-120000-double --html page.html --md -
  regatta report results/20260101-120000-double \\
      --bmf bmf.json --hdr-log latencies.hlog
  regatta report results/20260101-120000-double --columns cost,ratio,bar,p99
  regatta report results/20260101-120000-double --replay
  regatta report published/hello/summary.json --md -")]
pub struct ReportArgs {
    /// The result directory, or a summary.json
    #[arg(value_name = "DIR")]
    from: PathBuf,
    /// Print the output of the race again, to stdout and stderr, including resumed parts. It is derived
    /// from the events in events.jsonl
    #[arg(long, conflicts_with_all = [
        "html", "json", "md", "csv", "bmf", "gha_benchmark", "prometheus", "hdr_log",
    ])]
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
    /// Show these columns in the tables, in this order. Default: those that fit the terminal
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = columns())]
    columns: Vec<String>,
    // Last, because its heading would also apply to what follows.
    #[command(flatten)]
    formats: Formats,
}

/// Reads, judges and writes.
pub fn run(args: ReportArgs) -> anyhow::Result<Outcome> {
    if args.replay {
        return replay(&args);
    }
    let Results { summary, rounds } = Results::read(&args.from)?;
    let page = args.html.is_some().then_some("--html");
    let log = args.formats.paths().map(|(name, _)| name).find(|name| *name == "--hdr-log");
    if rounds.is_none()
        && let Some(option) = page.or(log)
    {
        bail!(
            "{option} needs the rounds of a race: expected a result directory, got the summary {}",
            args.from.display()
        );
    }
    let rounds = rounds.unwrap_or_default();
    type Form<'a> = &'a dyn Fn() -> String;
    let forms: [(&Option<PathBuf>, Form<'_>); 4] = [
        (&args.html, &|| regatta_page::page(&summary, &rounds)),
        (&args.json, &|| regatta_report::json(&summary)),
        (&args.md, &|| regatta_report::markdown(&summary)),
        (&args.csv, &|| regatta_report::csv(&summary)),
    ];
    let paths = forms.iter().filter_map(|(path, _)| path.as_deref());
    let paths = paths.chain(args.formats.paths().map(|(_, path)| path));
    if paths.filter(|path| *path == Path::new("-")).count() > 1 {
        bail!("only one form can be written to stdout; write the others to files");
    }
    let mut written = args.formats.paths().next().is_some();
    for (path, form) in forms {
        if let Some(path) = path {
            output::write(path, &form())?;
            written = true;
        }
    }
    args.formats.write(&summary, &rounds)?;
    if !written {
        let (width, colour) = (output::width(), output::colour());
        let summary = summary_as_called(&summary).unwrap_or(summary);
        output::print(&regatta_report::terminal_with(&summary, width, colour, &args.columns))?;
    }
    Ok(Outcome::Success)
}

/// What is shown.
struct Results {
    summary: Summary,
    /// `None`: only the summary is there.
    rounds: Option<Vec<Round>>,
}

impl Results {
    fn read(from: &Path) -> anyhow::Result<Results> {
        if from.is_file() {
            let summary = read_summary(from).with_context(|| {
                format!(
                    "{} is no summary of a race: expected a result directory, or a summary.json",
                    from.display()
                )
            })?;
            return Ok(Results { summary, rounds: None });
        }
        let (asked, rounds) = Store::read(from).with_context(|| {
            format!(
                "{} cannot be shown: expected a result directory of `regatta race`, with race.toml and \
                 rounds.jsonl, or a summary.json",
                from.display()
            )
        })?;
        Ok(Results { summary: judge(&asked, &rounds), rounds: Some(rounds) })
    }
}

fn read_summary(path: &Path) -> anyhow::Result<Summary> {
    let text = fs::read_to_string(path)?;
    let summary: Summary = serde_json::from_str(&text)?;
    check_format(summary.format).map_err(anyhow::Error::msg)?;
    Ok(summary)
}

fn replay(args: &ReportArgs) -> anyhow::Result<Outcome> {
    if args.from.is_file() {
        bail!(
            "--replay needs the events of a race: expected a result directory, got the file {}",
            args.from.display()
        );
    }
    let mut screen = Screen::new(args.columns.clone());
    let mut events = StoredEvents::open(&args.from)?;
    let read = events.try_for_each(|event| event.map(|event| screen.show(&event)));
    screen.printed()?;
    read?;
    Ok(Outcome::Success)
}
