//! Inspects one reply of a contender, on a separate connection and after its load, so that it does not
//! disturb the measurement.

use crate::{ask::entrant::Entrant, ask::host_name::HOST};
use regatta_host::UntilDeadline;
use regatta_record::ReplySeen;
use regatta_script::{Destination, Sample};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// Timeout of the connection, and of the exchange on it.
const WITHIN: Duration = Duration::from_secs(1);

/// Maximum size of an inspected reply, in bytes.
const LONGEST: usize = 1 << 20;

/// Describes a reply of the contender at `address`; `None` if no complete reply arrives within these
/// limits, or if the workload does not describe its replies. If nothing checks the content, two requests
/// show whether it varies by itself.
pub(crate) fn look(entrant: &Entrant, address: SocketAddr) -> Option<ReplySeen> {
    let path = entrant.contender.manifest.path.as_deref();
    let sample =
        entrant.speaks.sample(Destination { host: HOST, path, closes: false, timeout: None })?;
    let mut seen = ask(address, &sample)?;
    if let Some(content) = &mut seen.content {
        let second = ask(address, &sample).and_then(|seen| seen.content);
        content.digest =
            content.digest.filter(|_| second.is_some_and(|s| s.digest == content.digest));
    }
    Some(seen)
}

/// Whether the contender always gets the same request, and nothing checks the content of its replies: then
/// all replies should be about as long as the one that [`look`] sees.
pub(crate) fn is_only_request(entrant: &Entrant) -> bool {
    let path = entrant.contender.manifest.path.as_deref();
    let sample =
        entrant.speaks.sample(Destination { host: HOST, path, closes: false, timeout: None });
    sample.is_some_and(|sample| sample.is_only)
}

fn ask(address: SocketAddr, sample: &Sample) -> Option<ReplySeen> {
    let stream = TcpStream::connect_timeout(&address, WITHIN).ok()?;
    let mut stream = UntilDeadline { stream: &stream, deadline: Instant::now() + WITHIN };
    stream.write_all(&sample.asks).ok()?;
    let (mut came, mut piece) = (Vec::new(), [0; 64 << 10]);
    while came.len() < LONGEST {
        let n = stream.read(&mut piece).ok().filter(|n| *n > 0)?;
        came.extend_from_slice(&piece[..n]);
        if let Some(seen) = (sample.seen)(&came) {
            return Some(seen);
        }
    }
    None
}
