//! The helper: the thread that does what must wait.

use super::{Room, lock};
use crate::host::Stop;
use regatta_engine::Limits;
use regatta_service::Session;
use regatta_sys::{Event, Interest, Readiness, poll::Poll, queue};
use std::{
    mem,
    os::fd::AsFd,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

impl<S: Session> Room<S> {
    /// Runs the helper until the server ends.
    pub(super) fn help(&self, stop: &Stop, limits: Limits) {
        const BELL: u64 = u64::MAX;
        let mut events: Vec<Event> = Vec::new();
        let mut looked = Instant::now();
        loop {
            let (stuck, alarm) = {
                let waiting = lock(&self.waiting);
                let stuck: Vec<_> = waiting.stuck.values().cloned().collect();
                (stuck, waiting.alarms.values().map(|(alarm, _)| *alarm).min())
            };
            // If any members are still stuck, their sockets have been cut.
            if self.over.load(Relaxed) && stuck.is_empty() {
                return;
            }
            let mut poll = Poll::new();
            let mut waited = poll.add(self.bell.as_fd(), BELL, Interest::READ);
            for member in &stuck {
                let room = Interest { read: false, write: true };
                let watched = poll.add(member.stream.as_fd(), member.number, room);
                waited = waited.and(watched);
            }
            let look = (!stuck.is_empty()).then(|| limits.progress_interval());
            let alarm = alarm.map(|alarm| alarm.saturating_duration_since(Instant::now()));
            let limit = look.into_iter().chain(alarm).min();
            // Release the members, so that this list does not keep a finished one open.
            drop(stuck);
            if waited.and_then(|()| poll.wait(&mut events, limit)).is_err() {
                stop.set(); // the server can no longer serve correctly
                return;
            }
            for event in &events {
                match event.token {
                    BELL => drop(rustix::io::read(&self.bell, &mut [0; 8])),
                    number => self.write_rest(number),
                }
            }
            self.ring_alarms();
            if looked.elapsed() >= limits.progress_interval() {
                looked = Instant::now();
                self.look(limits);
            }
        }
    }

    fn write_rest(&self, number: u64) {
        let Some(member) = lock(&self.waiting).stuck.remove(&number) else { return };
        let mut state = lock(&member.state);
        state.stuck = false;
        member.settle(&mut state, self);
    }

    fn ring_alarms(&self) {
        let now = Instant::now();
        let due: Vec<_> = {
            let alarms = &mut lock(&self.waiting).alarms;
            alarms
                .extract_if(|_, (alarm, _)| *alarm <= now)
                .map(|(_, (_, member))| member)
                .collect()
        };
        for member in due {
            let mut state = lock(&member.state);
            if state.rings() && !state.is_full() {
                state.call(|session, context| session.on_alarm(context));
            }
            let posts = mem::take(&mut state.posts);
            if !posts.is_empty() {
                drop(state);
                self.carry_out(&member, posts);
                state = lock(&member.state);
            }
            // Its thread may wait longer.
            state.until = Instant::now() + Duration::from_secs(3600);
            member.called(&mut state, self);
        }
    }

    /// Closes members that acknowledge none of their pending output, or must have taken it by now.
    fn look(&self, limits: Limits) {
        let stuck: Vec<_> = lock(&self.waiting).stuck.values().cloned().collect();
        for member in stuck {
            let mut state = lock(&member.state);
            let unacknowledged = queue::unacknowledged(&*member.stream).unwrap_or(0);
            let now = Instant::now();
            let is_cut = state.session.cut_at().is_some_and(|at| at <= now);
            if state.stuck
                && (is_cut || state.activity.is_stalled(now, unacknowledged, limits.idle))
            {
                member.give_up(&mut state);
            }
        }
    }
}
