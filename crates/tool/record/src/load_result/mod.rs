//! The result of `regatta load`, and what a load process reports to the process that started it.

pub(crate) mod across;
pub(crate) mod agents;
pub(crate) mod report;
pub(crate) mod result;
pub(crate) mod slow;
pub(crate) mod stage;
