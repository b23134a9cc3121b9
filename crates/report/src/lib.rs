//! From a judged race to text: terminal, Markdown, JSON, CSV, HTML.
//!
//! Pure: a [`Summary`](regatta_record::Summary) in, a `String` out; nothing is measured, judged or recomputed here. What a
//! terminal shows while a race runs is made of its events in the same way (`live`). The three that
//! people read share one view (`view`), so they say the same. Names, last words and
//! wrong replies come from the contenders and are hostile input: control characters are made
//! visible, and each format escapes what it would take for its own.
//!
//! In all of them a figure that its verdict voids stands in parentheses, a figure that is not
//! there is `–`, and digits end where the interval says that they mean nothing.

mod chart;
mod columns;
mod contenders;
mod cores;
mod csv;
mod curves;
mod diff;
mod gate;
mod heads;
mod html;
mod json;
mod latency_ratios;
mod live;
mod markdown;
mod numbers;
mod operations;
mod parts;
mod plan;
mod plot;
mod roles;
mod scaling;
mod sentences;
mod table;
mod terminal;
mod then;
mod view;
mod warm_ups;
mod why;

pub use csv::csv;
pub use diff::{gate_json, gate_markdown, gate_terminal};
pub use html::html;
pub use json::{capacity_json, json};
pub use live::{Live, Looks, Shown};
pub use markdown::markdown;
pub use numbers::{grouped, memory, time};
pub use plan::{plan_json, plan_text};
pub use terminal::{terminal, wrap};
pub use warm_ups::seen_in_words as warm_up_in_words;
