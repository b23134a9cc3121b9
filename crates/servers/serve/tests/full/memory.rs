//! The memory of a server whose members do not read is bounded.

use crate::{models::on_pushing_models, pushes::unread};
use regatta_serve::Model;
use regatta_testkit::machine;

on_pushing_models!(
    a_member_that_never_reads_is_closed_in_bounded_memory_without_loss_for_the_others,
    a_member_that_does_not_read_its_replies_is_not_read_and_loses_nothing,
    a_frame_of_32_mib_is_digested_in_bounded_memory,
);

/// Resident memory of this process, in bytes.
pub fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

/// Bytes by which this process has grown beyond `before`.
fn growth(before: usize) -> usize {
    memory().saturating_sub(before)
}

fn a_member_that_never_reads_is_closed_in_bounded_memory_without_loss_for_the_others(model: Model) {
    let _alone = machine::alone();
    let before = memory();
    unread::a_member_never_reads(model, |said| {
        let grown = growth(before);
        assert!(grown < 96 << 20, "grown by {grown} bytes after {said} messages");
    });
}

fn a_member_that_does_not_read_its_replies_is_not_read_and_loses_nothing(model: Model) {
    let _alone = machine::alone();
    let before = memory();
    unread::a_member_does_not_read_its_replies(model, || {
        let grown = growth(before);
        assert!(grown < 16 << 20, "grown by {grown} bytes");
    });
}

fn a_frame_of_32_mib_is_digested_in_bounded_memory(model: Model) {
    let _alone = machine::alone();
    let before = memory();
    unread::a_client_sends_32_mib(model, || {
        let grown = growth(before);
        assert!(grown < 8 << 20, "grown by {grown} bytes");
    });
}
