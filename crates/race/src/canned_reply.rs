//! The reply that the null server sends where a reply is not its request: written before each start,
//! with as many bytes as the reply of regatta's own server.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where it lies in the folder of a start.
pub(crate) fn path(run: &Path) -> PathBuf {
    run.join("reply")
}

/// Writes it.
pub(crate) fn write(run: &Path, reply: &str) -> io::Result<()> {
    fs::write(path(run), reply)
}
