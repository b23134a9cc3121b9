//! Lists of numbers.

/// Returns numbers, e.g. of CPUs, with this between each two.
pub fn joined(numbers: &[u32], between: &str) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(between)
}
