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

mod answer;
mod bar;
mod bencher;
pub mod chart;
mod columns;
mod contenders;
mod cores;
mod csv;
pub mod curves;
mod diff;
mod doubts;
mod exported;
mod gate;
mod gha_benchmark;
mod grid;
mod hdr_log;
mod heads;
mod ink;
mod json;
mod latency_ratios;
pub mod legend;
mod live;
mod markdown;
pub mod numbers;
mod operations;
mod overview;
mod parts;
mod plan;
mod prometheus;
pub mod regimes;
mod roles;
mod scaling;
mod sentences;
pub mod table;
mod terminal;
mod text;
mod then;
pub mod view;
mod warm_ups;
mod why;

pub use answer::{Answer, answer};
pub use bencher::bencher;
pub use columns::NAMES as COLUMNS;
pub use csv::csv;
pub use diff::{gate_json, gate_markdown, gate_terminal};
pub use gha_benchmark::gha_benchmark;
pub use hdr_log::hdr_log;
pub use json::{capacity_json, json};
pub use live::{Bar, Expected, Live, Looks, Room, Shown, capacity};
pub use markdown::markdown;
pub use numbers::{grouped, memory, time};
pub use plan::{plan_json, plan_text};
pub use prometheus::prometheus;
pub use terminal::{terminal, terminal_with};
pub use text::wrap;
pub use warm_ups::{in_words as warm_up, seen_in_words as warm_up_in_words};
