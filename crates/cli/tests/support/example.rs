//! Contenders that are built with the tests.

use std::path::{Path, PathBuf};

/// Returns the path of the program built from `examples/NAME.rs`.
pub fn example(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_regatta")).with_file_name("examples").join(name);
    assert!(
        path.exists(),
        "expected {}: run all tests, or first `cargo build -p regatta-cli --examples`",
        path.display()
    );
    path
}
