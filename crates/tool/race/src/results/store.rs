//! The result directory on disk: `race.toml` (the race as requested), `settling.jsonl` (how each
//! contender warmed up) and `rounds.jsonl` (one line per round, whatever its outcome). Each line is
//! synced when it is appended, so a crash loses at most the observation or the round in progress.
//! `events.jsonl` holds the events shown during the race (`events_file`). The program adds
//! `summary.json` and `report.html`.

use regatta_record::{Asked, Round, Settled, check_format};
use rustix::fs::{FlockOperation, flock};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The file of events in a result directory.
pub(crate) const EVENTS: &str = "events.jsonl";
/// The file of rounds.
const ROUNDS: &str = "rounds.jsonl";
/// The file of observed warm-ups.
const SETTLING: &str = "settling.jsonl";

/// A result directory to which rounds are being added. It is locked exclusively.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    file: File,
    /// What the file holds.
    rounds: Vec<Round>,
}

/// Why a result directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A system call failed.
    #[error("cannot {what} {}: {error}", .path.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It already holds a race.
    #[error(
        "{} already holds a race; choose another --out, or continue it with --resume", .0.display()
    )]
    Taken(PathBuf),
    /// Another race writes to it.
    #[error("another race is writing to {}; wait until it is done", .0.display())]
    Locked(PathBuf),
    /// It has no events to replay.
    #[error(
        "{dir} holds no events to replay (events.jsonl): it was made by an earlier regatta, which \
         stored none, or its race ended at once; `regatta report {dir}` shows its result",
        dir = .0.display()
    )]
    NoEvents(PathBuf),
    /// A file is damaged, or has an unknown format.
    #[error("{} cannot be understood: {because}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where and why.
        because: String,
    },
}

pub(crate) fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |error| StoreError::Io { what, path, error }
}

impl Store {
    /// Creates a result directory at `dir`, which may exist if it holds no race.
    pub fn create(dir: &Path, asked: &Asked) -> Result<Store, StoreError> {
        fs::create_dir_all(dir).map_err(io_error("create", dir))?;
        let path = dir.join("race.toml");
        // Lock before the check: if two races start at once, the second finds the lock or the race of
        // the first.
        let store = Store::open(dir)?;
        let events = fs::metadata(dir.join(EVENTS));
        if path.exists() || events.is_ok_and(|events| events.len() > 0) {
            return Err(StoreError::Taken(dir.into()));
        }
        let text = toml::to_string(asked).expect("a record can be written as TOML");
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            File::open(dir)?.sync_all()
        };
        write().map_err(io_error("write", &path))?;
        Ok(store)
    }

    /// Checks that the directory `dir` can be created, before time is spent on a race. Leaves nothing behind
    /// but parents of `dir`.
    pub fn check_new(dir: &Path) -> Result<(), StoreError> {
        let exists = dir.exists();
        fs::create_dir_all(dir).map_err(io_error("create", dir))?;
        if exists { Ok(()) } else { fs::remove_dir(dir).map_err(io_error("create", dir)) }
    }

    /// Opens the race in `dir` to continue it. Returns the race as requested, too.
    pub fn resume(dir: &Path) -> Result<(Store, Asked), StoreError> {
        let (asked, _) = Store::read(dir)?; // gives the better error if there is no race
        let mut store = Store::open(dir)?;
        (_, store.rounds) = Store::read(dir)?;
        for name in [ROUNDS, SETTLING] {
            let path = dir.join(name);
            drop_partial_line(&path).map_err(io_error("repair", &path))?;
        }
        Ok((store, asked))
    }

    /// Reads a result directory. Ignores an incomplete last line, as left by a crash.
    pub fn read(dir: &Path) -> Result<(Asked, Vec<Round>), StoreError> {
        let path = dir.join("race.toml");
        let text = fs::read_to_string(&path).map_err(io_error("read", &path))?;
        let damaged = |because: String| StoreError::Damaged { path: path.clone(), because };
        let asked: Asked = toml::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        check_format(asked.format).map_err(damaged)?;

        let path = dir.join(ROUNDS);
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        Ok((asked, lines(&path, &text, |round: &Round| round.format)?))
    }

    /// Returns the stored rounds.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// Appends a round and syncs it.
    pub fn append(&mut self, round: Round) -> Result<&Round, StoreError> {
        append_line(&mut self.file, &self.dir.join(ROUNDS), &round)?;
        self.rounds.push(round);
        Ok(&self.rounds[self.rounds.len() - 1])
    }

    /// Removes all rounds but the first `keep`.
    pub(crate) fn keep(&mut self, keep: usize) -> Result<(), StoreError> {
        let path = self.dir.join(ROUNDS);
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        let lines = text.split_inclusive(|b| *b == b'\n').take(keep);
        let len = lines.map(|line| line.len() as u64).sum();
        self.file.set_len(len).map_err(io_error("shorten", &path))?;
        self.file.sync_all().map_err(io_error("sync", &path))?;
        self.rounds.truncate(keep);
        Ok(())
    }

    /// Reads the stored observations of warm-ups. Ignores an incomplete last line, as left by a crash.
    pub(crate) fn settled(&self) -> Result<Vec<Settled>, StoreError> {
        let path = self.dir.join(SETTLING);
        match fs::read(&path) {
            Ok(text) => lines(&path, &text, |settled: &Settled| settled.format),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(io_error("read", &path)(error)),
        }
    }

    /// Appends how a contender warmed up, and syncs it.
    pub(crate) fn append_settled(&self, settled: &Settled) -> Result<(), StoreError> {
        let path = self.dir.join(SETTLING);
        append_line(&mut open_lines(&path)?, &path, settled)
    }

    /// Returns its path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn open(dir: &Path) -> Result<Store, StoreError> {
        let file = open_lines(&dir.join(ROUNDS))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| StoreError::Locked(dir.into()))?;
        Ok(Store { dir: dir.into(), file, rounds: Vec::new() })
    }
}

impl Drop for Store {
    /// Releases the lock. Closing the file does not, while another thread starts a process: until that has started,
    /// it holds the file, too.
    fn drop(&mut self) {
        // Nothing is left to do if it fails.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn open_lines(path: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new().read(true).append(true).create(true).open(path);
    file.map_err(io_error("open", path))
}

/// Appends a record as a line of JSON, and syncs it.
fn append_line(file: &mut File, path: &Path, record: &impl Serialize) -> Result<(), StoreError> {
    let mut line = serde_json::to_vec(record).expect("a record can be written as JSON");
    line.push(b'\n');
    file.write_all(&line).map_err(io_error("append to", path))?;
    file.sync_data().map_err(io_error("sync", path))
}

/// Removes an incomplete last line, as left by a crash, so that the next record starts on a new line.
fn drop_partial_line(path: &Path) -> io::Result<()> {
    let file = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let text = fs::read(path)?;
    let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    file.set_len(whole as u64)?;
    file.sync_all()
}

/// Parses a file with one record per line. Ignores an incomplete last line.
fn lines<T: DeserializeOwned>(
    path: &Path,
    text: &[u8],
    format: impl Fn(&T) -> u32,
) -> Result<Vec<T>, StoreError> {
    let whole = text.split_inclusive(|b| *b == b'\n').filter(|line| line.ends_with(b"\n"));
    let read = |line: &[u8]| {
        let record: T = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        check_format(format(&record)).map(|()| record)
    };
    let each = whole.enumerate().map(|(number, line)| {
        read(line).map_err(|because| StoreError::Damaged {
            path: path.to_owned(),
            because: format!("line {}: {because}", number + 1),
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests;
