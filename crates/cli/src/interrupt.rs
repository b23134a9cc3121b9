//! Ctrl-C and other termination signals: the first requests a graceful stop, the second exits at once.

use std::sync::{Arc, atomic::AtomicBool};

/// Returns a flag that SIGINT, SIGTERM and SIGQUIT set. A second signal exits the process with status
/// 130.
pub fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::{consts::TERM_SIGNALS, flag};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in TERM_SIGNALS {
        // Registered before the handler that sets the flag, so that it sees only earlier signals.
        flag::register_conditional_shutdown(*signal, 130, Arc::clone(&stop))?;
        flag::register(*signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
