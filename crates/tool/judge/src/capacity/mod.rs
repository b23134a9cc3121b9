//! Judges the levels of a capacity search: `search` chooses the next level, `level` decides whether
//! the server held one, `across` also by deliveries between agents.

pub mod across;
pub mod level;
pub mod search;
