//! Reads the files of a workload from disk.

use std::{
    fs::{self, File},
    io::Read,
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
    let cannot = |error: std::io::Error| format!("cannot read {name}: {error}");
    let about = fs::metadata(path).map_err(cannot)?;
    let mut content = Vec::new();
    if about.is_file() {
        // One byte more than permitted, because the file may grow.
        let file = File::open(path).map_err(cannot)?;
        file.take(MOST_BYTES + 1).read_to_end(&mut content).map_err(cannot)?;
    }
    if !about.is_file() || content.len() as u64 > MOST_BYTES {
        return Err(format!(
            "cannot read {name}: expected a file of at most {} MiB",
            MOST_BYTES >> 20
        ));
    }
    Ok(content)
}
