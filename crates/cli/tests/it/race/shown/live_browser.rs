//! `race --live` in a real browser: the page follows the race, and ends with the figures of its summary.

use crate::{
    race::shown::live::url,
    support::race::course::{Course, until},
};
use regatta_record::{Relation, Round, Summary};
use regatta_report::{
    table::Table,
    view::{View, view},
};
use regatta_testkit::{
    browser::{Browser, installed},
    json::assert_same,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

/// The texts of the table of the load; empty as long as there is none.
const TABLE: &str = "document.querySelector('table.figures')?.tBodies[0].textContent ?? ''";
/// The number of rounds that the page has.
const ROUNDS: &str = "globalThis.regatta?.state.data?.rounds.contender.length ?? 0";
/// The state of the race in words.
const STATE: &str = "document.getElementById('live').textContent";
/// Notes in the page whatever it shows, so that nothing is missed however seldom the test looks.
const NOTES: &str = "
const seen = { counts: new Set(), tables: new Set(), states: new Set() };
const note = () => {
  if (!document.getElementById('live')) return;
  seen.counts.add(ROUNDS);
  seen.tables.add(TABLE);
  seen.states.add(STATE);
};
addEventListener('DOMContentLoaded', () => {
  new MutationObserver(note).observe(document.body, { childList: true, subtree: true, characterData: true });
});
globalThis.notes = (what) => [...seen[what]];
";
const IS_OVER: &str = "document.getElementById('live').classList.contains('over')";
const DRAWN: &str = "document.querySelectorAll('#controls .chip').length > 0";

fn browser() -> &'static str {
    installed().expect("a browser")
}

/// Checks that the page shows the figures of the summary, and that every mark has a place.
fn assert_shows(browser: &mut Browser, summary: &Summary, rounds: &[Round]) {
    let drawn = browser.eval("regatta.state.data.summary");
    assert_same(&drawn, &serde_json::to_value(summary).unwrap(), "summary");
    let shown = browser.eval(
        "[...document.querySelectorAll('table')].flatMap((table) => [...table.rows].map((row) => \
         [...row.cells].map((cell) => cell.textContent.trim())))",
    );
    let shown: BTreeSet<Vec<String>> = serde_json::from_value(shown).unwrap();
    let mut compared = 0;
    for row in all_tables(&view(summary)).flat_map(|table| &table.rows) {
        let row: Vec<String> = row.cells.iter().map(|cell| cell.text.clone()).collect();
        assert!(shown.contains(&row), "no row {row:?}");
        compared += 1;
    }
    assert!(compared >= 2, "{compared} rows");
    browser.eval("regatta.drawAll()");
    let mut count = |selector: &str| {
        let count = format!("document.querySelectorAll('{selector}').length");
        browser.eval(&count).as_u64().unwrap() as usize
    };
    let cells = &summary.cells;
    let compared = cells.iter().filter(|cell| cell.ratio_to_baseline.is_some()).count();
    let baseline = cells.iter().any(|cell| cell.relation == Some(Relation::Baseline));
    let marks = if compared == 0 { 0 } else { compared + usize::from(baseline) };
    assert_eq!(count("figure.forest g[aria-label=dot] > *"), marks);
    let costs = cells.iter().filter(|cell| cell.cost_ns_per_request.is_some()).count();
    assert_eq!(count("figure.cost g[aria-label=dot] > *"), costs);
    let with_cost = rounds.iter().any(|round| round.requests > 0);
    assert_eq!(count("figure.strip .rounds path") > 0, with_cost);
    let broken = "[...document.querySelectorAll('.canvas svg *')].filter((e) => \
                  [...e.attributes].some((a) => /NaN|Infinity|undefined/.test(a.value))).length";
    assert_eq!(browser.eval(broken), json!(0), "marks without a place");
    let text = browser.eval("document.body.innerText");
    assert!(!text.as_str().unwrap().contains("NaN"), "{text}");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup installs chromium)"
)]
fn a_browser_follows_the_race_and_ends_with_its_summary() {
    // Both run before the race starts: a browser takes seconds to start where other tests run.
    let [mut first, mut second] = [0; 2].map(|_| Browser::visit(browser(), "about:blank"));
    let notes = NOTES.replace("ROUNDS", ROUNDS).replace("TABLE", TABLE).replace("STATE", STATE);
    first.run_first(&notes);
    let course = Course::in_rounds();
    course.write_quiet_race("'null', 'epoll'", "300ms", "connections = [4]");
    let args = ["race.toml", "--rounds", "6", "--baseline", "epoll", "--out", "out", "--live", "0"];
    let race = course.start(&args);
    let url = url(&race);
    first.go(&url);
    first.wait(DRAWN);
    assert_eq!(
        first.eval("document.querySelectorAll('#live.running, #live.over').length"),
        json!(1)
    );

    until("the first pass is over", || first.eval(ROUNDS).as_u64().unwrap() >= 2);
    // A visitor after the first pass sees at once what has happened.
    second.go(&url);
    second.wait(DRAWN);
    assert!(second.eval(ROUNDS).as_u64().unwrap() >= 2);
    assert_ne!(second.eval(TABLE), json!(""));
    first.wait(IS_OVER);
    race.ended().judged();
    course.assert_nothing_left();
    let counts: Vec<u64> = serde_json::from_value(first.eval("notes('counts')")).unwrap();
    assert!(counts.is_sorted() && counts.len() >= 4, "the rounds arrive one by one: {counts:?}");
    let tables: Vec<String> = serde_json::from_value(first.eval("notes('tables')")).unwrap();
    assert!(tables.len() >= 4, "the figures change: {tables:?}");
    let states: Vec<String> = serde_json::from_value(first.eval("notes('states')")).unwrap();
    assert!(
        states.iter().any(|state| state.contains("epoll at 4 conn, 200/s, start ")),
        "{states:?}"
    );

    let summary = fs::read_to_string(course.out().join("summary.json")).unwrap();
    let summary: Summary = serde_json::from_str(&summary).unwrap();
    let rounds = fs::read_to_string(course.out().join("rounds.jsonl")).unwrap();
    let rounds: Vec<Round> =
        rounds.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    second.wait(IS_OVER);
    for visitor in [&mut first, &mut second] {
        // The server is gone now.
        let said = visitor.eval(STATE);
        assert_eq!(said, json!("The race is over: finished. This page no longer changes."));
        assert_eq!(visitor.eval(ROUNDS), json!(rounds.len()));
        assert_shows(visitor, &summary, &rounds);
        let hidden = visitor.eval("document.getElementById('notice').hidden");
        assert_eq!(hidden, Value::Bool(true), "no notice of an error");
    }
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup installs chromium)"
)]
fn the_page_of_a_killed_race_says_that_it_does_not_answer() {
    let program = browser();
    let course = Course::new();
    course.write_quiet_race("'null', 'epoll'", "500ms", "connections = [4]");
    let race = course.start(&["race.toml", "--rounds", "40", "--out", "out", "--live", "0"]);
    let mut browser = Browser::visit(program, &url(&race));
    browser.wait(DRAWN);
    drop(race);
    browser.wait("document.getElementById('live').classList.contains('lost')");
    let said = browser.eval(STATE);
    assert!(said.as_str().unwrap().starts_with("The race does not answer"), "{said}");
    assert_eq!(browser.eval(DRAWN), json!(true), "the page stays");
    course.assert_nothing_left_soon();
}

/// All tables of a view except those that the page has in another form.
fn all_tables(view: &View) -> impl Iterator<Item = &Table> {
    view.gate.iter().chain(view.raced()).chain(view.details()).chain(&view.scaling)
}
