//! A remark that applies to several contenders or loads is printed once, with their names.

use regatta_record::{CellFinding, Kind, Summary, Verdict};
use regatta_report::{markdown, terminal};
use unicode_width::UnicodeWidthStr;

/// Three contenders under three loads with the same disturbance, but different figures.
fn disturbed() -> Summary {
    let mut summary: Summary =
        serde_json::from_str(include_str!("../summary.json")).expect("the fixture is a summary");
    let names = ["epoll", "node", "uring"];
    let disturbed = summary.cells.iter_mut().filter(|c| names.contains(&c.contender.as_str()));
    for (nth, cell) in disturbed.enumerate() {
        let because =
            format!("the fan has two speeds, {}/s in 40% of the slices", 9_000 + 100 * nth);
        let busy = format!("server busy 0.{}", 90 + nth);
        cell.verdict = Verdict::new(Kind::Noisy, because);
        cell.verdict.findings.push(CellFinding::new(Kind::CoBound, busy));
    }
    summary
}

#[test]
fn a_remark_on_several_contenders_is_one_note_with_their_names() {
    let summary = disturbed();
    let at_80 = terminal(&summary, 80, false);
    assert!(at_80.lines().all(|line| line.width() <= 80), "{at_80}");
    let joined = at_80.split_whitespace().collect::<Vec<_>>().join(" ");
    for (text, form) in [(joined, "terminal"), (markdown(&summary), "Markdown")] {
        assert_eq!(text.matches("has two speeds").count(), 1, "{form}: {text}");
        assert!(text.contains("s in 40% of the slices"), "{form}");
        let names = text.lines().any(|line| {
            line.contains("noisy") && ["epoll", "node", "uring"].iter().all(|n| line.contains(n))
        });
        assert!(names, "{form}: {text}");
        // The table has marks for it.
        assert!(!text.contains("co-bound · ") && text.contains("≥"), "{form}: {text}");
        assert!(text.contains("9000–9"), "{form}: the range of the figures");
    }
}

#[test]
fn a_later_load_refers_to_the_note_of_an_earlier_one() {
    let summary = disturbed();
    let text = terminal(&summary, 200, false);
    let first = &summary.asked.loads[0];
    let reference = format!("as under double · {first}");
    let noisy: Vec<&str> = text.lines().filter(|line| line.starts_with("noisy · uring")).collect();
    assert!(noisy.len() > 1, "{text}");
    assert!(!noisy[0].contains("as under") && noisy[0].contains("two speeds"), "{noisy:?}");
    assert!(noisy[1..].iter().all(|line| line.ends_with(&reference)), "{noisy:?}");
}

#[test]
fn disqualifications_with_different_figures_are_not_merged() {
    let mut summary = disturbed();
    let names = ["epoll", "node"];
    let cells = summary.cells.iter_mut().filter(|c| names.contains(&c.contender.as_str()));
    for (nth, cell) in cells.enumerate() {
        cell.verdict = Verdict::new(Kind::Disqualified, format!("received {nth}"));
    }
    let text = terminal(&summary, 200, false);
    for nth in 0..4 {
        assert!(text.contains(&format!(": received {nth}\n")), "{nth}: {text}");
    }
}
