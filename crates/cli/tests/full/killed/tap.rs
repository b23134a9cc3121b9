//! A tap on the connections to a broker. It does something when a text passes, before that is passed on.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// What is to be done when a text passes.
pub struct Trap {
    pub text: &'static str,
    /// At which of its occurrences, from 1.
    pub nth: usize,
    pub does: Box<dyn FnOnce() + Send>,
}

/// A tap. It passes on what comes until the test's program ends.
pub struct Tap {
    pub port: u16,
    trap: Arc<Mutex<Option<Trap>>>,
}

impl Tap {
    /// A tap in front of this port.
    pub fn before(port: u16) -> Tap {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let tap = Tap { port: listener.local_addr().unwrap().port(), trap: Arc::default() };
        let trap = tap.trap.clone();
        thread::spawn(move || {
            for client in listener.incoming().map(Result::unwrap) {
                // Without a broker the client sees an end, and tries again.
                let Ok(broker) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
                let (to, from) = (broker.try_clone().unwrap(), client.try_clone().unwrap());
                let trap = trap.clone();
                thread::spawn(move || pass(&from, &to, |text, before| sprung(&trap, text, before)));
                thread::spawn(move || pass(&broker, &client, |_, _| ()));
            }
        });
        tap
    }

    /// Does something once, when a text passes that a client sends.
    pub fn set(&self, trap: Trap) {
        *self.trap.lock().unwrap() = Some(trap);
    }
}

/// Longer than every text of a trap.
const KEPT: usize = 64;

/// Passes bytes on, and first shows them with up to [`KEPT`] bytes before them, whose number is the second argument.
fn pass(mut from: &TcpStream, mut to: &TcpStream, mut show: impl FnMut(&[u8], usize)) {
    to.set_nodelay(true).unwrap();
    let (mut shown, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..count]);
        show(&shown, shown.len() - count);
        shown.drain(..shown.len().saturating_sub(KEPT));
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Either may have been reset.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Counts how often the text of the trap ends after the first `before` bytes, and does what is to be done.
fn sprung(trap: &Mutex<Option<Trap>>, shown: &[u8], before: usize) {
    let mut armed = trap.lock().unwrap();
    let Some(Trap { text, nth, .. }) = &mut *armed else { return };
    let ends = shown.windows(text.len()).enumerate();
    let ends = ends.filter(|(at, seen)| at + text.len() > before && *seen == text.as_bytes());
    *nth = nth.saturating_sub(ends.count());
    if *nth == 0
        && let Some(trap) = armed.take()
    {
        drop(armed);
        (trap.does)();
    }
}
