//! The CPU clock of another process, which needs `unsafe`: no safe wrapper offers it.

use std::io;

/// Returns the CPU time used by all threads of `pid`, including ended ones, in nanoseconds
/// (clock_getcpuclockid(3)). Fails if the process is gone.
pub(crate) fn process_clock_ns(pid: u32) -> io::Result<u64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a local variable, valid for the call's one write.
    let errno = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
    if errno != 0 {
        return Err(io::Error::from_raw_os_error(errno));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local variable, valid for the call's one write. A clock id whose
    // process is gone is an error, not a fault.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};

    #[test]
    fn agrees_with_the_process_own_clock() {
        let own = || {
            let time = clock_gettime(ClockId::ProcessCPUTime);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        let before = own();
        let read = process_clock_ns(std::process::id()).unwrap();
        let after = own();
        assert!((before..=after).contains(&read), "{before} <= {read} <= {after}");
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        const BEYOND_ALL_PIDS: u32 = (1 << 22) + 1;
        assert!(process_clock_ns(BEYOND_ALL_PIDS).is_err());
    }
}
