//! Renders a judged race as text: terminal, Markdown, JSON, CSV, and formats of other programs. The crate
//! `page` makes its HTML page.
//!
//! All functions are pure: a record, such as a [`Summary`](regatta_record::Summary), in, a `String`
//! out. Nothing is measured, judged or recomputed here. The terminal output of a running race is derived
//! from its events in the same way (`live`). Terminal, Markdown and the page share one view
//! (`view`), so their texts are the same. A terminal has no room for everything: with many loads it shows
//! an overview instead of their tables, and on a narrow one remarks are cut. Names, error output and
//! wrong replies come from the contenders and are hostile input: control characters are made visible,
//! and each format escapes its special characters.
//!
//! In terminal, Markdown and the page, a figure that its verdict voids is in parentheses, a missing figure
//! is `–`, and figures with an interval have no more digits than it supports. JSON and CSV have the
//! figures of the record. The formats of other programs (`bencher`, `gha_benchmark`, `prometheus`,
//! `hdr_log`) have only figures that are neither void nor unknown (`exported`), because their readers know
//! no verdicts.
//!
//! # Where things are
//!
//! - `view`: what terminal, Markdown and the page share.
//! - `tables` and `texts`: its parts, each table with its columns; `table`: the type of a table; `numbers` formats
//!   figures.
//! - `screen`: layout for a terminal, with the widths of tables; `formats`: all other forms.
//! - `live`: the output while a race runs.

mod diff;
mod dry_run;
mod formats;
mod live;
pub mod numbers;
mod screen;
pub mod table;
mod tables;
mod texts;
pub mod view;

pub use diff::{gate_json, gate_markdown, gate_terminal};
pub use dry_run::{plan_json, plan_text};
pub use formats::{
    bencher::bencher,
    csv::csv,
    gha_benchmark::gha_benchmark,
    hdr_log::hdr_log,
    json::{capacity_json, json, pretty},
    markdown::markdown,
    prometheus::prometheus,
};
pub use live::{Bar, Expected, Live, Looks, Room, Shown, capacity};
pub use numbers::{grouped, memory, time};
pub use screen::{
    chart,
    terminal::{terminal, terminal_with},
    text::folded,
};
pub use tables::{
    columns::NAMES as COLUMNS,
    curves,
    warm_ups::{in_words as warm_up, seen_in_words as warm_up_in_words},
};
pub use texts::{
    answer::{Answer, answer},
    heads::protocol_in_words,
    legend, regimes,
};
