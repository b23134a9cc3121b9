//! The reply that the null server sends in workloads whose replies differ from their requests. It is
//! written before each start and has as many bytes as the reply of regatta's own server.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Returns its path in the folder of a start.
pub(crate) fn path(run: &Path) -> PathBuf {
    run.join("reply")
}

/// Writes it to the folder of a start.
pub(crate) fn write(run: &Path, reply: &[u8]) -> io::Result<()> {
    fs::write(path(run), reply)
}
