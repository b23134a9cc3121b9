//! The lower and the upper half of the convex hull of points, by Andrew's monotone chain (*Another efficient
//! algorithm for convex hulls in two dimensions*, 1979). A line is below all points if it is below the corners of the
//! lower half.

use super::line::Point;

/// Returns the corners of the lower half, from left to right. The rates from one to the next increase.
pub(super) fn lower_half(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_unstable_by_key(|point| (point.x, point.y));
    points.dedup_by_key(|point| point.x);
    let mut corners: Vec<Point> = Vec::with_capacity(points.len());
    for point in points {
        while let [.., a, b] = corners[..]
            && !is_below(b, a, point)
        {
            corners.pop();
        }
        corners.push(point);
    }
    corners
}

/// Returns the corners of the upper half, from left to right. The rates from one to the next decrease.
pub(super) fn upper_half(points: Vec<Point>) -> Vec<Point> {
    let mirrored = |point: Point| Point { y: -point.y, ..point };
    let corners = lower_half(points.into_iter().map(mirrored).collect());
    corners.into_iter().map(mirrored).collect()
}

/// Whether `b` is below the line from `a` to `c`.
fn is_below(b: Point, a: Point, c: Point) -> bool {
    (b.y - a.y) * (c.x - a.x) < (c.y - a.y) * (b.x - a.x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: &[(i128, i128)]) -> Vec<Point> {
        of.iter().map(|&(x, y)| Point { x, y }).collect()
    }

    #[test]
    fn corners_are_those_of_a_worked_example() {
        let all = points(&[(3, 0), (0, 2), (1, 1), (2, 5), (4, 3), (2, 1), (0, 4)]);
        // (1, 1) is below the line from (0, 2) to (3, 0), which is at 4/3 there.
        assert_eq!(lower_half(all.clone()), points(&[(0, 2), (1, 1), (3, 0), (4, 3)]));
        assert_eq!(upper_half(all), points(&[(0, 4), (2, 5), (4, 3)]));
    }

    #[test]
    fn points_on_a_line_keep_only_its_ends() {
        let all = points(&[(0, 0), (1, 1), (2, 2), (3, 3)]);
        assert_eq!(lower_half(all.clone()), points(&[(0, 0), (3, 3)]));
        assert_eq!(upper_half(all), points(&[(0, 0), (3, 3)]));
    }

    #[test]
    fn of_points_at_the_same_time_the_outer_one_remains() {
        let all = points(&[(5, 2), (5, -1), (5, 7)]);
        assert_eq!(lower_half(all.clone()), points(&[(5, -1)]));
        assert_eq!(upper_half(all), points(&[(5, 7)]));
        assert!(lower_half(Vec::new()).is_empty());
    }
}
