//! Reloads on `cluster`: the parent reads the configuration first, and if it applies, lets each process read it.

use super::reload::ReloadedHub;
use crate::{
    output,
    reload::{Again, Reloaded},
};
use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
};

/// The processes of a hub, from before they are forked.
#[derive(Clone)]
pub struct Siblings(Arc<[(UnixStream, UnixStream)]>);

impl Siblings {
    /// So many processes; none, if the hub has a single one.
    ///
    /// # Errors
    /// Fails if out of descriptors.
    pub fn new(count: usize) -> io::Result<Siblings> {
        Ok(Siblings((0..count).map(|_| UnixStream::pair()).collect::<io::Result<_>>()?))
    }

    /// Called in the parent: all processes read the configuration.
    pub fn notify(&self) {
        for (parent, _) in self.0.iter() {
            // A process that has ended reads nothing, and neither will the others.
            let _ = { parent }.write(&[1]);
        }
    }

    /// Called in a process: reads the configuration whenever the parent asks for it, in a thread of its own.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn follow(&self, number: usize, again: Again, mut hub: ReloadedHub) -> io::Result<()> {
        let siblings = self.clone();
        let follow = move || {
            let Some((_, child)) = siblings.0.get(number) else { return };
            loop {
                match { child }.read(&mut [0; 64]) {
                    Ok(1..) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(0) | Err(_) => return,
                }
                if let Err(error) = again().and_then(|options| hub.apply(&options)) {
                    let process = number + 1;
                    output::message(&format!(
                        "regatta: in process {process} the configuration stays as it is: {error:#}; reload again"
                    ));
                }
            }
        };
        thread::Builder::new().name("reload".into()).spawn(follow).map(drop)
    }
}
