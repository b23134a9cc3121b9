//! What the levels of a search for a capacity say: which level is tried next (`search`), and whether
//! one was held (`level`).

pub mod level;
pub mod search;
