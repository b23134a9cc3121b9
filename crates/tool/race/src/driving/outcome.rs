//! The outcome of a round: a pure function of what the load saw, which processes had ended, and how the others
//! stopped. In this order:
//!
//! 1. A backend that died explains whatever the server then did or did not answer.
//! 2. A wrong reply counts, even if the server died.
//! 3. The death of the server explains replies that are missing, and a load that took too long.
//! 4. A fault of the load beside decides only if the measured load has none of its own, because each of the two
//!    stops when the other ends.
//! 5. In an interrupted race only a wrong reply counts: what is missing may be missing because of the interruption.

use crate::{driving::single::outcome_of_replies, machine_error::MachineError, site::ends::Deaths};
use regatta_load::{Error, Tally};
use regatta_record::{Background, LoadShape, Outcome};
use std::time::Duration;

/// The result of a load.
pub(crate) type Loaded = Result<Tally, Error>;

/// All that the outcome of a round depends on.
pub(crate) struct Facts<'a> {
    /// The contender.
    pub name: &'a str,
    pub load: LoadShape,
    /// Whether the race is to end.
    pub interrupted: bool,
    pub deaths: Deaths,
    /// The measured load; `None` if it never started.
    pub loaded: Option<Loaded>,
    /// The time limit at which it was stopped, if it was.
    pub too_long: Option<Duration>,
    /// The load beside it, if there was one.
    pub background: Option<Loaded>,
    /// What the server speaks, if that may be another protocol.
    pub spoken: Option<String>,
    /// A remark on how the processes stopped; an error fails the round.
    pub stopped: Result<Option<String>, String>,
}

/// How a round ended, with what is stored of it.
#[derive(Debug)]
pub(crate) struct Concluded {
    pub outcome: Outcome,
    pub remark: Option<String>,
    /// The measured load.
    pub tally: Option<Tally>,
    /// The load beside it.
    pub background: Option<Background>,
}

impl Facts<'_> {
    /// Returns how the round ended; `None` if it was interrupted.
    ///
    /// # Errors
    /// If the machine, not the contender, prevented the load.
    pub fn conclude(self) -> Result<Option<Concluded>, MachineError> {
        let interrupted = self.interrupted;
        let concluded = self.judged()?;
        let stays = |one: &Concluded| one.outcome == Outcome::Finished || is_wrong(&one.outcome);
        Ok(concluded.filter(|one| !interrupted || stays(one)))
    }

    fn judged(self) -> Result<Option<Concluded>, MachineError> {
        let Facts { name, load, deaths, loaded, too_long, background, spoken, stopped, .. } = self;
        if let Some(because) = deaths.backend {
            return Ok(Some(Outcome::Failed { because }.into()));
        }
        let died = deaths.server;
        let mut beside = None;
        if let Some(large) = background {
            match of_beside(name, large, died.as_ref())? {
                Ok(counted) => beside = Some(counted),
                Err(fault) if decides(&fault, name, loaded.as_ref()) => {
                    return Ok(Some(fault.into()));
                }
                // A fault of the measured load ended it; that fault is found below.
                Err(_) => {}
            }
        }
        let tally = match loaded {
            None => return Ok(None),
            Some(Ok(tally)) if tally.interrupted && too_long.is_none() => return Ok(None),
            Some(Ok(tally)) => tally,
            Some(Err(error)) => {
                return Ok(Some(not_loaded(name, error, died, spoken)?.into()));
            }
        };
        let late = too_long.map(|limit| {
            format!(
                "{name} did not finish the load {load} within {} s: {} requests were answered",
                limit.as_secs(),
                tally.requests
            )
        });
        let outcome = match (of_replies(name, &tally, died.or(late)), tally.in_flight_limit) {
            (Outcome::Finished, Some(limit)) => permits_fewer(name, limit, load),
            (outcome, _) => with_remark(outcome, spoken),
        };
        let (outcome, remark) = match stopped {
            Ok(remark) if outcome == Outcome::Finished => (outcome, remark),
            Err(because) if outcome == Outcome::Finished => (Outcome::Failed { because }, None),
            _ => (outcome, None),
        };
        Ok(Some(Concluded { outcome, remark, tally: Some(tally), background: beside }))
    }
}

impl From<Outcome> for Concluded {
    /// A round of which nothing was counted.
    fn from(outcome: Outcome) -> Concluded {
        Concluded { outcome, remark: None, tally: None, background: None }
    }
}

/// A wrong reply takes precedence; `because` explains missing replies.
fn of_replies(name: &str, tally: &Tally, because: Option<String>) -> Outcome {
    match (outcome_of_replies(name, tally), because) {
        (Some(wrong), _) if is_wrong(&wrong) => wrong,
        (_, Some(because)) => Outcome::Failed { because },
        (Some(fault), None) => fault,
        (None, None) => Outcome::Finished,
    }
}

/// Whether a reply was wrong, rather than missing.
fn is_wrong(fault: &Outcome) -> bool {
    matches!(fault, Outcome::Disqualified { exchange: Some(_), .. })
}

/// Returns the outcome of a contender that could not be loaded.
///
/// # Errors
/// If that was not its fault.
pub(crate) fn not_loaded(
    name: &str,
    error: Error,
    died: Option<String>,
    spoken: Option<String>,
) -> Result<Outcome, MachineError> {
    match error {
        Error::NotOpened { .. } => {
            let because = died.unwrap_or_else(|| {
                let spoken = spoken.iter().map(|what| format!("; {what}")).collect::<String>();
                format!("{name}: {error}{spoken}")
            });
            Ok(Outcome::Failed { because })
        }
        Error::Descriptors { .. } => Ok(Outcome::CannotHold { because: error.to_string() }),
        error => Err(error.into()),
    }
}

/// Returns the outcome of a server that permitted fewer requests in flight than the load asks for: it would get
/// another load than the others.
pub(crate) fn permits_fewer(name: &str, limit: u32, load: LoadShape) -> Outcome {
    Outcome::CannotHold {
        because: format!(
            "{name} permits {limit} requests in flight per connection; this load has {}, so {name} would get \
             another load than the others: raise its limit, or use a pipeline of {limit}",
            load.pipeline
        ),
    }
}

/// Whether a load was refused by a server that accepted no connection.
pub(crate) fn accepted_nothing(error: &Error) -> bool {
    matches!(error, Error::NotOpened { opened: 0, .. })
}

/// Whether a load shows that a server may speak another protocol: no reply was right, although it
/// accepted connections.
pub(crate) fn is_doubtful(loaded: &Loaded) -> bool {
    match loaded {
        Ok(tally) => !tally.interrupted && tally.replies == 0,
        Err(error) => accepted_nothing(error),
    }
}

/// Adds to a fault what the server speaks.
fn with_remark(outcome: Outcome, spoken: Option<String>) -> Outcome {
    let Some(spoken) = spoken else { return outcome };
    let added = |because: String| format!("{because}; {spoken}");
    match outcome {
        Outcome::Failed { because } => Outcome::Failed { because: added(because) },
        Outcome::Disqualified { because, exchange } => {
            Outcome::Disqualified { because: added(because), exchange }
        }
        other => other,
    }
}

/// Returns the record of the load beside, or the outcome of a round that fails because of it.
///
/// # Errors
/// If the machine prevented it.
fn of_beside(
    name: &str,
    background: Loaded,
    died: Option<&String>,
) -> Result<Result<Background, Outcome>, Error> {
    let beside = |because: &str| format!("among the large requests beside: {because}");
    let failed = |because: &str| {
        let because = died.cloned().unwrap_or_else(|| beside(because));
        Ok(Err(Outcome::Failed { because }))
    };
    let tally = match background {
        Ok(tally) => tally,
        Err(error @ Error::NotOpened { .. }) => return failed(&format!("{name}: {error}")),
        Err(error @ Error::Descriptors { .. }) => {
            return Ok(Err(Outcome::CannotHold { because: error.to_string() }));
        }
        Err(error) => return Err(error),
    };
    match outcome_of_replies(name, &tally) {
        Some(Outcome::Disqualified { because, exchange })
            if exchange.is_some() || died.is_none() =>
        {
            Ok(Err(Outcome::Disqualified { because: beside(&because), exchange }))
        }
        Some(Outcome::Failed { because }) => failed(&because),
        Some(_) => failed("replies are missing"),
        None if tally.requests == 0 => failed("none was answered during the measured load"),
        None => Ok(Ok(Background {
            requests: tally.requests,
            window_ns: tally.window_ns,
            load_cpu_ns: tally.load_cpu_ns,
        })),
    }
}

/// Whether this `fault` of the load beside decides the round, rather than the measured load. A load
/// that ends stops the other, which then lacks replies. So a fault of the measured load has
/// precedence, but a wrong reply has precedence over missing replies.
fn decides(fault: &Outcome, name: &str, measured: Option<&Loaded>) -> bool {
    let Some(Ok(tally)) = measured else { return true };
    match outcome_of_replies(name, tally) {
        Some(own) if is_wrong(&own) => false,
        // Interrupted by the end of the load beside.
        Some(_) => tally.interrupted || is_wrong(fault),
        None => true,
    }
}

#[cfg(test)]
mod tests;
