//! What both ends of a connection have in common.

pub(crate) mod fields;
pub(crate) mod limits;
pub(crate) mod memo;
pub(crate) mod range;
pub(crate) mod reader;
pub(crate) mod resets;
pub(crate) mod streams;
