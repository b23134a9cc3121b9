//! A terminal to race on: a pseudo terminal, what arrives at it and when, and what is to be seen on
//! it in the end.

use crate::course::{LIMIT, until};
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

const COLUMNS: u16 = 120;
/// So many that nothing scrolls out of sight.
const ROWS: u16 = 300;

/// Which of a program's outputs are the terminal; the other goes nowhere.
#[derive(Clone, Copy, PartialEq)]
pub enum On {
    Stdout,
    Both,
}

/// What was printed on a terminal.
pub struct Printed {
    pub status: ExitStatus,
    /// What arrived, and when.
    pub chunks: Vec<(Instant, Vec<u8>)>,
}

impl Printed {
    /// All that was printed, escape sequences included.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        String::from_utf8(bytes).unwrap()
    }

    /// What is to be seen in the end.
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
    drop(command); // with it goes this process's hold of the terminal
    let (whole, printed) = mpsc::channel();
    thread::spawn(move || {
        let (mut master, mut chunks) = (File::from(master), Vec::new());
        let mut buffer = vec![0; 65_536];
        // EIO is the end: the last to hold the terminal has gone.
        while let Ok(n @ 1..) = master.read(&mut buffer) {
            chunks.push((Instant::now(), buffer[..n].to_vec()));
        }
        whole.send(chunks)
    });
    until("the program on the terminal ends", || child.try_wait().unwrap().is_some());
    let status = child.wait().unwrap();
    Printed { status, chunks: printed.recv_timeout(LIMIT).unwrap() }
}
