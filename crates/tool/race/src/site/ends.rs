//! How the processes of a contender ended: by themselves, or when they were stopped.

use regatta_host::{Ended, Roles, StopReport, SupervisorError};
use serde::{Deserialize, Serialize};

/// The processes of a contender that ended by themselves, in words.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Deaths {
    /// The first backend.
    pub backend: Option<String>,
    pub server: Option<String>,
}

impl Deaths {
    /// Looks which processes of a contender have ended.
    pub fn of(roles: &mut Roles) -> Deaths {
        let ended = roles
            .ended()
            .unwrap_or_else(|error| vec![Ended { because: error.to_string(), is_server: true }]);
        let first = |of_server: bool| {
            let mut those = ended.iter().filter(|one| one.is_server == of_server);
            those.next().map(|one| one.because.clone())
        };
        Deaths { backend: first(false), server: first(true) }
    }
}

/// How a contender stopped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stopped {
    /// A remark on it; an error fails the round.
    pub remark: Result<Option<String>, String>,
    /// CPU time of all of its processes from their start to their end, nanoseconds; `None` if one of them has no
    /// control group of regatta's.
    pub cpu_ns: Option<u64>,
}

impl Stopped {
    /// Puts the reports of all processes together.
    pub fn of(reports: Vec<Result<StopReport, SupervisorError>>) -> Stopped {
        let cpu_ns = |report: &Result<StopReport, _>| report.as_ref().ok()?.cpu_ns;
        let cpu_ns = reports.iter().map(cpu_ns).sum();
        Stopped { remark: after_stop(reports), cpu_ns }
    }
}

/// Returns a remark on how the processes stopped, if there is one; an error fails the round.
fn after_stop(stopped: Vec<Result<StopReport, SupervisorError>>) -> Result<Option<String>, String> {
    let mut remarks = Vec::new();
    for report in stopped {
        let report = report.map_err(|error| error.to_string())?;
        match report.fault() {
            Some(fault) if !report.keeps_results() => return Err(fault),
            remark => remarks.extend(remark),
        }
    }
    Ok((!remarks.is_empty()).then(|| remarks.join("; ")))
}
