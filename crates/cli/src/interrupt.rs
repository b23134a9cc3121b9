//! Ctrl-C: the first asks for an orderly end, the second ends at once.

use std::sync::{Arc, atomic::AtomicBool};

/// A flag that SIGINT and SIGTERM set; a second signal ends the process with status 130.
pub fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::{consts::TERM_SIGNALS, flag};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in TERM_SIGNALS {
        // Registered first, so that it sees the flag as the previous signal left it.
        flag::register_conditional_shutdown(*signal, 130, Arc::clone(&stop))?;
        flag::register(*signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
