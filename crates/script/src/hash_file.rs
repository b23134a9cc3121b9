//! The file that servers of `hash` read and digest: what is in it, and what its digest is.

use ring::digest::{SHA256, digest};
use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// SHA-256 of the file's 65,536 bytes, in lower-case hex: what every right reply says, whatever `n`
/// is, since each time the file's bytes are digested and not the last digest.
pub const DIGEST: &str = "3e1cc9f5150fa9fc7c76d48a94d57351631d93a0f65d71daa58b81ba923a685f";

/// Blocks of 32 bytes: 65,536 bytes in all.
const BLOCKS: usize = 2048;

/// Writes the file. Block `i` is SHA-256 of the text `regatta i`, so that its content looks random
/// and is the same everywhere. Anybody may read it, whatever the umask, since some servers become
/// another user.
///
/// # Errors
/// Those of writing to `path`.
pub fn write(path: &Path) -> io::Result<()> {
    fs::write(path, bytes())?;
    fs::set_permissions(path, Permissions::from_mode(0o644))
}

fn bytes() -> Vec<u8> {
    let block = |i| digest(&SHA256, format!("regatta {i}").as_bytes());
    (0..BLOCKS).flat_map(|i| block(i).as_ref().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// The oracle is another crate.
    #[test]
    fn the_file_and_its_digest_are_what_another_crate_makes_of_them() {
        let blocks = (0..BLOCKS).map(|i| Sha256::digest(format!("regatta {i}")));
        let expected: Vec<u8> = blocks.flat_map(|block| block.to_vec()).collect();
        assert_eq!(expected.len(), 65_536);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path).unwrap();
        assert!(fs::read(&path).unwrap() == expected);
        let hex: String = Sha256::digest(&expected).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, DIGEST);
    }
}
