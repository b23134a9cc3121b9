//! Faults of a contender that a load sees: wrong replies, missing replies, a server that vanished.

use regatta_record::{Errors, Exchange, Outcome};

/// What went wrong under a load.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadFaults<'a> {
    /// Errors by kind, over the whole run.
    pub errors: Errors,
    /// The first wrong exchange.
    pub first_wrong: Option<&'a Exchange>,
    /// The server refused every connection, or answered nothing, until the load gave up.
    pub server_died: bool,
}

/// Returns the outcome that follows from the replies alone; `None` if all due replies arrived and
/// were correct. A refused connection is retried, and a connection closed while idle owes no reply:
/// neither is a fault. A request that was sent is owed its reply.
pub fn of_replies(name: &str, replies: LoadFaults<'_>) -> Option<Outcome> {
    if let Some(exchange) = replies.first_wrong.cloned() {
        let because = "a reply was wrong".to_owned();
        return Some(Outcome::Disqualified { because, exchange: Some(exchange) });
    }
    if replies.server_died {
        let because = format!("{name} stopped accepting connections and answering under load");
        return Some(Outcome::Failed { because });
    }
    let missing: Vec<String> = replies
        .errors
        .by_kind()
        .into_iter()
        .filter(|(kind, count)| !["connect", "closed_idle"].contains(kind) && *count > 0)
        .map(|(kind, count)| format!("{} {count}", kind.replace('_', " ")))
        .collect();
    (!missing.is_empty()).then(|| Outcome::Disqualified {
        because: format!("replies are missing: {}", missing.join(", ")),
        exchange: None,
    })
}
