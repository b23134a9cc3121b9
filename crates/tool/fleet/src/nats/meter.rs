//! Whether a load sends more requests than its agent permits (pure).
//!
//! The schedule of a plan is checked before it starts. But a connection that the server closes without announcing it
//! is opened again after a pause, with a request that is in no schedule. So the reports of the load processes, which
//! count all requests, are compared with what the agent permits.

use crate::message::{Answer, FromAgent};
use regatta_record::ProcessMessage;
use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    time::{Duration, Instant},
};

/// Longest line that may be a progress report, in bytes. Others, such as the counts at the end, are not read.
const LONGEST: usize = 16 << 10;
/// How much more than the limit may be sent, because random arrivals vary.
const EXCESS: f64 = 1.1;
/// What may be sent at once, as a time at that rate.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The requests of the load of a session.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Connections of the load that is to begin.
    next: u64,
    load: Option<Load>,
}

#[derive(Debug)]
struct Load {
    began: Instant,
    connections: u64,
    /// Number of requests that are answered or lost, of each process.
    settled: BTreeMap<u32, u64>,
}

impl Meter {
    /// A load with this number of connections may begin. Each sends one request more than the schedule has.
    pub fn expects(&mut self, connections: u64) {
        self.next = connections;
    }

    /// Takes a line that the agent's process sent.
    ///
    /// # Errors
    /// That more requests than `most` per second were sent, as a clause.
    pub fn takes(&mut self, line: &[u8], most: NonZeroU32, now: Instant) -> Result<(), String> {
        if line.len() > LONGEST {
            return Ok(());
        }
        // The leader refuses a line that is no message.
        let Ok(FromAgent { body, .. }) = serde_json::from_slice(line) else { return Ok(()) };
        match body {
            // The processes of an earlier load were killed before these were started.
            Answer::Prepared { .. } => {
                let settled = BTreeMap::new();
                self.load = Some(Load { began: now, connections: self.next, settled });
            }
            Answer::Report { process, message } => {
                if let (ProcessMessage::Progress(progress), Some(load)) = (*message, &mut self.load)
                {
                    load.settled.insert(process, progress.settled);
                    return load.check(most, now);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Load {
    fn check(&self, most: NonZeroU32, now: Instant) -> Result<(), String> {
        let sent = self.settled.values().copied().fold(0, u64::saturating_add);
        let length = now.saturating_duration_since(self.began);
        let scheduled = EXCESS * f64::from(most.get()) * (length + AT_ONCE).as_secs_f64();
        match sent as f64 > self.connections as f64 + scheduled {
            true => Err(format!(
                "its load sent {sent} requests in {length:.1?}, more than {most}/s (--max-rate): each connection that \
                 the server closes is opened again with a request"
            )),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::LoadProgress;

    const MOST: NonZeroU32 = NonZeroU32::new(100).unwrap();

    fn line(body: Answer) -> Vec<u8> {
        serde_json::to_vec(&FromAgent { seq: 0, body }).unwrap()
    }

    fn report(process: u32, settled: u64) -> Vec<u8> {
        let progress = LoadProgress { settled, ..LoadProgress::default() };
        let message = Box::new(ProcessMessage::Progress(progress));
        line(Answer::Report { process, message })
    }

    /// A meter of a load of 50 connections that began at this time.
    fn meter(began: Instant) -> Meter {
        let mut meter = Meter::default();
        meter.expects(50);
        assert_eq!(meter.takes(&line(Answer::Prepared { pids: Vec::new() }), MOST, began), Ok(()));
        meter
    }

    #[test]
    fn a_load_at_the_limit_is_permitted_and_one_above_it_ends() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let mut meter = meter(began);
        for nth in 1..100_u32 {
            let sent = 50 + u64::from(nth) * 100;
            for (process, share) in [(0, sent / 2), (1, sent - sent / 2)] {
                let taken = meter.takes(&report(process, share), MOST, began + nth * second);
                assert_eq!(taken, Ok(()), "{sent} after {nth} s");
            }
        }
        // 50 connections, and 110 requests for each of 100 s.
        let at = began + 99 * second;
        assert_eq!(meter.takes(&report(0, 11_050 - 4_975), MOST, at), Ok(()));
        let error = meter.takes(&report(0, 11_051 - 4_975), MOST, at).unwrap_err();
        let expected = "its load sent 11051 requests in 99.0s, more than 100/s (--max-rate): ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn the_last_reports_of_an_earlier_load_do_not_count_for_the_next() {
        let began = Instant::now();
        let mut meter = meter(began);
        let later = began + Duration::from_secs(100);
        meter.expects(10);
        assert_eq!(meter.takes(&report(0, 5_000), MOST, later), Ok(()));
        assert_eq!(meter.takes(&line(Answer::Prepared { pids: vec![1] }), MOST, later), Ok(()));
        assert_eq!(meter.takes(&report(0, 120), MOST, later), Ok(()));
        assert!(meter.takes(&report(0, 121), MOST, later).is_err());
    }

    #[test]
    fn other_lines_say_nothing() {
        let mut meter = meter(Instant::now());
        for other in [b"x".to_vec(), line(Answer::Pulse), vec![b' '; LONGEST + 1]] {
            assert_eq!(meter.takes(&other, MOST, Instant::now()), Ok(()));
        }
    }
}
