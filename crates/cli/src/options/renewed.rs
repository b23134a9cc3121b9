//! What was read from files, and is read again when they change: no restart is needed.

use crate::output;
use std::{
    fmt, fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Minimum time between two checks of the files: the maximum delay with which new connections get what is new.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A value that was read from files. When it is requested, the files are checked, at most once per
/// [`CHECK_EVERY`], and read again if one of them has changed since they were read. Files that cannot be used are
/// reported once for each reason, and the previous value is kept: several files are rarely replaced at the same moment.
/// They are read again at each check, because not every reason changes a file, e.g. its permissions.
pub struct Renewed<T> {
    files: Vec<PathBuf>,
    /// What is read, for messages.
    what: &'static str,
    read: Box<dyn Fn() -> anyhow::Result<T> + Send + Sync>,
    current: Mutex<Arc<T>>,
    state: Mutex<State>,
}

struct State {
    checked: Instant,
    /// Of the files when they were read the last time that they could be used.
    stamps: Vec<Option<Stamp>>,
    /// Why they cannot be used since; empty if they can.
    reported: String,
}

/// Inode, length, and time of the last change (seconds, nanoseconds) of a file.
type Stamp = (u64, u64, i64, i64);

impl<T> fmt::Debug for Renewed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewed").field("files", &self.files).finish_non_exhaustive()
    }
}

impl<T> Renewed<T> {
    /// Reads these files with `read`. `what` names what is read, e.g. `certificate`.
    ///
    /// # Errors
    /// Returns the error of `read`.
    pub fn read(
        files: Vec<PathBuf>,
        what: &'static str,
        read: impl Fn() -> anyhow::Result<T> + Send + Sync + 'static,
    ) -> anyhow::Result<Renewed<T>> {
        // Before they are read: a change meanwhile is seen the next time.
        let stamps = stamps(&files);
        let current = Mutex::new(Arc::new(read()?));
        let state = Mutex::new(State { checked: Instant::now(), stamps, reported: String::new() });
        Ok(Renewed { files, what, read: Box::new(read), current, state })
    }

    /// The newest value that can be used. While another thread reads the files, it is the one before.
    pub fn current(&self) -> Arc<T> {
        if let Ok(mut state) = self.state.try_lock()
            && state.checked.elapsed() >= CHECK_EVERY
        {
            state.checked = Instant::now();
            self.renew(&mut state);
        }
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<T>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files again if one of them has changed.
    fn renew(&self, state: &mut State) {
        let stamps = stamps(&self.files);
        if stamps == state.stamps {
            return state.reported.clear();
        }
        let (what, path) = (self.what, self.files[0].display());
        match (self.read)() {
            Ok(renewed) => {
                *self.lock() = Arc::new(renewed);
                (state.stamps, state.reported) = (stamps, String::new());
                output::log(&format!("regatta: new connections get the new {what} in {path}"));
            }
            Err(error) => {
                let why = format!("{error:#}");
                if why != state.reported {
                    output::log(&format!("regatta: {why}; the previous {what} stays in use"));
                    state.reported = why;
                }
            }
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
    };
    files.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::ensure;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    #[test]
    fn files_that_could_not_be_read_are_tried_again_although_they_do_not_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        fs::write(&file, "first").unwrap();
        // Permissions do not stop a test that runs as root.
        let is_readable = Arc::new(AtomicBool::new(true));
        let (path, permitted) = (file.clone(), Arc::clone(&is_readable));
        let read = move || {
            ensure!(permitted.load(SeqCst), "cannot read it");
            Ok(fs::read_to_string(&path)?)
        };
        let renewed = Renewed::read(vec![file.clone()], "password", read).unwrap();
        let newest = || {
            renewed.renew(&mut renewed.state.lock().unwrap());
            (renewed.current().to_string(), renewed.state.lock().unwrap().reported.clone())
        };
        fs::write(&file, "second").unwrap();
        is_readable.store(false, SeqCst);
        for _ in 0..2 {
            assert_eq!(newest(), ("first".to_owned(), "cannot read it".to_owned()));
        }
        is_readable.store(true, SeqCst);
        assert_eq!(newest(), ("second".to_owned(), String::new()));
    }
}
