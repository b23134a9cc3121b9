//! Everything that is read from disk for a workload.

use std::{fs, path::Path};

/// Most bytes of a workload file, and of each file that it names.
const MOST_BYTES: u64 = 4 << 20;

/// The text of a file that is not too large.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    String::from_utf8(read_bytes(path)?)
        .map_err(|_| format!("cannot read {name}: expected a text in valid UTF-8"))
}

/// The bytes of a file that is not too large.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.display();
    let cannot = |error: std::io::Error| format!("cannot read {name}: {error}");
    let about = fs::metadata(path).map_err(cannot)?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(format!(
            "cannot read {name}: expected a file of at most {} MiB",
            MOST_BYTES >> 20
        ));
    }
    fs::read(path).map_err(cannot)
}
