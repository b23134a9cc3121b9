//! Planted lies: contenders that deceive a referee in one way each, raced against honest ones. Each
//! must be named for what it is, in a verdict, a class or a doubt, and must not be ranked above an honest
//! contender; no honest one may be accused.
//!
//! The short form runs every race once, and once more if the machine disturbed the first. The full form
//! is `scripts/acceptance lies`: 20 runs of the release build with more rounds, each taken as it comes,
//! whose findings it reads from the file that `REGATTA_LIES` names:
//!
//! ```text
//! lie <tab> what it is <tab> named: 1 or 0 <tab> above an honest one: 1 or 0 <tab> verdict <tab> how certain
//! honest <tab> its name <tab> why it was accused, or nothing
//! ```

mod addresses;
mod behind;
mod changes;
mod race;
mod starts;
mod twin;
mod wrong;

use crate::stage::is_full;
use race::Raced;
use std::{env, fmt::Write as _, fs::OpenOptions, io::Write as _};

/// What the referee said of one liar.
struct Told {
    /// What the lie is.
    lie: &'static str,
    /// The verdict, class or doubt that names it, or what was said instead.
    verdict: String,
    /// The figures that this stands on.
    certain: String,
    /// Whether it is named for what it is.
    is_named: bool,
    /// Whether it is ranked above an honest contender.
    is_above: bool,
}

/// What came of a race.
#[derive(Default)]
struct Findings {
    told: Vec<Told>,
    /// Each honest contender, and why it was accused.
    honest: Vec<(String, Option<String>)>,
}

impl Findings {
    /// Of a race in which these were honest.
    fn of_honest(raced: &Raced, honest: &[&str]) -> Findings {
        let each = honest.iter().map(|name| ((*name).to_owned(), raced.accused(name)));
        Findings { told: Vec::new(), honest: each.collect() }
    }

    fn are_right(&self) -> bool {
        self.told.iter().all(|told| told.is_named && !told.is_above)
            && self.honest.iter().all(|(_, accused)| accused.is_none())
    }

    /// A table in Markdown.
    fn table(&self) -> String {
        let mut table = "\n| lie | verdict | how certain |\n|---|---|---|\n".to_owned();
        let mut row = |lie: &str, verdict: &str, certain: &str| {
            writeln!(table, "| {lie} | {verdict} | {certain} |").expect("a string takes it");
        };
        for Told { lie, verdict, certain, is_named, is_above } in &self.told {
            let missed = if *is_named { "" } else { "NOT NAMED: " };
            let above = if *is_above { "RANKED ABOVE AN HONEST ONE: " } else { "" };
            row(lie, &format!("{missed}{above}{verdict}"), certain);
        }
        for (name, accused) in &self.honest {
            let accused = accused.as_ref().map(|why| format!("ACCUSED: {why}"));
            row(&format!("none ({name})"), accused.as_deref().unwrap_or("not accused"), "");
        }
        table
    }

    /// Appends all findings to the file of the full form.
    fn keep(&self) {
        let Some(path) = env::var_os("REGATTA_LIES") else { return };
        let clean = |text: &str| text.replace(['\t', '\n'], " ");
        let mut rows = String::new();
        for Told { lie, verdict, certain, is_named, is_above } in &self.told {
            let (named, above) = (u8::from(*is_named), u8::from(*is_above));
            let (verdict, certain) = (clean(verdict), clean(certain));
            writeln!(rows, "lie\t{lie}\t{named}\t{above}\t{verdict}\t{certain}").expect("a string");
        }
        for (name, accused) in &self.honest {
            let why = accused.as_deref().map(clean).unwrap_or_default();
            writeln!(rows, "honest\t{name}\t{why}").expect("a string");
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(rows.as_bytes()).unwrap();
    }
}

/// Races, and asserts that every liar was named and nobody else.
#[track_caller]
fn assert_named(race: impl Fn() -> Findings) {
    let mut findings = race();
    if !findings.are_right() && !is_full() {
        println!("once more, since a machine that others use may disturb it:{}", findings.table());
        findings = race();
    }
    println!("{}", findings.table());
    findings.keep();
    assert!(findings.are_right(), "{}", findings.table());
}
