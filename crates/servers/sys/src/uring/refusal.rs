//! Whether the kernel permits io_uring, and the message if it does not.

use super::Ring;
use rustix::io::Errno;
use std::io;

/// Returns why io_uring cannot be used here, as a sentence; `None` if it can. Tries to create a
/// ring.
pub fn refused() -> Option<String> {
    Ring::new().err().map(|error| sentence(&error))
}

/// Explains an error of creating a ring, and how to fix it.
fn sentence(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            "the kernel refuses io_uring to this process: the sysctl kernel.io_uring_disabled is \
             not 0, or a container's seccomp filter forbids it; set that sysctl to 0, allow the \
             system calls io_uring_setup, io_uring_enter and io_uring_register, or use \
             --model percore"
                .into()
        }
        Some(Errno::NOSYS) => "this kernel has no io_uring (ENOSYS): it was built without it, \
                               or a seccomp filter hides it; use --model percore"
            .into(),
        Some(Errno::INVAL) => "this kernel's io_uring is too old: Linux 6.1 or newer is needed; \
                               use --model percore"
            .into(),
        Some(Errno::NOMEM) => {
            "not enough memory for an io_uring ring: raise the limit of locked memory \
             (ulimit -l), or use --model percore"
                .into()
        }
        _ => format!("io_uring cannot be set up: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_its_reason_and_a_fix() {
        for (errno, expected) in [
            (Errno::PERM, "sysctl kernel.io_uring_disabled"),
            (Errno::NOSYS, "has no io_uring"),
            (Errno::INVAL, "Linux 6.1"),
            (Errno::NOMEM, "ulimit -l"),
        ] {
            let said = sentence(&errno.into());
            assert!(said.contains(expected) && said.contains("--model percore"), "{said}");
        }
        let said = sentence(&Errno::MFILE.into());
        assert!(said.contains("io_uring cannot be set up: Too many open files"), "{said}");
    }
}
