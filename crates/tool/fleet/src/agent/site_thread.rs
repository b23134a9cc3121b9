//! The thread of an agent's site. Requests of it may take long, e.g. the start of a contender, and meanwhile the agent
//! renews its lease and answers others.

use crate::site::NewSite;
use serde_json::Value;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long a site may take to end what it runs.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A site on its thread. Dropping it ends all that it runs.
pub(super) struct SiteThread {
    /// `None` once it is to end.
    asks: Option<mpsc::Sender<(u64, Value)>>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl SiteThread {
    /// Starts the thread. `answered` gets the number of each request, and its answer.
    pub fn start(
        new: NewSite,
        answered: impl Fn(u64, Result<Value, String>) + Send + 'static,
    ) -> io::Result<SiteThread> {
        let (asks, asked) = mpsc::channel::<(u64, Value)>();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let run = move || {
            let mut site = new(stopped.clone());
            for (seq, ask) in asked {
                if stopped.load(Relaxed) {
                    return;
                }
                answered(seq, site.answer(ask));
            }
        };
        let thread = thread::Builder::new().name("site".into()).spawn(run)?;
        Ok(SiteThread { asks: Some(asks), stop, thread })
    }

    /// Has it carry out a request after those before.
    pub fn ask(&self, seq: u64, ask: Value) {
        if let Some(asks) = &self.asks {
            // It ends only when this is dropped.
            let _ = asks.send((seq, ask));
        }
    }
}

impl Drop for SiteThread {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.asks = None;
        let deadline = Instant::now() + ENDS_WITHIN;
        while !self.thread.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Site;
    use std::sync::atomic::AtomicUsize;

    /// The number of sites that exist. Each test has its own.
    static ALIVE: AtomicUsize = AtomicUsize::new(0);

    /// Doubles numbers, and waits for its end when it is asked to `wait`.
    struct Doubles(Arc<AtomicBool>);

    impl Site for Doubles {
        fn answer(&mut self, ask: Value) -> Result<Value, String> {
            while ask == "wait" && !self.0.load(Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            let number = ask.as_u64().ok_or(format!("expected a number, got {ask}"))?;
            Ok((number * 2).into())
        }
    }

    impl Drop for Doubles {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, Relaxed);
        }
    }

    #[test]
    fn requests_are_answered_in_turn_and_its_end_interrupts_a_long_one() {
        let (sender, answers) = mpsc::channel();
        let new: NewSite = |stop| {
            ALIVE.fetch_add(1, Relaxed);
            Box::new(Doubles(stop))
        };
        let site = SiteThread::start(new, move |seq, answer| sender.send((seq, answer)).unwrap());
        let site = site.unwrap();
        site.ask(7, 21.into());
        site.ask(8, "x".into());
        assert_eq!(answers.recv().unwrap(), (7, Ok(42.into())));
        assert_eq!(answers.recv().unwrap(), (8, Err("expected a number, got \"x\"".into())));
        site.ask(9, "wait".into());
        site.ask(10, 1.into());
        drop(site);
        assert_eq!(ALIVE.load(Relaxed), 0, "it was dropped");
        assert!(answers.iter().all(|(seq, _)| seq == 9), "what follows is not carried out");
    }
}
