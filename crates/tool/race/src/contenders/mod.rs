//! Contenders: manifests, the commands and placeholders in them, adapters to a protocol, and what is started for
//! one. Nothing here runs anything.

pub(crate) mod adapter;
pub(crate) mod backend;
pub mod bundled;
pub(crate) mod command;
pub(crate) mod find_contenders;
pub(crate) mod launches;
pub(crate) mod lines_of_code;
pub(crate) mod manifest;
pub(crate) mod nearest;
pub(crate) mod over;
pub(crate) mod placeholders;
pub(crate) mod run_files;
pub(crate) mod sources;
