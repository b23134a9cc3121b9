//! Curves over cells whose loads differ in a single number: the rate (`rate`, `knee`), the silent
//! connections (`idle`), the connections or the cores (`scalability`). This file assigns cells to
//! curves.

mod idle;
mod knee;
mod place;
mod rate;
mod scalability;
mod straight;

use crate::compared::field::Field;
use place::{Axis, CurvePoint};
use regatta_record::{Asked, Cell, Curve};

/// All curves, ordered by axis, then by load and contender as planned. The twin has none: it serves
/// only to measure the noise.
pub(super) fn curves(asked: &Asked, fields: &[Field], cells: &[Cell]) -> Vec<Curve> {
    let twin = asked.twin();
    let mut curves = Vec::new();
    for axis in [Axis::Rate, Axis::Connections, Axis::Idle, Axis::Cores] {
        for fields in axis.sweeps(asked, fields) {
            for name in asked.contenders.iter().filter(|name| Some(*name) != twin.as_ref()) {
                let places: Vec<CurvePoint> =
                    fields.iter().filter_map(|(n, f)| CurvePoint::of(*n, f, name, cells)).collect();
                if places.len() < axis.least() {
                    continue;
                }
                let (over, doubts) = match axis {
                    Axis::Rate => rate::over(asked, &places),
                    Axis::Idle => idle::over(asked, &places),
                    _ => scalability::over(asked, &places, axis),
                };
                curves.push(Curve {
                    contender: name.clone(),
                    load: places[0].cell.load,
                    over,
                    doubt: (!doubts.is_empty()).then(|| doubts.join("; ")),
                });
            }
        }
    }
    curves
}
