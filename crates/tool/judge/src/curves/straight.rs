//! A straight line through the points of a contender, with intervals.

use super::place::{CurvePoint, by_pass};
use crate::statistics::{Line, arithmetic, mean};
use regatta_record::{Asked, Estimate};

/// A line with its intervals.
pub(super) struct Fitted {
    pub start: Estimate,
    pub slope: Estimate,
    /// The line of the mean coefficients.
    pub line: Line,
    /// The mean of all passes at each place.
    pub means: Vec<f64>,
}

/// Fits a line through `point` of each place and pass, a cost in y. `None` with fewer than 2 passes,
/// which is added to `doubts`, and if the points of a pass determine no line.
///
/// A line is fitted to each pass, and the intervals are over the passes' coefficients: the points
/// of a pass share the machine's drift and are not independent, the passes are. Weights are 1/y², y
/// being the mean of all passes at that place: errors of CPU time are proportional to it, and
/// weights that varied from pass to pass with the errors would pull the line down.
pub(super) fn fit(
    asked: &Asked,
    places: &[&CurvePoint],
    doubts: &mut Vec<String>,
    point: impl Fn(&CurvePoint, usize) -> Option<(f64, f64)>,
) -> Option<Fitted> {
    let passes = by_pass(places, point);
    let column = |i: usize| mean(&passes.iter().map(|pass| pass[i].1).collect::<Vec<_>>());
    let means: Vec<f64> = (0..places.len()).map_while(column).collect();
    let weights: Vec<f64> = means.iter().map(|y| 1.0 / (y * y)).collect();
    let lines: Option<Vec<Line>> = passes
        .iter()
        .map(|pass| {
            let (x, y): (Vec<f64>, Vec<f64>) = pass.iter().copied().unzip();
            Line::through(&x, &y, &weights)
        })
        .collect();
    let lines = lines?;
    let coefficients =
        |of: fn(&Line) -> f64| arithmetic(&lines.iter().map(of).collect::<Vec<_>>(), asked.seed);
    let Some((start, slope)) = coefficients(|line| line.start).zip(coefficients(|line| line.slope))
    else {
        doubts.push("no line of cost: its interval needs 2 rounds".to_owned());
        return None;
    };
    let line = Line { start: start.mean, slope: slope.mean };
    Some(Fitted { start, slope, line, means })
}
