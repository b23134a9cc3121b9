//! The file that a contender of the workload `hash` reads for every request: written before each
//! start, with a content that is the same for all.

use regatta_script::hash_file;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Where it lies in the folder of a start.
pub(crate) fn path(run: &Path) -> PathBuf {
    run.join("hash.bin")
}

/// Writes it, so that anybody may read it.
pub(crate) fn write(run: &Path) -> io::Result<()> {
    hash_file::write(&path(run))
}
