//! Reports a contender that dies in the middle of a life. Deaths are looked for between slices, when no contender runs
//! and nothing is measured. What is recorded of a death is decided later, at the end of the life.

use crate::{
    results::events::Events,
    site::{ends::Deaths, hosted::Hosted},
};
use regatta_record::Happened;
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// Interval between two looks. A slice of a contender that has died lasts 2 s, because the load waits for so long until
/// it counts as dead, and a death is to be reported within 3 s.
const LOOKED_EVERY: Duration = Duration::from_millis(500);
/// Looks take at most one part in this many of the time: a message to another machine may take long.
const SHARE: u32 = 20;

/// Looks for deaths in a life.
pub(super) struct DeathWatch {
    next: Instant,
    /// The names of those whose death was reported.
    reported: BTreeSet<String>,
}

impl DeathWatch {
    /// For a life that begins now.
    pub fn new() -> DeathWatch {
        DeathWatch { next: Instant::now(), reported: BTreeSet::new() }
    }

    /// Looks whether one of these contenders has died, if it is time for that.
    pub fn look<'h: 'a, 'a>(
        &mut self,
        contenders: impl Iterator<Item = (&'a str, &'a mut Hosted<'h>)>,
        events: &mut Events<'_>,
    ) {
        let began = Instant::now();
        if began < self.next {
            return;
        }
        for (name, hosted) in contenders {
            self.report(name, &hosted.deaths(), events);
        }
        let ended = Instant::now();
        self.next = ended + LOOKED_EVERY.max((ended - began) * SHARE);
    }

    /// Reports that a contender has died, if it has, and once.
    pub fn report(&mut self, name: &str, deaths: &Deaths, events: &mut Events<'_>) {
        // The end of a backend may have caused that of the server.
        let Some(because) = deaths.backend.as_ref().or(deaths.server.as_ref()) else { return };
        if self.reported.insert(name.to_owned()) {
            let (contender, because) = (name.to_owned(), because.clone());
            events.emit(Happened::ContenderDied { contender, because });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::Event;

    #[test]
    fn a_death_is_reported_once_with_the_first_cause() {
        let mut seen = Vec::new();
        let mut show = |event: &Event| seen.push(event.happened.clone());
        let (mut events, mut watch) = (Events::shown(&mut show), DeathWatch::new());
        let deaths = |backend: Option<&str>, server: Option<&str>| Deaths {
            backend: backend.map(str::to_owned),
            server: server.map(str::to_owned),
        };
        watch.report("a", &deaths(None, None), &mut events);
        watch.report("b", &deaths(Some("app was killed"), Some("b exited")), &mut events);
        watch.report("b", &deaths(None, Some("b exited")), &mut events);
        watch.report("a", &deaths(None, Some("a exited")), &mut events);
        let died = |contender: &str, because: &str| Happened::ContenderDied {
            contender: contender.into(),
            because: because.into(),
        };
        assert_eq!(seen, [died("b", "app was killed"), died("a", "a exited")]);
    }
}
