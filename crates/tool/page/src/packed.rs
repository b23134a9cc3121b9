//! Compressed text that a page contains and a browser unpacks.

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};
use std::io::Write;

/// Packs a text: gzip, in base64. The same text gives the same result.
pub fn packed(text: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    STANDARD.encode(written.expect("writing to memory does not fail"))
}

/// The digest of an inline script in the form of a content security policy.
pub fn digest(script: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_packed_text_can_be_unpacked() {
        let text = "µ</script>".repeat(1_000);
        let bytes = STANDARD.decode(packed(&text)).unwrap();
        assert!(bytes.len() < 200, "{} bytes", bytes.len());
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, text);
    }

    #[test]
    fn a_digest_has_the_form_of_a_policy() {
        // The example of the specification (CSP 3, section 8.4).
        let expected = "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='";
        assert_eq!(digest("alert('Hello, world.');"), expected);
    }
}
