//! The file that servers of `hash` read and digest: its content and its digests.

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN, digest};
use std::{
    fmt,
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// SHA-256 of the file's 65,536 bytes, in lower-case hex. It answers every request without a salt
/// for any `n`, because each round digests the file's bytes and not the previous digest.
pub const DIGEST: &str = "3e1cc9f5150fa9fc7c76d48a94d57351631d93a0f65d71daa58b81ba923a685f";

/// Blocks of 32 bytes: 65,536 bytes in all.
const BLOCKS: usize = 2048;

/// Writes the file. Block `i` is SHA-256 of the text `regatta {i}`, so the content looks random and
/// is the same everywhere. Everyone may read it, whatever the umask, because some servers switch to
/// another user.
///
/// # Errors
/// Errors of writing to `path`.
pub fn write(path: &Path) -> io::Result<()> {
    fs::write(path, bytes())?;
    fs::set_permissions(path, Permissions::from_mode(0o644))
}

fn bytes() -> Vec<u8> {
    let block = |i| digest(&SHA256, format!("regatta {i}").as_bytes());
    (0..BLOCKS).flat_map(|i| block(i).as_ref().to_vec()).collect()
}

/// The file's content.
pub struct HashedFile(Vec<u8>);

impl HashedFile {
    /// Returns the content that [`write()`] writes.
    #[must_use]
    pub fn new() -> Self {
        HashedFile(bytes())
    }

    /// Returns the correct answer to a request with a salt: d₀ is the salt, dᵢ = SHA-256(dᵢ₋₁ ‖ the
    /// content), and the answer is dₙ. `n` is at least 1.
    #[must_use]
    pub fn digest(&self, salt: &[u8], n: u32) -> [u8; SHA256_OUTPUT_LEN] {
        let over = |before: &[u8]| {
            let mut context = Context::new(&SHA256);
            context.update(before);
            context.update(&self.0);
            let mut digest = [0; SHA256_OUTPUT_LEN];
            digest.copy_from_slice(context.finish().as_ref());
            digest
        };
        (1..n).fold(over(salt), |last, _| over(&last))
    }
}

impl Default for HashedFile {
    fn default() -> Self {
        HashedFile::new()
    }
}

impl fmt::Debug for HashedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashedFile").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
