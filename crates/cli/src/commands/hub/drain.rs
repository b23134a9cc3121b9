//! Lines about the stop of a hub.

use crate::output;
use regatta_serve::{Host, Hub};
use std::{
    io,
    thread::{self, JoinHandle},
    time::Instant,
};

/// Reports when a drain begins and ends.
pub struct DrainReport(JoinHandle<Option<Instant>>);

impl DrainReport {
    /// Waits for the stop of this hub in a thread of its own, and prints that its drain begins. A process must not
    /// fork after this.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn follow(hub: &Hub, host: &Host) -> io::Result<DrainReport> {
        let (hub, stop) = (hub.clone(), host.stop.clone());
        let (is_paced, grace) = (!host.drain.is_zero(), humantime::format_duration(host.grace));
        let times = match is_paced {
            true => {
                format!("drain=\"{}\" grace=\"{grace}\"", humantime::format_duration(host.drain))
            }
            false => format!("grace=\"{grace}\""),
        };
        let wait = move || {
            stop.wait().ok()?;
            // A start that fails sets it, too.
            if stop.has_failed() {
                return None;
            }
            // Without a paced drain, some may have been closed already.
            let members =
                if is_paced { format!("members={} ", hub.members()) } else { String::new() };
            output::log(&format!("regatta: drain begins: {members}{times}"));
            Some(Instant::now())
        };
        thread::Builder::new().name("drain".into()).spawn(wait).map(DrainReport)
    }

    /// Prints that the drain has ended, if the stop was set.
    pub fn end(self, host: &Host) {
        if !host.stop.is_set() {
            return;
        }
        // The thread ends at once, because the stop is set.
        if let Ok(Some(began)) = self.0.join() {
            let seconds = began.elapsed().as_secs_f64();
            output::log_last(&format!("regatta: drain ended: after={seconds:.1}s"));
        }
    }
}
