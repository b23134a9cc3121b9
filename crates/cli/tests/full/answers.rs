//! A contender whose answers are right except for one.

use crate::support::race::{course::Course, wrong_reply};

#[test]
fn one_wrong_answer_in_a_million_is_found_and_shown() {
    // All other replies were correct. Only requests in flight are not counted.
    let args = ["--schedule", "rounds", "--settle", "0s"];
    wrong_reply::assert_is_shown(&Course::alone(), &args, 1_000_000, 900_000);
}
