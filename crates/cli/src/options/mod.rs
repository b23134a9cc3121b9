//! Options that several subcommands share, parsers of their values, and the texts of `--help`.

pub(crate) mod broker;
pub(crate) mod canned;
pub(crate) mod certificate;
pub(crate) mod config_file;
pub(crate) mod formats;
pub(crate) mod hub;
pub(crate) mod machines;
pub(crate) mod metrics;
pub(crate) mod planted;
pub(crate) mod renewed;
pub(crate) mod rooms;
pub(crate) mod values;
pub(crate) mod word;
