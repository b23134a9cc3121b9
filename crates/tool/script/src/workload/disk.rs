//! Reads the files of a workload from disk.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// Maximum number of bytes of a workload file, and of each file that it names.
const MOST_BYTES: u64 = 4 << 20;

/// Returns the text of a file of limited size.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    String::from_utf8(read_bytes(path)?)
        .map_err(|_| format!("cannot read {name}: expected valid UTF-8"))
}

/// Returns the bytes of a file of limited size.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.display();
    let cannot = |error: io::Error| format!("cannot read {name}: {error}");
    let content = match fs::metadata(path).map_err(cannot)?.is_file() {
        true => read_at_most(path, MOST_BYTES).map_err(cannot)?,
        false => None,
    };
    content.ok_or_else(|| {
        format!("cannot read {name}: expected a file of at most {} MiB", MOST_BYTES >> 20)
    })
}

/// Returns the bytes of a file; `None` if it has more than `most`, or has no end.
///
/// # Errors
/// If it cannot be read.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= most).then_some(content))
}
