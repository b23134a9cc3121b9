//! How the letters of a core reach the others: through memory
//! ([`Letters`](crate::between::letters::Letters)), or through sockets if each core is a process
//! ([`Mesh`](crate::between::mesh::Mesh)).

use regatta_sys::{Event, Readiness};
use std::io;

/// The letters to and from the other cores, as seen by one core.
pub(crate) trait Mail<L> {
    /// Returns the index of this core, and the number of cores.
    fn seat(&self) -> (u32, u32);

    /// Starts watching for letters. The token of an event is `token` plus the number of its source.
    fn watch(&self, readiness: &mut impl Readiness, token: u64) -> io::Result<()>;

    /// Called on an event of a source: there are letters, or room for some.
    fn ready(&mut self, _source: usize, _event: &Event) {}

    /// Called before each wait, with the token of [`Mail::watch`].
    fn settle(&mut self, _readiness: &mut impl Readiness, _token: u64) -> io::Result<()> {
        Ok(())
    }

    /// Posts letters, each to its receivers.
    fn post(&mut self, letters: impl ExactSizeIterator<Item = L>);

    /// Whether other cores have posted something.
    fn has_any(&self) -> bool;

    /// Takes the letters that other cores have posted. Fails if they sent invalid bytes.
    fn take(&mut self) -> io::Result<Vec<L>>;

    /// Whether so many letters are pending that clients must not be read, because their input may
    /// cause more.
    fn is_full(&self) -> bool;

    /// Reports that this core has no clients and accepts none. Returns whether another core still
    /// has clients, whose letters must be answered. An event follows when none has.
    fn is_needed(&mut self) -> bool;
}
