//! Judges the levels of a capacity search: `search` chooses the next level, `level` decides whether
//! the server held one.

pub mod level;
pub mod search;
