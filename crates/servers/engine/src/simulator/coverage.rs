//! Counts how often each state, each kind of end and each timer was visited, and some other events.

use crate::connection::link::{End, State, Timer};
use std::fmt;

macro_rules! visits {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a simulation may visit. Most names are those of the states, ends and timers of a
        /// connection.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Visit {
            $($(#[$doc])* $name,)*
        }

        /// All visits, in order of declaration.
        pub const VISITS: &[Visit] = &[$(Visit::$name,)*];
    };
}

visits! {
    StateConnecting,
    StateOpen,
    StateClosing,
    StateLingering,
    StateDelivering,
    StateClosed,
    EndClose,
    EndPart,
    EndHalfClosed,
    EndDrained,
    EndDelivered,
    EndFailed,
    EndAborted,
    EndCut,
    EndIdle,
    EndRequest,
    EndStalled,
    EndGone,
    EndLinger,
    EndFlooded,
    EndConnect,
    TimerConnect,
    TimerLinger,
    TimerDelivery,
    TimerProgress,
    TimerHeldUp,
    TimerOwed,
    TimerIdle,
    TimerRequest,
    TimerAlarm,
    TimerEngine,
    TimerGrace,
    /// A job finished for a connection that waited for it.
    JobDone,
    /// A job finished or was dropped, and its connection no longer waited for it.
    JobLate,
    Letter,
    Stop,
    /// A drain retired a client.
    Retired,
}

impl From<State> for Visit {
    fn from(state: State) -> Self {
        match state {
            State::Connecting { .. } => Visit::StateConnecting,
            State::Open => Visit::StateOpen,
            State::Closing { .. } => Visit::StateClosing,
            State::Lingering { .. } => Visit::StateLingering,
            State::Delivering => Visit::StateDelivering,
            State::Closed(_) => Visit::StateClosed,
        }
    }
}

impl From<End> for Visit {
    fn from(end: End) -> Self {
        match end {
            End::Close => Visit::EndClose,
            End::ClosedByClient => Visit::EndPart,
            End::HalfClosed => Visit::EndHalfClosed,
            End::Drained => Visit::EndDrained,
            End::Delivered => Visit::EndDelivered,
            End::Failed => Visit::EndFailed,
            End::Aborted => Visit::EndAborted,
            End::Cut => Visit::EndCut,
            End::Idle => Visit::EndIdle,
            End::Request => Visit::EndRequest,
            End::Stalled => Visit::EndStalled,
            End::Gone => Visit::EndGone,
            End::Linger => Visit::EndLinger,
            End::Flooded => Visit::EndFlooded,
            End::Connect => Visit::EndConnect,
        }
    }
}

impl From<Timer> for Visit {
    fn from(timer: Timer) -> Self {
        match timer {
            Timer::Connect => Visit::TimerConnect,
            Timer::Linger => Visit::TimerLinger,
            Timer::Delivery => Visit::TimerDelivery,
            Timer::Progress => Visit::TimerProgress,
            Timer::HeldUp => Visit::TimerHeldUp,
            Timer::Owed => Visit::TimerOwed,
            Timer::Idle => Visit::TimerIdle,
            Timer::Request => Visit::TimerRequest,
            Timer::Alarm => Visit::TimerAlarm,
        }
    }
}

/// Counts of visits, and the sizes of histories.
#[derive(Clone, Debug)]
pub struct Coverage {
    visits: [u64; VISITS.len()],
    /// The first history of each visit.
    first: [Option<u64>; VISITS.len()],
    connections: Vec<u32>,
    events: Vec<u32>,
}

impl Default for Coverage {
    fn default() -> Self {
        let (connections, events) = (Vec::new(), Vec::new());
        let (visits, first) = ([0; VISITS.len()], [None; VISITS.len()]);
        Coverage { visits, first, connections, events }
    }
}

impl Coverage {
    #[inline]
    pub(super) fn visit(&mut self, visit: impl Into<Visit>) {
        self.visits[visit.into() as usize] += 1;
    }

    pub(super) fn history(&mut self, connections: usize, events: usize) {
        self.connections.push(connections as u32);
        self.events.push(events as u32);
    }

    /// Notes that the histories until this one have been counted.
    pub(super) fn counted(&mut self, seed: u64) {
        for (first, visits) in self.first.iter_mut().zip(self.visits) {
            *first = first.or((visits > 0).then_some(seed));
        }
    }

    /// Returns how often this was visited.
    pub fn of(&self, visit: Visit) -> u64 {
        self.visits[visit as usize]
    }

    /// Returns the number of histories counted.
    pub fn histories(&self) -> usize {
        self.events.len()
    }

    /// Returns the median number of clients and of events per history.
    pub fn medians(&mut self) -> (u32, u32) {
        let median = |of: &mut Vec<u32>| {
            let middle = of.len() / 2;
            if of.is_empty() { 0 } else { *of.select_nth_unstable(middle).1 }
        };
        (median(&mut self.connections), median(&mut self.events))
    }

    /// Adds the counts of other histories.
    pub fn add(&mut self, other: &Coverage) {
        self.visits.iter_mut().zip(other.visits).for_each(|(sum, visits)| *sum += visits);
        for (first, other) in self.first.iter_mut().zip(other.first) {
            *first = (*first).into_iter().chain(other).min();
        }
        self.connections.extend_from_slice(&other.connections);
        self.events.extend_from_slice(&other.events);
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &visit in VISITS {
            write!(f, "{:>12}  {visit:?}", self.of(visit))?;
            match self.first[visit as usize] {
                Some(seed) => writeln!(f, ", first in history {seed}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
