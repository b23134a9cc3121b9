//! What an agent runs beside load processes: the contenders of a race. This crate only carries the requests and
//! answers, as JSON. What they are is up to the program that runs both ends.

use serde_json::Value;
use std::sync::{Arc, atomic::AtomicBool};

/// Carries out what a leader asks, one request after the other, on a thread of its own. Dropping it ends all that
/// it runs.
pub trait Site {
    /// Carries out a request, and returns the answer. The error is a sentence.
    fn answer(&mut self, ask: Value) -> Result<Value, String>;
}

/// Makes the site of an agent. The flag is set when the site must end: a request that takes long ends then.
pub type NewSite = fn(Arc<AtomicBool>) -> Box<dyn Site>;
