//! How the letters of a core reach the others: through memory ([`Letters`](crate::letters::Letters)), or
//! through sockets where each core is a process ([`Mesh`](crate::mesh::Mesh)).

use regatta_sys::{Event, Readiness};
use std::io;

/// The letters to and from the other cores, as one of them sees them.
pub(crate) trait Mail<L> {
    /// Which core this one is, and how many there are.
    fn seat(&self) -> (u32, u32);

    /// Starts to watch for letters. Events carry `token`, plus the number of a source.
    fn watch(&self, readiness: &mut impl Readiness, token: u64) -> io::Result<()>;

    /// Something of this source has happened: there are letters, or room for some.
    fn ready(&mut self, _source: usize, _event: &Event) {}

    /// Called before each wait, with the token of [`Mail::watch`].
    fn settle(&mut self, _readiness: &mut impl Readiness, _token: u64) -> io::Result<()> {
        Ok(())
    }

    /// Posts these, each to whom it is for.
    fn post(&mut self, letters: impl ExactSizeIterator<Item = L>);

    /// Whether others have posted something.
    fn has_any(&self) -> bool;

    /// Takes what others have posted. An error: they sent something else.
    fn take(&mut self) -> io::Result<Vec<L>>;

    /// Whether so much waits for the others that no client is read, since what it sends may be posted.
    fn is_full(&self) -> bool {
        false
    }
}
