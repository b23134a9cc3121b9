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
        let [drain, grace] =
            [host.drain, host.grace].map(|time| humantime::format_duration(time).to_string());
        let wait = move || {
            stop.wait().ok()?;
            let members = hub.members();
            output::message(&format!(
                "regatta: drain begins: members={members} drain={drain:?} grace={grace:?}"
            ));
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
            output::message(&format!("regatta: drain ended: after={seconds:.1}s"));
        }
    }
}
