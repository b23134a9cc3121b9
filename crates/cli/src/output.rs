//! Output of results to files or stdout (`-`), messages on stderr, and the capabilities of the terminal.
//!
//! Nothing here panics. A closed pipe on stdout is not an error, any other failure to print is one.
//! A message that stderr does not accept is lost.

use crate::{exit::Outcome, program_name::as_called};
use anyhow::Context;
use std::{
    env,
    io::{IsTerminal, Write, stderr, stdout},
    net::SocketAddr,
    path::Path,
    process,
    sync::{
        Mutex, PoisonError,
        mpsc::{Sender, SyncSender, channel, sync_channel},
    },
    thread,
    time::Duration,
};

/// Writes `text` to `path`, or to stdout for `-`.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return printed(stdout().write_all(text.as_bytes()));
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Checks that [`write()`] can write to `path`, before hours of work rather than after.
pub fn check(path: &Path) -> anyhow::Result<()> {
    if path != Path::new("-") {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        opened.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Prints to stdout, with commands as they can be called here. A closed pipe (`| head`) is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    printed(stdout().write_all(as_called(text).as_bytes()))
}

/// Prints what clap shows instead of running a command: help or the version on stdout, which is a success,
/// or an error of usage on stderr.
pub fn usage(shown: &clap::Error) -> anyhow::Result<Outcome> {
    if shown.use_stderr() {
        // If stderr is closed, the exit status alone reports the error.
        let _ = shown.print();
        return Ok(Outcome::Error);
    }
    printed(shown.print())?;
    Ok(Outcome::Success)
}

/// Flushes stdout after `written`. A closed pipe (`| head`) is not an error.
fn printed(written: std::io::Result<()>) -> anyhow::Result<()> {
    match written.and_then(|()| stdout().flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Prints a message and a line break to stderr, with commands as they can be called here.
pub fn message(text: &str) {
    // If stderr is closed, there is nowhere to report it.
    let _ = writeln!(stderr(), "{}", as_called(text));
}

/// Maximum number of lines that wait for stderr.
const WAITING: usize = 64;

/// A line of a server that waits for stderr. `_printed` is dropped afterwards.
struct Line {
    text: String,
    _printed: Option<Sender<()>>,
}

/// The queue of the thread that prints the lines of the process with this number. A forked process does not have the
/// threads of its parent.
static LINES: Mutex<Option<(u32, SyncSender<Line>)>> = Mutex::new(None);

/// Prints a line of a server to stderr in a thread of its own: a reader of stderr that does not read cannot delay the
/// caller. While 64 lines wait, more are lost.
pub fn log(text: &str) {
    queue(text, None);
}

/// Like [`log`], but returns once the line is printed, or after a second: for the last line of a process.
pub fn log_last(text: &str) {
    let (printed, is_printed) = channel();
    queue(text, Some(printed));
    let _ = is_printed.recv_timeout(Duration::from_secs(1));
}

fn queue(text: &str, printed: Option<Sender<()>>) {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process::id();
    if lines.as_ref().is_none_or(|(of, _)| *of != process) {
        let (sender, waiting) = sync_channel::<Line>(WAITING);
        let print = move || waiting.into_iter().for_each(|line| message(&line.text));
        // Without a thread the line is lost.
        if thread::Builder::new().name("log".into()).spawn(print).is_err() {
            return;
        }
        *lines = Some((process, sender));
    }
    if let Some((_, sender)) = &*lines {
        let _ = sender.try_send(Line { text: text.to_owned(), _printed: printed });
    }
}

/// Prints the address on which a server listens.
pub fn print_address(addr: SocketAddr) {
    if let Err(error) = writeln!(stdout(), "listening on {addr}") {
        // The server runs even if nobody reads its output.
        message(&format!("regatta: listening on {addr}, but cannot write to stdout: {error}"));
    }
}

/// Whether to print colours: stdout is a terminal and `NO_COLOR` is not set (no-color.org).
pub fn colour() -> bool {
    stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Columns of the terminal; 200 if stdout is not a terminal, so that nothing is omitted.
pub fn width() -> usize {
    // A terminal may have columns, but no rows.
    let columns = rustix::termios::tcgetwinsize(stdout()).map_or(0, |size| size.ws_col);
    if columns > 0 { columns.into() } else { 200 }
}
