//! The texts around the tables: the answer, reasons, legends, and what is known of machine and contenders.

pub(crate) mod answer;
pub(crate) mod contenders;
pub(crate) mod cores;
pub(crate) mod doubts;
pub(crate) mod heads;
pub mod legend;
pub mod regimes;
pub(crate) mod sentences;
