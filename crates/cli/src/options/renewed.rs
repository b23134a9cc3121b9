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
/// [`CHECK_EVERY`], and read again if one of them has changed. Files that cannot be used are reported once, and the
/// previous value is kept: several files are rarely replaced at the same moment.
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
    /// Of the files when they were last read.
    stamps: Vec<Option<Stamp>>,
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
        let state = Mutex::new(State { checked: Instant::now(), stamps });
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
            return;
        }
        state.stamps = stamps;
        let (what, path) = (self.what, self.files[0].display());
        output::log(&match (self.read)() {
            Ok(renewed) => {
                *self.lock() = Arc::new(renewed);
                format!("regatta: new connections get the new {what} in {path}")
            }
            Err(error) => format!("regatta: {error:#}; the previous {what} stays in use"),
        });
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
    };
    files.iter().map(stamp).collect()
}
