//! The file and its digests, compared with another crate (`sha2`).

use super::*;
use sha2::{Digest, Sha256};

#[test]
fn matches_the_file_and_digests_of_another_crate() {
    let blocks = (0..BLOCKS).map(|i| Sha256::digest(format!("regatta {i}")));
    let expected: Vec<u8> = blocks.flat_map(|block| block.to_vec()).collect();
    assert_eq!(expected.len(), 65_536);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    write(&path).unwrap();
    assert!(fs::read(&path).unwrap() == expected);
    let hex: String = Sha256::digest(&expected).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, DIGEST);
    let file = HashedFile::new();
    for n in [1, 2, 7] {
        let digest = (0..n).fold(b"c0ffee".to_vec(), |last, _| {
            Sha256::new().chain_update(last).chain_update(&expected).finalize().to_vec()
        });
        assert_eq!(file.digest(b"c0ffee", n)[..], digest);
    }
}
