//! Runs `regatta doctor`: its checks, formats, marks and exit status, on any machine.

use crate::support::{DEADLINE, regatta, until};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::Value;
use std::{
    fs::{File, OpenOptions},
    io::Read,
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
};

const NAMES: [&str; 22] = [
    "cpus",
    "cores",
    "cpu-quota",
    "clock-source",
    "governor",
    "mitigations",
    "other-work",
    "speed",
    "stalls",
    "steal",
    "wake-ups",
    "open-files",
    "processes",
    "memory",
    "swap",
    "ports",
    "port-reuse",
    "loopback",
    "accept-queue",
    "syn-queue",
    "io_uring",
    "cgroups",
];

/// Runs `regatta doctor ARGS` after the shell command `before`.
fn doctor(before: &str, args: &str) -> Output {
    let script = format!("{before}; exec \"$REGATTA\" doctor {args}");
    Command::new("sh")
        .args(["-c", &script])
        .env("REGATTA", env!("CARGO_BIN_EXE_regatta"))
        .output()
        .unwrap()
}

fn checks(output: &Output) -> Vec<Value> {
    let form: Value = serde_json::from_slice(&output.stdout).unwrap();
    form["checks"].as_array().unwrap().clone()
}

fn open_files(output: &Output) -> Value {
    checks(output).into_iter().find(|check| check["name"] == "open-files").unwrap()
}

#[test]
fn json_has_every_check_and_the_exit_status_is_1_if_one_is_bad() {
    let output = doctor("true", "--json -");
    let checks = checks(&output);
    let names: Vec<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    for check in &checks {
        assert!(check["found"].as_str().is_some_and(|found| !found.is_empty()), "{check}");
        let mark = check["mark"].as_str().unwrap();
        assert!(["ok", "note", "warn", "bad"].contains(&mark), "{check}");
        for sentence in ["effect", "remedy"] {
            assert_eq!(check[sentence].is_null(), mark == "ok", "{check}");
        }
    }
    let bad = checks.iter().any(|check| check["mark"] == "bad");
    assert_eq!(output.status.code(), Some(i32::from(bad)));
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn text_is_plain_and_80_columns_wide_if_stdout_is_not_a_terminal() {
    let text = String::from_utf8(doctor("true", "").stdout).unwrap();
    assert!(!text.contains('\x1b'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for name in NAMES {
        let is_its_line = |line: &str| line.split_whitespace().nth(1) == Some(name);
        assert!(text.lines().any(is_its_line), "no line for {name} in\n{text}");
    }
}

#[test]
fn a_low_limit_of_open_files_is_a_warning_and_a_very_low_one_is_bad() {
    let few = open_files(&doctor("ulimit -n 500", "--json -"));
    assert_eq!(few["mark"], "warn");
    assert!(few["effect"].as_str().unwrap().contains("436 connections"), "{few}");
    assert!(few["remedy"].as_str().unwrap().contains("20,000"), "{few}");

    let output = doctor("ulimit -n 100", "--json -");
    assert_eq!(open_files(&output)["mark"], "bad");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let output = doctor("true", "--json /nowhere/at/all.json");
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("cannot write /nowhere/at/all.json"), "{printed}");
}

#[test]
fn a_terminal_gets_its_width_and_colours_unless_no_color() {
    let coloured = on_terminal(60, "");
    assert!(coloured.contains("\x1b["), "{coloured:?}");
    let plain = on_terminal(60, "1");
    assert!(plain.contains("cgroups") && !plain.contains('\x1b'), "{plain:?}");
    assert!(plain.lines().all(|line| line.chars().count() <= 60), "{plain}");
}

/// Returns the output of `regatta doctor` on a terminal with this number of columns.
fn on_terminal(columns: u16, no_color: &str) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();

    let mut command = regatta!("doctor");
    command.env("NO_COLOR", no_color).stdout(slave).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command); // closes this process's descriptors of the terminal
    let (whole, printed) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // EIO is the end: all descriptors of the terminal are closed.
        let _ = File::from(master).read_to_end(&mut bytes);
        whole.send(String::from_utf8(bytes).unwrap())
    });
    until("doctor ends", || child.try_wait().unwrap().is_some());
    printed.recv_timeout(DEADLINE).unwrap()
}
