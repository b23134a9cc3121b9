//! The site of one agent, from the leader's side: asks it, renews its lease, and notices when the agent is lost.

use super::{
    link::Machine,
    members::{Got, Members, Settings, fail},
};
use crate::{
    error::Error,
    machine::Build,
    message::{Answer, Request},
};
use serde_json::Value;
use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Maximum time for an answer. Stopping a contender with many processes takes seconds.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);
/// The same for what takes long. A start has its own limits at the agent.
const LONG_WITHIN: Duration = Duration::from_secs(1_800);
/// How often the agent is looked after while nobody asks it. Meanwhile its machine, and this one, are measured.
const LOOKED_AFTER_EVERY: Duration = Duration::from_millis(50);
/// The same while an answer takes long.
const LOOKED_CLOSELY_EVERY: Duration = Duration::from_millis(10);

/// The site of an agent. Dropping it ends the session: the agent ends all that the site runs.
pub struct RemoteSite {
    shared: Arc<Shared>,
    watch: Option<JoinHandle<()>>,
}

struct Shared {
    name: String,
    /// `None` after the end.
    members: Mutex<Option<Members>>,
    /// Why the agent is lost, if it is.
    lost: Mutex<Option<String>>,
    /// Set when the agent is lost, and by the caller if the answers are no longer wanted.
    stop: Arc<AtomicBool>,
}

impl RemoteSite {
    /// Connects to the agent of a machine, which must be this build. When it is lost, `stop` is set at once, so
    /// that what runs here ends; [`RemoteSite::lost`] then says why.
    ///
    /// # Errors
    /// If it cannot be reached in time, is another build, or `stop` is set meanwhile.
    pub fn connect(
        machine: &Machine,
        build: &Build,
        settings: Settings,
        stop: &Arc<AtomicBool>,
    ) -> Result<RemoteSite, Error> {
        let members = Members::connect(std::slice::from_ref(machine), build, settings, stop)?;
        let shared = Arc::new(Shared {
            name: machine.name.clone(),
            members: Mutex::new(Some(members)),
            lost: Mutex::new(None),
            stop: stop.clone(),
        });
        let watched = shared.clone();
        let watch = thread::Builder::new().name("site-watch".into());
        let watch = watch.spawn(move || while watched.look_after() {});
        let watch = watch.map_err(|error| Error::Machine { what: "start a thread", error })?;
        Ok(RemoteSite { shared, watch: Some(watch) })
    }

    /// The name of its machine.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Asks, and waits for the answer, whether `stop` is set or not. One request at a time.
    ///
    /// # Errors
    /// If the site refused it, or the agent is lost.
    pub fn ask(&self, ask: Value) -> Result<Value, Error> {
        self.shared.ask(ask, ANSWERED_WITHIN, false)
    }

    /// Asks something that takes long.
    ///
    /// # Errors
    /// As [`RemoteSite::ask`]; and [`Error::Interrupted`] soon after `stop` is set. The site is then ended with
    /// all that it runs.
    pub fn ask_until_stopped(&self, ask: Value) -> Result<Value, Error> {
        self.shared.ask(ask, LONG_WITHIN, true)
    }

    /// Has the caller stop, because the answers of the agent are of no use.
    pub fn give_up(&self, because: &str) {
        self.shared.is_lost(because.to_owned());
    }

    /// Why the agent is lost, if it was lost before anyone else set `stop`.
    pub fn lost(&self) -> Option<Error> {
        let lost = self.shared.lost.lock().expect("no thread panics here");
        lost.clone().map(|because| fail(&self.shared.name, because))
    }
}

impl Drop for RemoteSite {
    fn drop(&mut self) {
        *self.shared.members() = None;
        if let Some(watch) = self.watch.take() {
            watch.thread().unpark();
            let _ = watch.join();
        }
    }
}

impl Shared {
    fn members(&self) -> MutexGuard<'_, Option<Members>> {
        self.members.lock().expect("no thread panics here")
    }

    fn ask(&self, ask: Value, limit: Duration, ends_by_stop: bool) -> Result<Value, Error> {
        const LOOKS_EVERY: Duration = Duration::from_millis(10);
        let mut members = self.members();
        let Some(all) = members.as_mut() else { return Err(Error::Interrupted) };
        // The number of the request whose answer ends this.
        let mut asked = all.send(0, Request::Site(ask));
        let (mut is_aborted, deadline) = (false, Instant::now() + limit);
        loop {
            match all.next(LOOKS_EVERY) {
                Some((_, Got::Answer(seq, answer))) if seq == asked => match answer {
                    Answer::Site(answer) => return Ok(answer),
                    Answer::Refused { because } => return Err(fail(&self.name, because)),
                    Answer::Aborted => return Err(Error::Interrupted),
                    _ => {}
                },
                Some((_, Got::Failed(because))) => {
                    let error = self.is_lost(because);
                    *members = None;
                    return Err(error);
                }
                Some((_, Got::Answer(..))) | None => {}
            }
            if Instant::now() > deadline {
                let error = self.is_lost(format!("is alive, but did not answer within {limit:?}"));
                *members = None;
                return Err(error);
            }
            if ends_by_stop && !is_aborted && self.stop.load(Relaxed) {
                (is_aborted, asked) = (true, all.send(0, Request::Abort));
            }
        }
    }

    /// Looks whether the agent is alive. Returns false once it is not.
    fn look_after(&self) -> bool {
        let mut members = self.members();
        let Some(all) = members.as_mut() else { return false };
        while let Some((_, got)) = all.next(Duration::ZERO) {
            if let Got::Failed(because) = got {
                self.is_lost(because);
                *members = None;
                return false;
            }
        }
        let pause = if all.is_late() { LOOKED_CLOSELY_EVERY } else { LOOKED_AFTER_EVERY };
        drop(members);
        thread::park_timeout(pause);
        true
    }

    /// Keeps why the agent is lost, and has the caller stop.
    fn is_lost(&self, because: String) -> Error {
        if !self.stop.load(Relaxed) {
            *self.lost.lock().expect("no thread panics here") = Some(because.clone());
        }
        self.stop.store(true, Relaxed);
        fail(&self.name, because)
    }
}
