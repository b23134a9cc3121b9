//! Runs the line programs, `hello` and `hash`, over HTTP/1.1 and HTTP/2, under the simulator, against models that compute in
//! the simplest way what each client must see.

mod http;
mod http2;
mod lines;

use regatta_engine::simulator::{Fault, Random, Visit};

/// Faults that a simulation of a service must find.
const FAULTS: [Fault; 6] = [
    Fault::LostByte,
    Fault::DoubledByte,
    Fault::ReplyAfterTheEnd,
    Fault::NeverCloses,
    Fault::MissedTimer,
    Fault::LostInputAtStop,
];

/// Events that never occur over HTTP. The first `OF_JOBS` are possible only for a service with jobs, and the last one
/// only if requests can close the connection.
const NEVER: &[Visit] = &[
    Visit::EndGone,
    Visit::JobDone,
    Visit::JobLate,
    Visit::StateConnecting,
    Visit::EndAborted,
    Visit::EndConnect,
    Visit::TimerConnect,
    Visit::TimerAlarm,
    Visit::TimerEngine,
    Visit::Letter,
    Visit::EndPart,
];
const OF_JOBS: usize = 3;

const fn never(has_jobs: bool, stays_open: bool) -> &'static [Visit] {
    let (all, _) = NEVER.split_at(if stays_open { NEVER.len() } else { NEVER.len() - 1 });
    if has_jobs { all.split_at(OF_JOBS).1 } else { all }
}

/// The number of requests of a client.
fn requests(random: &mut Random) -> usize {
    match random.weighted(&[300, 695, 5]) {
        0 => random.below(3),
        1 => random.magnitude(1, 20) as usize,
        _ => random.magnitude(512, 1023) as usize,
    }
}
