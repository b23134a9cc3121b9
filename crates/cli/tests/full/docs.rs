//! The documentation: README.md and the book in `docs/`.

use crate::support::docs::commands::{How, play_all};
use regatta_testkit::machine;

#[test]
fn every_command_runs() {
    let _turn = machine::alone();
    play_all(How::Run);
}
