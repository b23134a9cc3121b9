//! The progress display during the measured window.

use crate::lies::{
    regatta,
    server::{Server, double},
    wait,
};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    fs::{self, File, OpenOptions},
    io::Read,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

#[test]
fn during_the_window_progress_is_drawn_once_a_second_and_on_the_loads_cpus() {
    let server = Server::lines(|_, _, line| {
        thread::sleep(Duration::from_millis(5));
        Some(double(line))
    });
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = regatta();
    let more = ["-c", "1", "-d", "3s", "--warm-up", "0s", "--cpus", "0"];
    command.args(["load", &server.line_url()]).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(terminal);
    let mut child = command.spawn().unwrap();
    drop(command);
    let drawn = thread::spawn(move || {
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        let mut master = File::from(master);
        // When the other end is closed, a read from a terminal fails with EIO.
        while let Ok(n @ 1..) = master.read(&mut piece) {
            bytes.extend_from_slice(&piece[..n]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let path = format!("/proc/{}/status", child.id());
    let is_pinned = || {
        let status = fs::read_to_string(&path).unwrap_or_default();
        status.lines().any(|line| line == "Cpus_allowed_list:\t0")
    };
    while !is_pinned() {
        assert!(child.try_wait().unwrap().is_none(), "the drawing thread never moved to CPU 0");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(wait(&mut child, Instant::now() + Duration::from_secs(20)), Some(0));
    let drawn = drawn.join().unwrap();
    let times = drawn.matches("measuring").count();
    assert!((1..=5).contains(&times), "{times} times: {drawn}");
}
