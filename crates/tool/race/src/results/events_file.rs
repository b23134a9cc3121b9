//! `events.jsonl` of a result directory: one line per event, synced with each round. A crash loses
//! at most the events of the round in progress.

use crate::results::store::{EVENTS, StoreError, io_error};
use regatta_record::{Event, Happened, check_format};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// `events.jsonl`, open for appending. [`Store`](crate::Store) locks the result directory.
#[derive(Debug)]
pub(crate) struct EventsFile {
    path: PathBuf,
    file: File,
}

/// What the stored events say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    /// Time of the last event, nanoseconds.
    pub last_ns: u64,
    /// Start of the race, in milliseconds since the Unix epoch, if the first event has it.
    pub started_unix_ms: Option<u64>,
    /// Whether the last event is the end of the race.
    pub has_finished: bool,
}

impl EventsFile {
    /// Creates the file of a new race.
    pub fn create(dir: &Path) -> Result<EventsFile, StoreError> {
        let path = dir.join(EVENTS);
        let file = open(&path).map_err(io_error("create", &path))?;
        Ok(EventsFile { path, file })
    }

    /// Opens the file of a resumed race, and removes an incomplete last line, as left by a crash. The
    /// times are `None` if it holds no events.
    pub fn resume(dir: &Path) -> Result<(EventsFile, Option<Past>), StoreError> {
        let path = dir.join(EVENTS);
        let mut file = open(&path).map_err(io_error("open", &path))?;
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            truncate(&mut file, whole as u64).map_err(io_error("repair", &path))?;
        }
        Ok((EventsFile { path, file }, past(&text[..whole])))
    }

    /// Appends whole lines.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(lines).map_err(io_error("append to", &self.path))
    }

    /// Syncs the appended lines to disk.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(io_error("sync", &self.path))
    }
}

/// Returns what the stored events say. Skips events that cannot be parsed: they must not prevent a race
/// from continuing.
fn past(lines: &[u8]) -> Option<Past> {
    let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let event = |line: &[u8]| serde_json::from_slice::<Event>(line).ok();
    let first = lines.next()?;
    let last = lines.rev().chain([first]).find_map(event);
    let started_unix_ms = event(first).and_then(|event| match event.happened {
        Happened::RaceStarted(header) | Happened::RaceResumed(header) => {
            Some(header.unix_ms.saturating_sub(event.ns / 1_000_000))
        }
        _ => None,
    });
    Some(Past {
        last_ns: last.as_ref().map_or(0, |last| last.ns),
        started_unix_ms,
        has_finished: last.is_some_and(|last| matches!(last.happened, Happened::RaceFinished)),
    })
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

fn truncate(file: &mut File, length: u64) -> io::Result<()> {
    file.set_len(length)?;
    file.seek(SeekFrom::End(0))?;
    file.sync_all()
}

/// The stored events of a race, in order. An incomplete last line, as left by a crash, is ignored.
#[derive(Debug)]
pub struct StoredEvents {
    path: PathBuf,
    lines: BufReader<File>,
    line: usize,
}

impl StoredEvents {
    /// Opens the events of the result directory `dir`.
    ///
    /// # Errors
    /// If `dir` holds no race, if the race has no events, or if its events cannot be read.
    pub fn open(dir: &Path) -> Result<StoredEvents, StoreError> {
        let race = dir.join("race.toml");
        fs::metadata(&race).map_err(io_error("read", &race))?;
        let path = dir.join(EVENTS);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::NoEvents(dir.into()));
            }
            opened => opened.map_err(io_error("read", &path))?,
        };
        if file.metadata().is_ok_and(|file| file.len() == 0) {
            return Err(StoreError::NoEvents(dir.into()));
        }
        Ok(StoredEvents { path, lines: BufReader::new(file), line: 0 })
    }

    fn damaged(&self, because: String) -> StoreError {
        let because = format!("line {}: {because}", self.line);
        StoreError::Damaged { path: self.path.clone(), because }
    }
}

impl Iterator for StoredEvents {
    type Item = Result<Event, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        if let Err(error) = self.lines.read_until(b'\n', &mut line) {
            return Some(Err(io_error("read", &self.path)(error)));
        }
        if !line.ends_with(b"\n") {
            return None;
        }
        self.line += 1;
        Some(match serde_json::from_slice::<Event>(&line) {
            Ok(event) => {
                check_format(event.format).map_err(|because| self.damaged(because)).map(|()| event)
            }
            Err(error) => Err(self.damaged(error.to_string())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::Phase;
    use tempfile::TempDir;

    fn line(ns: u64) -> Vec<u8> {
        let event = Event::new(ns, Happened::PhaseStarted { phase: Phase::Stopping });
        [&serde_json::to_vec(&event).unwrap()[..], b"\n"].concat()
    }

    fn race() -> TempDir {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("race.toml"), "").unwrap();
        dir
    }

    fn times(dir: &Path) -> Vec<u64> {
        StoredEvents::open(dir).unwrap().map(|event| event.unwrap().ns).collect()
    }

    #[test]
    fn an_incomplete_last_line_is_ignored_and_overwritten() {
        let dir = race();
        let whole = [line(5), line(9)].concat();
        for torn in 0..line(11).len() {
            let text = [&whole[..], &line(11)[..torn]].concat();
            fs::write(dir.path().join(EVENTS), text).unwrap();
            assert_eq!(times(dir.path()), [5, 9]);
            let (mut file, past) = EventsFile::resume(dir.path()).unwrap();
            assert_eq!(past, Some(Past { last_ns: 9, started_unix_ms: None, has_finished: false }));
            file.append(&line(13)).unwrap();
            file.sync().unwrap();
            assert_eq!(times(dir.path()), [5, 9, 13], "{torn} bytes of a line");
        }
    }

    #[test]
    fn a_result_without_events_says_what_to_do() {
        let dir = race();
        for _ in 0..2 {
            let said = StoredEvents::open(dir.path()).unwrap_err().to_string();
            assert!(
                said.contains("no events to replay") && said.contains("regatta report"),
                "{said}"
            );
            let (_, past) = EventsFile::resume(dir.path()).unwrap();
            assert_eq!(past, None, "there is a file now, and nothing in it");
        }

        let nothing = TempDir::new().unwrap();
        let said = StoredEvents::open(nothing.path()).unwrap_err().to_string();
        assert!(said.contains("cannot read") && said.contains("race.toml"), "{said}");
    }

    #[test]
    fn errors_name_the_line_that_cannot_be_parsed() {
        let dir = race();
        let newer = String::from_utf8(line(7)).unwrap().replace("\"format\":2", "\"format\":3");
        for (bad, said) in
            [("{}\n", "line 2: missing field"), (&newer, "expected format 1 to 2, found 3")]
        {
            fs::write(dir.path().join(EVENTS), [&line(5)[..], bad.as_bytes()].concat()).unwrap();
            let mut events = StoredEvents::open(dir.path()).unwrap();
            assert_eq!(events.next().unwrap().unwrap().ns, 5);
            let error = events.next().unwrap().unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(EVENTS), "{error}");
            let (_, past) = EventsFile::resume(dir.path()).unwrap();
            let past = past.expect("the race can continue nevertheless");
            assert!(past.last_ns >= 5, "{past:?}");
        }
    }
}
