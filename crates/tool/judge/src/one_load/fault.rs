//! Faults of a contender that a load sees: wrong replies, missing replies, a server that vanished.

use regatta_record::{Errors, Exchange, Outcome};

/// What went wrong under a load.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadFaults<'a> {
    /// Errors by kind, over the whole run.
    pub errors: Errors,
    /// How many of these errors are deliveries of a hub that have not come.
    pub missing_deliveries: u64,
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
    let what = match replies.missing_deliveries {
        0 => "replies",
        all if all >= replies.errors.failed() => "deliveries",
        _ => "replies and deliveries",
    };
    (!missing.is_empty()).then(|| Outcome::Disqualified {
        because: format!("{what} are missing: {}", missing.join(", ")),
        exchange: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_not_called_replies() {
        for (missing_deliveries, what) in
            [(0, "replies"), (2, "replies and deliveries"), (3, "deliveries")]
        {
            let errors = Errors { closed_early: 3, closed_idle: 9, ..Errors::default() };
            let faults = LoadFaults { errors, missing_deliveries, ..LoadFaults::default() };
            let because = format!("{what} are missing: closed early 3");
            let expected = Outcome::Disqualified { because, exchange: None };
            assert_eq!(of_replies("it", faults), Some(expected));
        }
    }
}
