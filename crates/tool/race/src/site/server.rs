//! The machine of the contenders, if it is another one than the load's.

use crate::{
    machine_error::MachineError,
    site::{
        boot::is_here,
        start::{Addresses, Start},
        wire::{Answer, Ask, FromSite, ToSite},
    },
};
use regatta_fleet::{Error, RemoteSite};
use regatta_record::{Asked, Fingerprint, LoadShape, MachineUse, ServerMachine};
use std::{
    net::IpAddr,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How long the machine is observed before a life.
const ALONE: Duration = Duration::from_millis(300);

/// The largest difference of both times of day in whole seconds. The replies of `hello` may be 2 s off.
const MOST_AHEAD_S: i64 = 1;

/// Why an agent is given up whose answer does not belong to the request.
const NONSENSE: &str = "answered something else than it was asked";

/// The machine of the contenders, with an agent there. Dropping it ends what it runs.
pub struct Server {
    site: RemoteSite,
    /// Where contenders are reached, once it is known.
    address: OnceLock<IpAddr>,
    /// By how many seconds its time of day is ahead of this machine's, once it is known.
    ahead_s: OnceLock<i64>,
}

impl Server {
    /// Takes a connected agent.
    pub fn new(site: RemoteSite) -> Server {
        Server { site, address: OnceLock::new(), ahead_s: OnceLock::new() }
    }

    /// Asks for a description of the machine. `address` is where contenders are reached; `None`: where the agent
    /// was reached.
    ///
    /// # Errors
    /// If the agent is lost, or its address is not known, or is not one machine's of IPv4.
    pub fn describe(&self, address: Option<IpAddr>) -> Result<ServerMachine, MachineError> {
        let before = unix_s();
        let described = self.send(&ToSite::Describe)?;
        let after = unix_s();
        let FromSite::Described { setup, dir, address: reached, boot } = described else {
            return Err(self.nonsense());
        };
        let name = self.site.name().to_owned();
        let wrong = |because: &str| {
            let because = format!(
                "{because}; give the address of IPv4 at which this machine reaches it (--server-address)"
            );
            MachineError::Server(Error::Agent { name: name.clone(), because })
        };
        let address = address.or(reached);
        let address =
            address.ok_or_else(|| wrong("does not know by which address it was reached"))?;
        if !address.is_ipv4() || address.is_unspecified() || address.is_multicast() {
            return Err(wrong(&format!("would be loaded at {address}")));
        }
        let address = *self.address.get_or_init(|| address);
        let ahead_s = ahead_s(setup.started_unix_s, (before, after));
        self.ahead_s.get_or_init(|| ahead_s);
        let one_machine = is_here(boot.as_deref());
        Ok(ServerMachine { name, address, dir, setup: *setup, one_machine, fingerprint: None })
    }

    /// Prepares the agent for this race. Returns the fingerprint of its programs there.
    ///
    /// # Errors
    /// If a contender cannot be started there, the time of day there is wrong and matters, or the agent is lost.
    pub fn enter(&self, asked: &Asked) -> Result<Fingerprint, MachineError> {
        if let Some(because) = self.ahead_s.get().and_then(|ahead_s| wrong_time(asked, *ahead_s)) {
            let name = self.site.name().to_owned();
            return Err(MachineError::Server(Error::Agent { name, because }));
        }
        match self.send(&ToSite::Enter(Box::new(asked.clone())))? {
            FromSite::Entered(fingerprint) => Ok(*fingerprint),
            _ => Err(self.nonsense()),
        }
    }

    /// Checks that the programs and files of the race are those that it was entered with.
    pub(crate) fn look(&self) -> Result<(), MachineError> {
        match self.send(&ToSite::Look)? {
            FromSite::Unchanged => Ok(()),
            _ => Err(self.nonsense()),
        }
    }

    /// Which of its settings have changed since this was last asked, or since the race was entered, as a part of a
    /// sentence. Nothing if the agent is lost.
    pub(crate) fn settings_changed(&self) -> Option<String> {
        let pick = |answer| match answer {
            FromSite::Settings { changed } => Some(changed),
            _ => None,
        };
        let failed = "does not say which of its settings changed";
        let changed = self.answered(&ToSite::Settings, pick, failed)?;
        changed.map(|what| format!("on {}, {what}", self.site.name()))
    }

    /// The CPU that its whole machine uses while no contender runs, until `stop` is set. There is a message after each
    /// `slice`, because a slice has as many. `None`: not known.
    pub(crate) fn machine_alone(&self, slice: Duration, stop: &AtomicBool) -> Option<MachineUse> {
        self.machine_lap();
        let (began, mut all) = (Instant::now(), MachineUse::default());
        while began.elapsed() < ALONE && !stop.load(Ordering::Relaxed) {
            thread::sleep(slice.min(ALONE));
            all += self.machine_lap()?;
        }
        // One stretch ends where the next begins, so steps count at the ends of all only.
        Some(MachineUse { spans: 1, ..all })
    }

    fn machine_lap(&self) -> Option<MachineUse> {
        let pick = |answer| match answer {
            FromSite::Machine { used } => Some(used),
            _ => None,
        };
        self.answered(&ToSite::Machine, pick, "does not say how busy it is")?
    }

    /// Why the agent is lost, if it is.
    pub fn lost(&self) -> Option<MachineError> {
        self.site.lost().map(MachineError::Server)
    }

    /// Starts a contender. Returns its number there, and its address.
    pub(crate) fn start(
        &self,
        entrant: &str,
        load: LoadShape,
    ) -> Result<Start<(u32, Addresses)>, MachineError> {
        let start = ToSite::Start { entrant: entrant.to_owned(), load };
        let ask = serde_json::to_value(start).map_err(|_| self.nonsense())?;
        let answer = match self.site.ask_until_stopped(ask) {
            Err(Error::Interrupted) => return Ok(Start::Interrupted),
            answer => answer.map_err(MachineError::Server)?,
        };
        let Some(address) = self.address.get() else { return Err(self.nonsense()) };
        match serde_json::from_value(answer) {
            Ok(FromSite::Started { contender, port, nodes }) => {
                Ok(Start::Ready(Box::new((contender, Addresses::at(*address, port, &nodes)))))
            }
            Ok(FromSite::NotStarted { because }) => Ok(Start::Failed { because }),
            Ok(FromSite::Interrupted) => Ok(Start::Interrupted),
            _ => Err(self.nonsense()),
        }
    }

    /// Asks a contender. Nothing is answered if the agent is lost.
    pub(crate) fn ask(&self, contender: u32, asks: Vec<Ask>) -> Vec<Answer> {
        let wanted = asks.len();
        let pick = |answer| match answer {
            FromSite::Of(answers) => Some(answers).filter(|answers| answers.len() == wanted),
            _ => None,
        };
        let asks = ToSite::Of { contender, asks };
        self.answered(&asks, pick, "does not answer for a contender").unwrap_or_default()
    }

    /// Returns what `pick` takes from the answer. Without it nothing that follows is right, so the agent is then given
    /// up: because it answered something else, or because it `failed`, a part of a sentence.
    fn answered<T>(
        &self,
        ask: &ToSite,
        pick: impl FnOnce(FromSite) -> Option<T>,
        failed: &str,
    ) -> Option<T> {
        let because = match self.send(ask).map(pick) {
            Ok(Some(picked)) => return Some(picked),
            Ok(None) => NONSENSE.to_owned(),
            Err(error) => format!("{failed}: {error}"),
        };
        self.site.give_up(&because);
        None
    }

    fn send(&self, ask: &ToSite) -> Result<FromSite, MachineError> {
        let ask = serde_json::to_value(ask).map_err(|_| self.nonsense())?;
        let answer = self.site.ask(ask).map_err(MachineError::Server)?;
        serde_json::from_value(answer).map_err(|_| self.nonsense())
    }

    fn nonsense(&self) -> MachineError {
        let name = self.site.name().to_owned();
        MachineError::Server(Error::Agent { name, because: NONSENSE.to_owned() })
    }
}

/// Why a race cannot be run on a machine whose time of day is ahead by so many seconds, as the rest of a sentence.
fn wrong_time(asked: &Asked, ahead_s: i64) -> Option<String> {
    let is_compared = asked.workload == "hello";
    (is_compared && ahead_s.abs() > MOST_AHEAD_S).then(|| {
        let (off_s, side) =
            (ahead_s.unsigned_abs(), if ahead_s < 0 { "behind" } else { "ahead of" });
        format!(
            "has a clock that is {off_s} s {side} this machine's, and the replies of `hello` contain the time; \
             synchronise the clocks of both (NTP)"
        )
    })
}

/// By how many seconds a time of day is ahead of this machine's, of which it was taken between two. The message may
/// take long: all that it explains is no difference.
fn ahead_s(there: u64, (before, after): (u64, u64)) -> i64 {
    there as i64 - there.clamp(before, after.max(before)) as i64
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn the_time_that_a_message_takes_is_no_difference_of_clocks() {
        let ahead_s = |there| ahead_s(there, (100, 105));
        assert_eq!([97, 100, 103, 105, 107].map(ahead_s), [-3, 0, 0, 0, 2]);
    }

    #[test]
    fn clocks_that_differ_are_refused_where_replies_contain_the_time() {
        let hello = Asked { workload: "hello".into(), ..fixtures::asked() };
        assert_eq!([-1, 0, 1].map(|ahead_s| wrong_time(&hello, ahead_s)), [None, None, None]);
        assert!(wrong_time(&hello, 2).unwrap().contains("is 2 s ahead of this machine's"));
        assert!(wrong_time(&hello, -9).unwrap().contains("is 9 s behind this machine's"));
        assert_eq!(wrong_time(&fixtures::asked(), 9), None);
    }
}
