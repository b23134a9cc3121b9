//! What the sender of a message gets when it is known what became of it.

use crate::hub::message::write_remote;
use regatta_engine::RemoteOutcome;

/// Why a message is not published, or may not be; `None` if it is.
pub(in super::super) fn failure(outcome: RemoteOutcome) -> Option<&'static str> {
    match outcome {
        RemoteOutcome::Sent | RemoteOutcome::Kept { .. } => None,
        RemoteOutcome::Refused(why) => Some(why),
        RemoteOutcome::NotSent => Some("not published: the broker does not take it now"),
        RemoteOutcome::Unknown => {
            Some("unknown whether published: the broker has not confirmed it")
        }
    }
}

/// Appends the frame with the result of a broadcast that was published.
pub(in super::super) fn write_published(payload: &str, out: &mut Vec<u8>) {
    write_remote(payload, None, out);
}

/// Appends the frame with the error of a broadcast that was not published, or may not have been.
pub(in super::super) fn write_not_published(payload: &str, why: &str, out: &mut Vec<u8>) {
    write_remote(payload, Some(why), out);
}
