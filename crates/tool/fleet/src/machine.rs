//! What leader and agents need of the machine that they run on.

use ring::digest::{Context, SHA256};
use rustix::time::{ClockId, clock_gettime};
use std::{
    fs::File,
    io::{self, Read},
    thread,
};

/// The running program, also if its file was replaced since it started (proc_pid_exe(5)).
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// Returns the time of `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the SHA-256 of the running program, in hexadecimal digits.
///
/// # Errors
/// If its file cannot be read.
pub(crate) fn build_hash() -> io::Result<String> {
    let mut program = File::open(PROGRAM)?;
    let (mut context, mut buffer) = (Context::new(&SHA256), vec![0; 1 << 18]);
    loop {
        match program.read(&mut buffer)? {
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
    fn the_hash_of_the_program_is_that_of_its_file() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let digest = ring::digest::digest(&SHA256, &file);
        let expected: Vec<String> =
            digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(build_hash().unwrap(), expected.concat());
    }
}
