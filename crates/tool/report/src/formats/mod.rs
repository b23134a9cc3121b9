//! Files for people and programs: Markdown, JSON, CSV, and the formats of other tools.

pub(crate) mod bencher;
pub(crate) mod csv;
pub(crate) mod exported;
pub(crate) mod gha_benchmark;
pub(crate) mod hdr_log;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod prometheus;
