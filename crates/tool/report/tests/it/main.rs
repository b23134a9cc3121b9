//! Reports of stored summaries: the terminal, Markdown, CSV, JSON, and the formats of other programs.

mod answer;
mod axes;
mod common;
mod counted;
mod figures;
mod formats;
mod latency_ratios;
mod live;
mod once;
mod open;
mod operations;
mod regimes;
mod remarks;
mod report;
mod roles;
mod sweep;
mod versions;
