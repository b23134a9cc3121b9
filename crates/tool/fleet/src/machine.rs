//! What leader and agents need of the machine that they run on.

use ring::digest::{Context, SHA256};
use rustix::time::{ClockId, clock_gettime};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    thread,
};

/// The running program, also if its file was replaced since it started (proc_pid_exe(5)).
pub const PROGRAM: &str = "/proc/self/exe";

/// Returns the time of `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Which program it is. Leader and agents must be the same, because the cost of the load generator is part of
/// the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The version, for messages.
    pub version: String,
    /// SHA-256 of the program, in hexadecimal digits.
    pub sha256: String,
}

impl Build {
    /// The running program, of this version.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn running(version: &str) -> io::Result<Build> {
        Build::of(Path::new(PROGRAM), version)
    }

    /// The program in a file, of this version.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(file: &Path, version: &str) -> io::Result<Build> {
        Ok(Build { version: version.to_owned(), sha256: sha256(file)? })
    }
}

/// SHA-256 of a file, in hexadecimal digits.
///
/// # Errors
/// If it cannot be read.
pub fn sha256(file: &Path) -> io::Result<String> {
    let mut content = File::open(file)?;
    let (mut context, mut buffer) = (Context::new(&SHA256), vec![0; 1 << 20]);
    loop {
        match content.read(&mut buffer)? {
            0 => break,
            n => context.update(&buffer[..n]),
        }
    }
    Ok(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the number of CPUs that this process may use; 1 if that is not known.
pub(crate) fn cores() -> u32 {
    thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_well_known_digest() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&path).unwrap(), abc);
    }

    #[test]
    fn the_hash_of_the_program_is_that_of_its_file() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let digest = ring::digest::digest(&SHA256, &file);
        let expected: Vec<String> =
            digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let build = Build::running("1").unwrap();
        assert_eq!((build.sha256, build.version), (expected.concat(), "1".into()));
    }
}
