//! What both ends of a connection have in common.

pub(crate) mod config;
pub(crate) mod content;
pub(crate) mod endpoint;
pub(crate) mod fields;
pub(crate) mod frames;
pub(crate) mod limits;
pub(crate) mod memo;
pub(crate) mod reader;
pub(crate) mod resets;
pub(crate) mod state;
pub(crate) mod streams;
