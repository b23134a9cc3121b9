//! Renders the checks as text for a terminal (pure).

use super::check::{Check, Mark};
use regatta_report::folded;

/// Maximum width in columns; wider prose is hard to read.
const WIDEST: usize = 80;
/// Minimum width in columns; on narrower terminals, lines are still wrapped at this width.
const NARROWEST: usize = 40;
/// Columns of mark and name, including their gaps.
const MARK: usize = 6;
const NAME: usize = 14;

/// Renders a line for each check, with effect and remedy below it if the check is not ok. Lines are at
/// most `width` columns wide, limited to 40–80 columns.
pub fn show(checks: &[Check], width: usize, colour: bool) -> String {
    let width = width.clamp(NARROWEST, WIDEST);
    let mut text = String::new();
    for check in checks {
        let mark = check.mark.name();
        let line = format!("{mark:MARK$}{:NAME$}{}", check.name, check.found);
        let line = folded(&line, width, MARK + NAME);
        text += &if colour { line.replacen(mark, &coloured(check.mark), 1) } else { line };
        for sentence in check.effect.iter().chain(&check.remedy) {
            text += &folded(&format!("{:MARK$}{sentence}", ""), width, MARK);
        }
    }
    text += &folded(&summary(checks), width, 0);
    text
}

fn coloured(mark: Mark) -> String {
    let style = match mark {
        Mark::Ok => 32,
        Mark::Note => 2,
        Mark::Warn => 33,
        Mark::Bad => 31,
    };
    format!("\x1b[{style}m{}\x1b[0m", mark.name())
}

fn summary(checks: &[Check]) -> String {
    let count = |mark| checks.iter().filter(|check| check.mark == mark).count();
    let of_each = [(Mark::Bad, "bad"), (Mark::Warn, "warn"), (Mark::Note, "note")];
    let found: Vec<String> = of_each
        .into_iter()
        .filter(|(mark, _)| count(*mark) > 0)
        .map(|(mark, what)| format!("{} {what}", count(mark)))
        .collect();
    let all = checks.len();
    if found.is_empty() {
        return format!("{all} checks, all ok");
    }
    format!("{all} checks: {}", found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> [Check; 2] {
        let long = "so many words that one line of forty columns cannot hold them ".repeat(3);
        [
            Check::ok("cpus", "2: 1 for the server, 1 for the load"),
            Check::ok("swap", &long).marked(Mark::Warn, &long, "Do this."),
        ]
    }

    #[test]
    fn wraps_lines_at_the_width() {
        for (width, widest) in [(200, 80), (80, 80), (57, 57), (10, 40)] {
            let text = show(&two(), width, false);
            let most = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(most <= widest, "{width}: {most} in\n{text}");
        }
    }

    #[test]
    fn shows_mark_name_and_finding_then_effect_and_remedy() {
        let checks = [
            Check::ok("cpus", "2"),
            Check::ok("swap", "9 MiB").marked(Mark::Note, "It stalls.", "Add memory."),
        ];
        assert_eq!(
            show(&checks, 80, false),
            "ok    cpus          2\n\
             note  swap          9 MiB\n      It stalls.\n      Add memory.\n\
             2 checks: 1 note\n"
        );
        assert_eq!(show(&checks[..1], 80, false).lines().last(), Some("1 checks, all ok"));
    }

    #[test]
    fn colours_only_the_mark() {
        let text = show(&two(), 80, true);
        assert!(text.starts_with("\x1b[32mok\x1b[0m    cpus"), "{text}");
        assert!(text.contains("\x1b[33mwarn\x1b[0m  swap"), "{text}");
    }
}
