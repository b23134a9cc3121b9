//! Layout for a terminal.

pub(crate) mod bar;
pub mod chart;
pub(crate) mod grid;
pub(crate) mod ink;
pub(crate) mod terminal;
pub(crate) mod text;
