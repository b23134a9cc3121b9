//! A race in a session of its own. Linux shares a CPU first between sessions, then within them (sched(7),
//! autogroup). So the highest priority over other programs belongs to a session, and would stay with the terminal's
//! after a race that is killed, for all that is started there later.
//!
//! The command that the user started waits, and runs itself again as `regatta own-session`, which leaves the
//! terminal's session and becomes the race. It passes signals on; if it ends, the kernel ends the race.

use crate::exit::Outcome;
use anyhow::Context;
use regatta_host::{raise_priority, raise_session};
use rustix::process::{Pid, Signal, getpid, getppid, getsid, kill_process, setsid};
use signal_hook::{
    consts::{SIGCONT, SIGINT, SIGQUIT, SIGTERM, SIGTSTP},
    iterator::Signals,
    low_level::emulate_default_handler,
};
use std::{
    env,
    ffi::OsString,
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{self, Command},
    thread,
};

/// The hidden subcommand.
const COMMAND: &str = "own-session";

/// Gives this process the highest priority over other programs, if that is permitted. Returns only in a process
/// whose session ends with it, or without the right. Otherwise it runs this command again in such a session, and
/// exits as that does.
pub fn highest_priority() -> anyhow::Result<()> {
    if raise_priority().is_err() {
        return Ok(());
    }
    if getsid(None) == Ok(getpid()) {
        raise_session();
        return Ok(());
    }
    let mut race = this_program()?
        .args([COMMAND, &process::id().to_string()])
        .args(env::args_os().skip(1))
        .spawn()
        .context("cannot run the race in a session of its own")?;
    pass_signals_on(Pid::from_child(&race))?;
    let status = race.wait()?;
    process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
}

/// Passes on what a terminal or another program sends to this process.
fn pass_signals_on(race: Pid) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            let passed = match signal {
                SIGINT => Signal::INT,
                SIGQUIT => Signal::QUIT,
                SIGTSTP => Signal::STOP,
                SIGCONT => Signal::CONT,
                _ => Signal::TERM,
            };
            // It may have ended; then this process ends as well.
            let _ = kill_process(race, passed);
            if signal == SIGTSTP {
                let _ = emulate_default_handler(signal);
            }
        }
    })?;
    Ok(())
}

/// Runs `regatta own-session PARENT ARGUMENTS…`: this program with these arguments, in a session of its own that
/// ends with the process PARENT. Not for interactive use.
pub fn run(parent: i32, arguments: &[OsString]) -> anyhow::Result<Outcome> {
    setsid().context("cannot create a session")?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) != Some(parent) {
        return Ok(Outcome::Interrupted);
    }
    Err(this_program()?.args(arguments).exec()).context("cannot start the race")
}

/// This program, by the name that it was called by.
fn this_program() -> anyhow::Result<Command> {
    let mut program =
        Command::new(env::current_exe().context("cannot find the path of this program")?);
    program.arg0(env::args_os().next().unwrap_or_else(|| "regatta".into()));
    Ok(program)
}
