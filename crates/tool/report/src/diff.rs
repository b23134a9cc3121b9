//! The comparison of two results (`regatta diff`): a gate that is not part of a race.

use crate::{
    formats::{json::pretty, markdown},
    screen::terminal,
    table::visible,
    tables::gate::table,
    view::View,
};
use regatta_record::Gate;

/// `regatta diff` for a terminal `width` columns wide.
pub fn gate_terminal(gate: &Gate, width: usize, colour: bool) -> String {
    terminal::lay_out(&alone(gate), width, colour, &[])
}

/// `regatta diff` as GitHub's Markdown, for a pull request.
pub fn gate_markdown(gate: &Gate) -> String {
    markdown::lay_out(&alone(gate))
}

/// `regatta diff` as JSON: the record itself.
pub fn gate_json(gate: &Gate) -> String {
    pretty(gate)
}

/// A view with only a gate.
fn alone(gate: &Gate) -> View {
    View {
        heading: vec![visible(&format!("{} against {}", gate.new, gate.old))],
        gate: Some(table(gate)),
        doubts: gate.doubts.iter().map(|doubt| visible(doubt)).collect(),
        ..View::default()
    }
}
