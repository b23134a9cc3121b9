//! Reloads: on SIGHUP the configuration file of a service is read again, and what can change while clients are served
//! is changed. A file that is wrong changes nothing. Which keys these are, and how they are applied, is decided by the
//! service.

use crate::{options::rooms::RoomTables, output, service_manager};
use clap::ArgMatches;
use regatta_serve::Stop;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Read},
    os::unix::net::UnixStream,
    thread,
};

/// Reads the options again, from the configuration file and the command line.
pub type Again = fn() -> anyhow::Result<Options>;

/// The options of a service.
pub struct Options {
    /// As they were parsed.
    pub matches: ArgMatches,
    /// As they were written, by key. The tables of rooms are one value.
    pub values: BTreeMap<String, Vec<OsString>>,
    /// The tables of rooms, of a hub.
    pub rooms: RoomTables,
}

impl Options {
    /// A number that is the same, in processes of one program, for the same values.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.values.hash(&mut hasher);
        hasher.finish()
    }
}

/// A service whose options can be applied while it runs.
pub trait Reloaded: Send + 'static {
    /// The keys that [`Reloaded::apply`] applies. The others need a restart.
    const LIVE: &'static [&'static str];

    /// Applies options.
    ///
    /// # Errors
    /// Says why they cannot be applied. Then nothing has changed.
    fn apply(&mut self, options: &Options) -> anyhow::Result<Applied>;
}

/// What the keys alone do not show of what was applied.
#[derive(Default)]
pub struct Applied {
    /// What has changed in files, if anything has.
    pub in_files: Option<InFiles>,
    /// Keys of [`Reloaded::LIVE`] that need a restart this time, because of what else has changed.
    pub kept: &'static [&'static str],
}

/// The contents of files have changed.
pub struct InFiles {
    /// Their name for people.
    pub what: &'static str,
    /// The keys that name the files. It is not reported beside one of them.
    pub keys: &'static [&'static str],
}

/// What reloads need.
pub struct Reloads {
    /// Becomes readable at each SIGHUP.
    pub signals: UnixStream,
    /// Reads the options.
    pub again: Again,
    /// Their present values, by key.
    pub values: BTreeMap<String, Vec<OsString>>,
    /// The server, which need not listen yet.
    pub stop: Stop,
}

impl Reloads {
    /// Reloads at each SIGHUP from now on, in a thread of its own, because reading files and resolving names block.
    ///
    /// `applied` is called with options that were applied.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn follow<S: Reloaded>(
        mut self,
        mut service: S,
        applied: impl Fn(&Options) + Send + 'static,
    ) -> io::Result<()> {
        let follow = move || {
            loop {
                // Several signals that arrive together are one.
                match self.signals.read(&mut [0; 64]) {
                    Ok(1..) => self.report(&mut service, &applied),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return,
                }
            }
        };
        thread::Builder::new().name("reload".into()).spawn(follow).map(drop)
    }

    /// Reloads, and prints what was done.
    fn report<S: Reloaded>(&mut self, service: &mut S, applied: &impl Fn(&Options)) {
        // The service manager must not be notified before the service is ready.
        let is_ready = self.stop.readiness().is_ok();
        if is_ready {
            service_manager::reloading();
        }
        let report = match self.reload(service, applied) {
            Ok(report) => report,
            Err(error) => format!("the configuration stays as it is: {error:#}"),
        };
        if is_ready {
            service_manager::reloaded();
        }
        output::log(&format!("regatta: {report}"));
    }

    /// Reads the options and applies them. Returns what was done, for people.
    fn reload<S: Reloaded>(
        &mut self,
        service: &mut S,
        applied: &impl Fn(&Options),
    ) -> anyhow::Result<String> {
        let options = (self.again)()?;
        let Applied { in_files, kept } = service.apply(&options)?;
        applied(&options);
        let is_live = |key: &str| S::LIVE.contains(&key) && !kept.contains(&key);
        let new = options.values;
        let is_changed = |key: &&str| self.values.get(*key) != new.get(*key);
        let changed = new.keys().map(String::as_str).filter(is_changed);
        let (mut live, others): (Vec<&str>, Vec<&str>) = changed.partition(|key| is_live(key));
        if let Some(InFiles { what, keys }) = in_files
            && !keys.iter().any(|key| live.contains(key))
        {
            live.push(what);
        }
        let report = sentence(&live, &others);
        // What needs a restart is reported each time.
        self.values.extend(new.into_iter().filter(|(key, _)| is_live(key)));
        Ok(report)
    }
}

/// A sentence about what was done. `live`: the changed keys that apply; `others`: those that need a restart.
fn sentence(live: &[&str], others: &[&str]) -> String {
    let mut report = "the configuration was read again".to_owned();
    if !live.is_empty() {
        report += &format!("; changed: {}", live.join(", "));
    }
    if !others.is_empty() {
        report += &format!("; these need a restart: {}", others.join(", "));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_what_changed_and_what_needs_a_restart() {
        assert_eq!(sentence(&[], &[]), "the configuration was read again");
        assert_eq!(sentence(&["nodes"], &[]), "the configuration was read again; changed: nodes");
        assert_eq!(
            sentence(&["nodes"], &["listen", "model"]),
            "the configuration was read again; changed: nodes; these need a restart: listen, model"
        );
    }
}
