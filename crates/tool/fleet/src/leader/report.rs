//! Reports of load processes, which come through an agent and may be anything: numbers that no load counts are
//! refused, so that sums over all processes do not overflow, and texts are made harmless for a terminal.

use regatta_record::{ProcessMessage, visible};
use serde_json::{Map, Value};

/// The sum of all numbers of a report is less. The largest are times of CPU in nanoseconds: this is 52 days. There
/// are at most 64 agents with 64 processes each.
const MOST: u64 = 1 << 52;

/// Returns a report with visible texts.
///
/// # Errors
/// What is wrong with its numbers, as the rest of a sentence.
pub(super) fn checked(message: ProcessMessage) -> Result<ProcessMessage, String> {
    let wrong = |error: serde_json::Error| format!("sent a wrong report: {error}");
    let mut report = serde_json::to_value(&message).map_err(wrong)?;
    let (sum, is_changed) = clean(&mut report);
    match sum {
        MOST.. => {
            Err(format!("sent a report with impossible numbers: their sum is {MOST} or more"))
        }
        _ if is_changed => serde_json::from_value(report).map_err(wrong),
        _ => Ok(message),
    }
}

/// Makes all texts visible. Returns the sum of all numbers, and whether a text was changed.
fn clean(value: &mut Value) -> (u64, bool) {
    let add = |(sum, is_changed): (u64, bool), one: &mut Value| {
        let (more, is_other) = clean(one);
        (sum.saturating_add(more), is_changed || is_other)
    };
    match value {
        Value::Number(number) => (number.as_u64().unwrap_or(0), false),
        Value::String(text) => {
            let shown = visible(text);
            let is_changed = shown != *text;
            *text = shown;
            (0, is_changed)
        }
        Value::Array(all) => all.iter_mut().fold((0, false), add),
        Value::Object(fields) => {
            let (sum, is_changed) = fields.values_mut().fold((0, false), add);
            let is_hidden = fields.keys().any(|key| visible(key) != *key);
            if is_hidden {
                let shown = std::mem::take(fields).into_iter();
                *fields = shown.map(|(key, one)| (visible(&key), one)).collect::<Map<_, _>>();
            }
            (sum, is_changed || is_hidden)
        }
        Value::Null | Value::Bool(_) => (0, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use regatta_record::{Counted, LoadProgress};

    fn counted() -> Counted {
        Counted::nothing(Histogram::new(3).unwrap(), 1, &[])
    }

    #[test]
    fn possible_reports_are_unchanged() {
        let progress = LoadProgress { replies: MOST - 1, ..LoadProgress::default() };
        for report in
            [ProcessMessage::Progress(progress), ProcessMessage::Counted(Box::new(counted()))]
        {
            assert_eq!(checked(report.clone()), Ok(report));
        }
    }

    #[test]
    fn numbers_whose_sums_could_overflow_are_refused() {
        let progress = LoadProgress { replies: MOST, ..LoadProgress::default() };
        let slices = Counted { slices: vec![u64::MAX; 2], ..counted() };
        let stages = Counted { stages: vec![slices.clone()], ..counted() };
        for report in [
            ProcessMessage::Progress(progress),
            ProcessMessage::Counted(Box::new(slices)),
            ProcessMessage::Counted(Box::new(stages)),
        ] {
            let error = checked(report).unwrap_err();
            assert!(error.starts_with("sent a report with impossible numbers"), "{error}");
        }
    }

    #[test]
    fn texts_are_made_visible() {
        let causes = [("\u{1b}[2J".to_owned(), 3)].into();
        let report = ProcessMessage::Counted(Box::new(Counted { causes, ..counted() }));
        let ProcessMessage::Counted(shown) = checked(report).unwrap() else { panic!("not counts") };
        assert_eq!(shown.causes, [("\\u{1b}[2J".to_owned(), 3)].into());
    }
}
