//! The page of a race: one self-contained HTML file, from a [`Summary`] and its [`Round`]s.
//!
//! All functions are pure. Nothing is measured or judged here: tables and sentences are those of
//! `regatta_report`, plots show the figures of the summary. Only two things come from the rounds: the
//! strip of all rounds, and the percentile curves, whose points are computed like the percentiles of the
//! tables ([`percentile_curve`]).
//!
//! A page has three parts, which [`page`] joins:
//!
//! - the [`body`]: headings, sentences and tables as plain HTML. It can be read without scripts.
//! - the [`data`] of the plots: the summary, as in `summary.json`, and what comes from the rounds. JSON.
//! - the [`shell`]: styles and scripts. The script draws the plots with Observable Plot
//!   (`assets/plot.min.js`), and makes tables sortable. It can be given a new body and new data at any
//!   time, so that a page can follow a race.
//!
//! The page of a capacity search ([`capacity_page`]) has the same frame and another body.
//!
//! The page requests nothing from the network, and its policy forbids it. Scripts are permitted by their
//! digests, so text that comes from contenders could not run even if it were not escaped.

mod body;
mod capacity;
mod data;
mod packed;
mod percentile_curve;
mod refused;
mod setup;
mod shell;
mod strip;

pub use body::body;
pub use capacity::capacity_page;
pub use data::data;
pub use shell::{Feed, shell};

use regatta_record::{Round, Summary};
use regatta_report::table::visible;

/// Renders a race as one HTML page.
pub fn page(summary: &Summary, rounds: &[Round]) -> String {
    shell(&title(summary), &body(summary), &data(summary, rounds), None)
}

/// The title of the page, without control characters. Not escaped.
pub fn title(summary: &Summary) -> String {
    format!("{} · regatta", visible(&summary.asked.name))
}
