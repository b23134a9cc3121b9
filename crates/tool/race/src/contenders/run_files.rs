//! The files that contenders read in the folder of a start, `run`. They are written before each start.

use std::path::{Path, PathBuf};

/// Returns the path of the reply that the null server sends in workloads whose replies differ from their requests. It
/// has as many bytes as the reply of regatta's own server.
pub(crate) fn canned_reply(run: &Path) -> PathBuf {
    run.join("reply")
}

/// Returns the path of the file that contenders of the workload `hash` read for every request. It has the same content
/// for all contenders.
pub(crate) fn hashed(run: &Path) -> PathBuf {
    run.join("hash.bin")
}
