//! Planted lies: contenders that each deceive the referee in one way, raced against honest ones. A
//! verdict, a class or a doubt must name each lie, no liar may rank above an honest contender, and no
//! honest contender may be accused.
//!
//! Those that are found whatever else the machine does are also in `tests/it` (`race::lies`).
//!
//! `scripts/acceptance lies` runs each race 20 times. It reads the findings from the file that `REGATTA_LIES`
//! names:
//!
//! ```text
//! lie <tab> its name <tab> named: 1 or 0 <tab> above an honest one: 1 or 0 <tab> verdict <tab> certainty
//! honest <tab> its name <tab> reason of the accusation, or nothing
//! ```

mod addresses;
mod behind;
mod changes;
mod race;
mod starts;
mod twin;
mod wrong;

use race::Raced;
use std::{env, fmt::Write as _, fs::OpenOptions, io::Write as _};

/// The referee's judgement of one liar.
struct Finding {
    /// A description of the lie.
    lie: &'static str,
    /// The verdict, class or doubt that names it, or the verdict that missed it.
    verdict: String,
    /// The figures behind the verdict.
    evidence: String,
    /// Whether the verdict names the lie.
    is_named: bool,
    /// Whether it is ranked above an honest contender.
    is_above: bool,
}

/// The result of a race with liars.
#[derive(Default)]
struct Findings {
    liars: Vec<Finding>,
    /// Each honest contender, and the reason if it was accused.
    honest: Vec<(String, Option<String>)>,
}

impl Findings {
    /// The findings of a race with these honest contenders, and no liars yet.
    fn of_honest(raced: &Raced, honest: &[&str]) -> Findings {
        let each = honest.iter().map(|name| ((*name).to_owned(), raced.accused(name)));
        Findings { liars: Vec::new(), honest: each.collect() }
    }

    fn are_right(&self) -> bool {
        self.liars.iter().all(|liar| liar.is_named && !liar.is_above)
            && self.honest.iter().all(|(_, accused)| accused.is_none())
    }

    /// A table in Markdown.
    fn table(&self) -> String {
        let mut table = "\n| lie | verdict | certainty |\n|---|---|---|\n".to_owned();
        let mut row = |lie: &str, verdict: &str, evidence: &str| {
            writeln!(table, "| {lie} | {verdict} | {evidence} |").expect("a string takes it");
        };
        for Finding { lie, verdict, evidence, is_named, is_above } in &self.liars {
            let missed = if *is_named { "" } else { "NOT NAMED: " };
            let above = if *is_above { "RANKED ABOVE AN HONEST ONE: " } else { "" };
            row(lie, &format!("{missed}{above}{verdict}"), evidence);
        }
        for (name, accused) in &self.honest {
            let accused = accused.as_ref().map(|why| format!("ACCUSED: {why}"));
            row(&format!("none ({name})"), accused.as_deref().unwrap_or("not accused"), "");
        }
        table
    }

    /// Appends all findings to the file that `REGATTA_LIES` names.
    fn keep(&self) {
        let Some(path) = env::var_os("REGATTA_LIES") else { return };
        let clean = |text: &str| text.replace(['\t', '\n'], " ");
        let mut rows = String::new();
        for Finding { lie, verdict, evidence, is_named, is_above } in &self.liars {
            let (named, above) = (u8::from(*is_named), u8::from(*is_above));
            let (verdict, evidence) = (clean(verdict), clean(evidence));
            writeln!(rows, "lie\t{lie}\t{named}\t{above}\t{verdict}\t{evidence}")
                .expect("a string");
        }
        for (name, accused) in &self.honest {
            let why = accused.as_deref().map(clean).unwrap_or_default();
            writeln!(rows, "honest\t{name}\t{why}").expect("a string");
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(rows.as_bytes()).unwrap();
    }
}

/// Races, and asserts that every liar is named, that none ranks above an honest contender, and that no
/// honest contender is accused.
#[track_caller]
fn assert_named(race: impl Fn() -> Findings) {
    let findings = race();
    println!("{}", findings.table());
    findings.keep();
    assert!(findings.are_right(), "{}", findings.table());
}
