//! Layout for a terminal.
//!
//! - `terminal`: a whole report; `table_layout`: a table in it, i.e. widths, and which columns fit.
//! - `bar` and `chart`: drawings; `ink` and `text`: colours, and wrapping.

pub(crate) mod bar;
pub mod chart;
pub(crate) mod ink;
pub(crate) mod table_layout;
pub(crate) mod terminal;
pub(crate) mod text;
