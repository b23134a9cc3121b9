//! What a load saw that a contender must not do: answer wrongly, not at all, or vanish.

use regatta_load::Tally;
use regatta_record::Outcome;

/// The outcome that follows from the replies alone; `None` if all that were owed came and were
/// right. A refused connection is tried again, and one that is closed idle owes nothing: neither is a
/// fault. A request that was sent is owed its reply.
pub(crate) fn of_replies(name: &str, tally: &Tally) -> Option<Outcome> {
    if let Some(exchange) = tally.first_wrong.clone() {
        let because = "a reply was wrong".to_owned();
        return Some(Outcome::Disqualified { because, exchange: Some(exchange) });
    }
    if tally.server_died {
        let because = format!("{name} stopped accepting connections and answering under load");
        return Some(Outcome::Failed { because });
    }
    let missing: Vec<String> = tally
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
