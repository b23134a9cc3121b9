//! Timestamps and emits events: each is stored in the result directory, if there is one, then shown.
//!
//! Only the thread that runs the race emits events. The work for an event (appending a line to a file,
//! drawing a terminal) must not be measured. So nothing is emitted inside the measured window of a
//! load; see `progress_events`.

use crate::results::{
    events_file::{EventsFile, Past},
    store::{Store, StoreError},
};
use regatta_record::{Event, Happened};
use std::{
    mem,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Emits the events of one race, or of one search for a capacity.
pub struct Events<'a> {
    /// When this process started to emit.
    began: Instant,
    /// The race's time at that moment, nanoseconds.
    base_ns: u64,
    /// Time of the last event, nanoseconds.
    last_ns: u64,
    kept: Kept,
    show: &'a mut dyn FnMut(&Event),
}

/// Where events are kept.
enum Kept {
    Nowhere,
    /// In memory, until there is a result directory.
    Memory(Vec<u8>),
    File(EventsFile),
    /// Writing failed. Nothing more is written, because the last line may be incomplete.
    Failed(Option<StoreError>),
}

impl<'a> Events<'a> {
    /// Returns events that are shown but not stored. Their time starts now.
    pub fn shown(show: &'a mut dyn FnMut(&Event)) -> Events<'a> {
        Events { began: Instant::now(), base_ns: 0, last_ns: 0, kept: Kept::Nowhere, show }
    }

    /// Returns events that are shown, and kept in memory until there is a result directory to
    /// [store them in](Events::keep_in).
    pub fn kept(show: &'a mut dyn FnMut(&Event)) -> Events<'a> {
        Events { kept: Kept::Memory(Vec::new()), ..Events::shown(show) }
    }

    /// From now on stores events in the result directory of a new race, including those in memory.
    ///
    /// # Errors
    /// If its `events.jsonl` cannot be written.
    pub fn keep_in(&mut self, store: &Store) -> Result<(), StoreError> {
        let mut file = EventsFile::create(store.dir())?;
        if let Kept::Memory(lines) = &self.kept {
            file.append(lines)?;
        }
        file.sync()?;
        self.kept = Kept::File(file);
        Ok(())
    }

    /// From now on stores events in the result directory of a resumed race. Their times continue from
    /// the stored events. Returns false if there are none: an earlier regatta started the race. If the race
    /// `is_complete` and its end is stored, events are only shown: a race ends once.
    ///
    /// # Errors
    /// If its `events.jsonl` cannot be read or repaired.
    pub fn resume_in(&mut self, store: &Store, is_complete: bool) -> Result<bool, StoreError> {
        let (file, past) = EventsFile::resume(store.dir())?;
        let has_ended = is_complete && past.is_some_and(|past| past.has_finished);
        self.kept = if has_ended { Kept::Nowhere } else { Kept::File(file) };
        let Some(Past { last_ns, started_unix_ms, .. }) = past else { return Ok(false) };
        let since_start = started_unix_ms.map(|ms| unix_ms().saturating_sub(ms));
        // Times never go backwards, even if the clock was set back.
        let since_start = since_start.unwrap_or(0).saturating_mul(1_000_000);
        (self.base_ns, self.began) = (last_ns.max(since_start), Instant::now());
        Ok(true)
    }

    /// Emits an event with the current time.
    pub fn emit(&mut self, happened: Happened) {
        self.emit_at(Instant::now(), happened);
    }

    /// Emits an event with an earlier time, but never one before the last event: times do not decrease.
    pub(crate) fn emit_at(&mut self, at: Instant, happened: Happened) {
        let elapsed = at.saturating_duration_since(self.began);
        self.last_ns = self.last_ns.max(self.base_ns.saturating_add(nanoseconds(elapsed)));
        let event = Event::new(self.last_ns, happened);
        self.keep(&event);
        (self.show)(&event);
    }

    /// Syncs the emitted events to disk.
    ///
    /// # Errors
    /// If an event could not be written, now or since the last call.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        match &mut self.kept {
            Kept::File(file) => file.sync(),
            Kept::Failed(error) => error.take().map_or(Ok(()), Err),
            Kept::Nowhere | Kept::Memory(_) => Ok(()),
        }
    }

    /// Stores an event. This happens before it is shown, so that a replay shows at least what was seen.
    fn keep(&mut self, event: &Event) {
        if matches!(self.kept, Kept::Nowhere | Kept::Failed(_)) {
            return;
        }
        let mut line = serde_json::to_vec(event).expect("an event can be written as JSON");
        line.push(b'\n');
        let appended = match &mut self.kept {
            Kept::Memory(lines) => {
                lines.append(&mut line);
                Ok(())
            }
            Kept::File(file) => file.append(&line),
            Kept::Nowhere | Kept::Failed(_) => Ok(()),
        };
        if let Err(error) = appended {
            let _ = mem::replace(&mut self.kept, Kept::Failed(Some(error)));
        }
    }
}

/// Returns milliseconds since the Unix epoch; 0 before it.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::Phase;

    fn starting() -> Happened {
        Happened::PhaseStarted { phase: Phase::Starting }
    }

    #[test]
    fn times_never_decrease() {
        let mut seen = Vec::new();
        let mut show = |event: &Event| seen.push(event.ns);
        let mut events = Events::shown(&mut show);
        let later = Instant::now() + Duration::from_secs(5);
        events.emit_at(later, starting());
        events.emit(starting());
        events.emit_at(later + Duration::from_nanos(7), starting());
        assert!(seen[0] >= 5_000_000_000 - 1_000_000_000, "{seen:?}");
        assert_eq!(seen[1], seen[0]);
        assert_eq!(seen[2], seen[0] + 7);
    }
}
