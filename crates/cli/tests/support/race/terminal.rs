//! A pseudo terminal to race on: the output that arrives at it, with its times, and the final screen.

use crate::support::race::course::{LIMIT, until};
use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use std::{
    fs::{File, OpenOptions},
    io::Read,
    num::NonZeroU16,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Instant,
};

/// The width of the terminal.
pub const COLUMNS: u16 = 120;
/// Enough rows that nothing scrolls off the screen.
const ROWS: u16 = 300;

/// The outputs of a program that go to the terminal. The other one is discarded.
#[derive(Clone, Copy, PartialEq)]
pub enum On {
    Stdout,
    Both,
}

/// The output of a program on a terminal.
pub struct Printed {
    pub status: ExitStatus,
    /// The output, with the times at which it arrived.
    pub chunks: Vec<(Instant, Vec<u8>)>,
}

impl Printed {
    /// Returns all output, including escape sequences.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        String::from_utf8(bytes).unwrap()
    }

    /// Returns the text of the final screen.
    pub fn screen(&self) -> String {
        let size = [ROWS, COLUMNS].map(|n| NonZeroU16::new(n).unwrap());
        let mut terminal = vt100::Parser::new(size[0], size[1], 0);
        terminal.process(self.text().as_bytes());
        terminal.screen().contents()
    }
}

/// Runs a command on a terminal until it ends.
pub fn run_on_terminal(mut command: Command, on: On) -> Printed {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();

    let stderr = match on {
        On::Both => slave.try_clone().unwrap().into(),
        On::Stdout => Stdio::null(),
    };
    command.stdout(slave).stderr(stderr).env("TERM", "xterm");
    let mut child = command.spawn().unwrap();
    drop(command); // closes this process's descriptors of the terminal
    let (whole, printed) = mpsc::channel();
    thread::spawn(move || {
        let (mut master, mut chunks) = (File::from(master), Vec::new());
        let mut buffer = vec![0; 65_536];
        // EIO is the end: all descriptors of the terminal are closed.
        while let Ok(n @ 1..) = master.read(&mut buffer) {
            chunks.push((Instant::now(), buffer[..n].to_vec()));
        }
        whole.send(chunks)
    });
    until("the program on the terminal ends", || child.try_wait().unwrap().is_some());
    let status = child.wait().unwrap();
    Printed { status, chunks: printed.recv_timeout(LIMIT).unwrap() }
}
