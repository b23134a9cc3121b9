//! Reloads on `cluster`: the parent reads the configuration first, and if it applies, lets each process read it.

use super::reload::ReloadedHub;
use crate::{
    output,
    reload::{Again, Options, Reloaded},
};
use anyhow::anyhow;
use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
    time::Duration,
};

/// How long a process that has read a later file than it was asked for waits for being asked for that.
const LATER: Duration = Duration::from_secs(2);

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

    /// Called in the parent, which has applied these options: all processes read them.
    pub fn notify(&self, options: &Options) {
        for (parent, _) in self.0.iter() {
            // A process that has ended reads nothing, and neither will the others.
            let _ = { parent }.write(&options.fingerprint().to_ne_bytes());
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
            while let Ok(mut asked) = fingerprint(child, None) {
                let applied = loop {
                    match again() {
                        // It is a later file: the parent may be about to ask for that.
                        Ok(options) if options.fingerprint() != asked => {
                            match fingerprint(child, Some(LATER)) {
                                Ok(later) => asked = later,
                                Err(_) => break Err(anyhow!("the file has changed since")),
                            }
                        }
                        options => break options.and_then(|options| hub.apply(&options)),
                    }
                };
                if let Err(error) = applied {
                    let process = number + 1;
                    output::log(&format!(
                        "regatta: in process {process} the configuration stays as it is: {error:#}; reload again"
                    ));
                }
            }
        };
        thread::Builder::new().name("reload".into()).spawn(follow).map(drop)
    }
}

/// Reads the fingerprint of the options that the parent asks for next. `within`: maximum time until it comes.
fn fingerprint(mut from: &UnixStream, within: Option<Duration>) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.set_read_timeout(within)?;
    from.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
