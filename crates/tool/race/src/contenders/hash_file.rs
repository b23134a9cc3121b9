//! The file that contenders of the workload `hash` read for every request. It is written before each
//! start, with the same content for all contenders.

use regatta_script::hash_file;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Returns its path in the folder of a start.
pub(crate) fn path(run: &Path) -> PathBuf {
    run.join("hash.bin")
}

/// Writes it, world-readable.
pub(crate) fn write(run: &Path) -> io::Result<()> {
    hash_file::write(&path(run))
}
