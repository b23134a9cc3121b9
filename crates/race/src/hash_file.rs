//! The file that a contender of the workload `hash` reads for every request: written before each
//! start, with a content that is the same for all.

use sha2::{Digest, Sha256};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Blocks of 32 bytes in it: 65,536 bytes.
const BLOCKS: u32 = 2048;

/// Where it lies in the folder of a start.
pub(crate) fn path(run: &Path) -> PathBuf {
    run.join("hash.bin")
}

/// Writes it: block i is the SHA-256 of the text `regatta i`. Anybody may read it, since some
/// servers become another user.
pub(crate) fn write(run: &Path) -> io::Result<()> {
    let content: Vec<u8> =
        (0..BLOCKS).flat_map(|i| Sha256::digest(format!("regatta {i}"))).collect();
    fs::write(path(run), content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_blocks_are_digests_of_their_numbers() {
        let run = tempfile::tempdir().unwrap();
        write(run.path()).unwrap();
        let content = fs::read(path(run.path())).unwrap();
        assert_eq!(content.len(), 65_536);
        assert_eq!(content[..32], Sha256::digest("regatta 0")[..]);
        assert_eq!(content[65_504..], Sha256::digest("regatta 2047")[..]);
    }
}
