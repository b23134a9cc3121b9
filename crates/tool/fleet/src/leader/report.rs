//! Reports of load processes, which come through an agent and may be anything: numbers that no load counts are
//! refused, so that sums over all processes do not overflow, and texts are made harmless for a terminal.

use regatta_record::{ArrivalsSeen, Counted, OpenCounted, ProcessMessage, visible};
use serde_json::{Map, Value};
use std::mem;

/// The sum of all numbers of a report is less. The largest are times of CPU in nanoseconds: this is 52 days. There
/// are at most 64 agents with 64 processes each.
const MOST: u64 = 1 << 52;
/// The sums of arrivals, of their squares and their products are less: thousands of them fit in 128 bits.
const MOST_OF_ARRIVALS: u128 = 1 << 104;

/// Returns a report with visible texts.
///
/// # Errors
/// What is wrong with its numbers, as the rest of a sentence.
pub(super) fn checked(mut message: ProcessMessage) -> Result<ProcessMessage, String> {
    let wrong = |error: serde_json::Error| format!("sent a wrong report: {error}");
    // A JSON value has no numbers of 128 bits.
    let arrivals = arrivals(&mut message);
    let sums: Vec<[u128; 3]> = arrivals.into_iter().map(|sums| sums.map(mem::take)).collect();
    if sums.iter().flatten().any(|sum| *sum >= MOST_OF_ARRIVALS) {
        return Err("sent a report with impossible numbers: sums of arrivals are too high".into());
    }
    let mut report = serde_json::to_value(&message).map_err(wrong)?;
    let (sum, is_changed) = clean(&mut report);
    if sum >= MOST {
        return Err(format!("sent a report with impossible numbers: their sum is {MOST} or more"));
    }
    if is_changed {
        message = serde_json::from_value(report).map_err(wrong)?;
    }
    for (fields, sums) in self::arrivals(&mut message).into_iter().zip(sums) {
        fields.into_iter().zip(sums).for_each(|(field, sum)| *field = sum);
    }
    Ok(message)
}

/// The sums of arrivals of a report: of the window, and of each of its stages.
fn arrivals(message: &mut ProcessMessage) -> Vec<[&mut u128; 3]> {
    let ProcessMessage::Counted(counted) = message else { return Vec::new() };
    let Counted { open_loop, stages, .. } = &mut **counted;
    let of_stages = stages.iter_mut().filter_map(|stage| stage.open_loop.as_mut());
    open_loop.iter_mut().chain(of_stages).map(sums).collect()
}

fn sums(open: &mut OpenCounted) -> [&mut u128; 3] {
    let ArrivalsSeen { sum, squares, products, .. } = &mut open.arrivals;
    [sum, squares, products]
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
    use regatta_record::LoadProgress;

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

    /// The counts of an open loop with this sum of squares.
    fn opened(squares: u128) -> Counted {
        let arrivals = ArrivalsSeen { squares, ..ArrivalsSeen::nothing(1, 1) };
        let parts = [(); 3].map(|()| Histogram::new(3).unwrap());
        let open = OpenCounted::nothing(parts, arrivals);
        Counted { open_loop: Some(open), ..counted() }
    }

    #[test]
    fn an_open_loop_of_more_than_a_moment_is_possible() {
        // 10,000 requests per second for a second have some 2^52, and for an hour more than 64 bits.
        let stage = Counted { causes: [("\u{1b}".to_owned(), 1)].into(), ..opened(3 << 64) };
        let stages = Counted { stages: vec![opened(1 << 60), stage], ..counted() };
        for counted in [opened(1 << 52), opened(MOST_OF_ARRIVALS - 1), stages] {
            let report = ProcessMessage::Counted(Box::new(counted.clone()));
            let ProcessMessage::Counted(shown) = checked(report).unwrap() else { panic!("others") };
            let squares = |counted: &Counted| -> Vec<u128> {
                let all = [counted].into_iter().chain(&counted.stages);
                all.filter_map(|one| Some(one.open_loop.as_ref()?.arrivals.squares)).collect()
            };
            assert_eq!(squares(&shown), squares(&counted));
        }
    }

    #[test]
    fn numbers_whose_sums_could_overflow_are_refused() {
        let progress = LoadProgress { replies: MOST, ..LoadProgress::default() };
        let slices = Counted { slices: vec![u64::MAX; 2], ..counted() };
        let stages = Counted { stages: vec![slices.clone()], ..counted() };
        let arrivals = opened(MOST_OF_ARRIVALS);
        let of_stage = Counted { stages: vec![arrivals.clone()], ..counted() };
        for report in [
            ProcessMessage::Progress(progress),
            ProcessMessage::Counted(Box::new(slices)),
            ProcessMessage::Counted(Box::new(stages)),
            ProcessMessage::Counted(Box::new(arrivals)),
            ProcessMessage::Counted(Box::new(of_stage)),
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
