//! The formats that other programs read, as options of `report` and `race`.

use crate::output;
use anyhow::{Context, bail};
use regatta_record::{Round, Summary};
use std::path::{Path, PathBuf};

/// Files in the formats of other programs.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Formats of other programs")]
pub struct Formats {
    /// Write Bencher Metric Format (JSON), for `bencher run --adapter json --file FILE`
    #[arg(long, value_name = "FILE")]
    bmf: Option<PathBuf>,
    /// Write the JSON of github-action-benchmark, for its tool `customSmallerIsBetter`
    #[arg(long, value_name = "FILE")]
    gha_benchmark: Option<PathBuf>,
    /// Write Prometheus' text format, e.g. for the textfile collector of node_exporter
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
    /// Write an HdrHistogram V2 interval log: each life or round is an interval
    #[arg(long, value_name = "FILE")]
    hdr_log: Option<PathBuf>,
}

impl Formats {
    /// The files with the names of their options.
    pub fn paths(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let Formats { bmf, gha_benchmark, prometheus, hdr_log } = self;
        let all = [
            ("--bmf", bmf),
            ("--gha-benchmark", gha_benchmark),
            ("--prometheus", prometheus),
            ("--hdr-log", hdr_log),
        ];
        all.into_iter().filter_map(|(name, path)| Some((name, path.as_deref()?)))
    }

    /// Checks before a race that all files can be written. Stdout is for the table.
    pub fn check(&self) -> anyhow::Result<()> {
        for (name, path) in self.paths() {
            if path == Path::new("-") {
                bail!(
                    "{name} of a race needs a file; `regatta report DIR {name} -` writes to stdout later"
                );
            }
            output::check(path)?;
        }
        Ok(())
    }

    /// Writes the files of a judged race. Returns the first error after trying all of them.
    pub fn write(&self, summary: &Summary, rounds: &[Round]) -> anyhow::Result<()> {
        let mut result = Ok(());
        for (name, path) in self.paths() {
            let text = match name {
                "--bmf" => Ok(regatta_report::bencher(summary)),
                "--gha-benchmark" => Ok(regatta_report::gha_benchmark(summary)),
                "--prometheus" => Ok(regatta_report::prometheus(summary)),
                _ => regatta_report::hdr_log(summary, rounds)
                    .context("a round has a latency histogram that cannot be read"),
            };
            result = result.and(text.and_then(|text| output::write(path, &text)));
        }
        result
    }
}
