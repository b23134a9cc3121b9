//! The page in a real browser, from a file and without network: every plot has its marks, every number is
//! that of the summary, sorting, filters and emphasis work, and it fits the window and the paper.

use crate::common::{all_tables, race, summary};
use regatta_record::{Estimate, LoadShape, Outcome, Over, Relation, Round, Summary};
use regatta_report::{numbers, table::visible, view::view};
use regatta_testkit::browser::{Browser, installed};
use regatta_testkit::json::assert_same;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::PathBuf};

/// Opens the page of a race.
fn open(summary: &Summary, rounds: &[Round]) -> (Browser, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = written(&folder, summary, rounds);
    let mut browser = Browser::open(installed().expect("a browser is installed"), &file);
    browser.wait(SHOWN);
    (browser, folder)
}

fn written(folder: &tempfile::TempDir, summary: &Summary, rounds: &[Round]) -> PathBuf {
    let file = folder.path().join("report.html");
    fs::write(&file, regatta_page::page(summary, rounds)).unwrap();
    file
}

/// A page is complete when it has its controls.
const SHOWN: &str = "document.querySelectorAll('#controls .chip').length > 0";

/// Shows the page of each stored result, one after the other, in one browser.
fn on_each(mut test: impl FnMut(&str, &Summary, &[Round], &mut Browser)) {
    let folder = tempfile::tempdir().unwrap();
    let mut browser: Option<Browser> = None;
    for (name, summary, rounds) in fixtures() {
        let file = written(&folder, &summary, &rounds);
        match &mut browser {
            Some(browser) => browser.show(&file),
            None => browser = Some(Browser::open(installed().expect("a browser"), &file)),
        }
        let browser = browser.as_mut().unwrap();
        browser.wait(SHOWN);
        test(name, &summary, &rounds, browser);
    }
}

/// The number of elements of a kind of mark in the figures of a kind, one for each figure.
fn marks(browser: &mut Browser, figure: &str, mark: &str) -> Vec<u64> {
    let count = format!(
        "(regatta.drawAll(), [...document.querySelectorAll('figure.{figure}')].map((f) => \
         f.querySelectorAll('{mark}').length))"
    );
    serde_json::from_value(browser.eval(&count)).unwrap()
}

/// The cells of a load that were run.
fn cells<'a>(summary: &'a Summary, load: &LoadShape) -> Vec<&'a regatta_record::Cell> {
    let run = summary.cells.iter().filter(|c| c.verdict.kind() != regatta_record::Kind::Skipped);
    run.filter(|cell| cell.load == *load).collect()
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn every_plot_has_its_marks() {
    on_each(|name, summary, rounds, browser| {
        let loads = &summary.asked.loads;
        let each = |of: &dyn Fn(&regatta_record::Cell) -> bool| -> Vec<u64> {
            let counts = loads.iter().filter(|load| load.beside.is_none()).map(|load| {
                cells(summary, load).into_iter().filter(|cell| of(cell)).count() as u64
            });
            counts.filter(|count| *count > 0).collect()
        };
        let has_ratio = |cell: &regatta_record::Cell| {
            cell.ratio_to_baseline.is_some() || cell.relation == Some(Relation::Baseline)
        };
        let dots = "g[aria-label=dot] > *";
        assert_eq!(marks(browser, "forest", dots), each(&has_ratio), "{name}");
        let intervals = "g[aria-label=link] > *";
        assert_eq!(marks(browser, "forest", intervals), each(&has_ratio), "{name}");
        let costs = each(&|cell| cell.cost_ns_per_request.is_some());
        assert_eq!(marks(browser, "cost", dots), costs, "{name}");
        let has_memory = |cell: &regatta_record::Cell| cell.memory_bytes.is_some_and(|b| b > 0);
        let memories = marks(browser, "memory", dots).iter().sum::<u64>() as usize;
        let expected = loads.iter().flat_map(|load| cells(summary, load)).filter(|c| has_memory(c));
        assert_eq!(memories, expected.count(), "{name}");
        if !rounds.is_empty() {
            let curves = marks(browser, "percentiles", "g[aria-label=line] > path");
            let latencies = each(&|cell| cell.latency_ns.p50.is_some());
            assert!(curves.iter().zip(&latencies).all(|(drawn, is)| drawn >= is), "{curves:?}");
            let ribbons = marks(browser, "percentiles", "g[aria-label=area] > path");
            assert_eq!(ribbons, latencies, "{name}: a ribbon for each curve");
            let text = "[...document.querySelectorAll('figure.strip .rounds path')]\
                        .map((path) => path.getAttribute('d').split('M').length - 1)\
                        .reduce((a, b) => a + b, 0)";
            let with_cost = rounds.iter().filter(|round| has_cost(round)).count();
            assert_eq!(browser.eval(text), json!(with_cost), "{name}: a mark for each round");
            let others = marks(browser, "strip", dots)[0] as usize;
            assert_eq!(with_cost + others, rounds.len(), "{name}: a cross for each other round");
        }
        let (mut p99, mut cpu, mut knees) = (0, 0, 0);
        let mut others = 0;
        for curve in &summary.curves {
            match &curve.over {
                Over::Rate { points, knee, .. } => {
                    p99 += points.iter().filter(|p| p.p99_ns.is_some_and(|ns| ns > 0)).count();
                    cpu += points.iter().filter(|p| p.cpu_ns_per_s.is_some()).count();
                    knees += usize::from(knee.is_some());
                }
                Over::Connections { points, .. } => {
                    others += points.iter().filter(|p| p.rate_per_s.is_some()).count();
                }
                Over::Cores { points, .. } => {
                    others += points.iter().filter(|p| p.rate_per_s.is_some()).count();
                }
                Over::Idle { .. } => {}
            }
        }
        let mut sum = |figure: &str| marks(browser, figure, dots).iter().sum::<u64>() as usize;
        assert_eq!(sum("over-rate-p99"), p99 + knees, "{name}");
        assert_eq!(sum("cpu-over-rate"), cpu, "{name}");
        assert_eq!(sum("rate-over-connections") + sum("rate-over-cores"), others, "{name}");
        let broken = "[...document.querySelectorAll('.canvas svg *')].filter((e) => \
                      [...e.attributes].some((a) => /NaN|Infinity|undefined/.test(a.value))).length";
        assert_eq!(browser.eval(broken), json!(0), "{name}: marks without a place");
        assert!(browser.complaints.is_empty(), "{name}: {:?}", browser.complaints);
    });
}

/// Whether a round has a cost: it finished, and answered requests.
fn has_cost(round: &Round) -> bool {
    round.outcome == Outcome::Finished && round.requests > 0
}

/// Stored results of all kinds, by name.
fn fixtures() -> Vec<(&'static str, Summary, Vec<Round>)> {
    let (summary_of_race, rounds) = race();
    let stored =
        ["summary.json", "axes.json", "sweep.json", "open.json", "counted.json", "regimes.json"];
    let stored = stored.into_iter().map(|name| (name, summary(name), Vec::new()));
    let near_1 = ("near 1", near_1(summary("summary.json")), Vec::new());
    [("race", summary_of_race, rounds), near_1].into_iter().chain(stored).collect()
}

/// The summary with intervals that exclude 1 by little, or contain it.
fn near_1(mut summary: Summary) -> Summary {
    let bounds = [
        (0.5, 0.96),
        (1.03, 2.2),
        (1.2, 53.0),
        (1.002, 1.7),
        (1.0001, 1.7),
        (0.97, 1.7),
        (0.3, 0.9),
    ];
    let cells = summary.cells.iter_mut().filter(|cell| cell.ratio_to_baseline.is_some());
    for (cell, (low, high)) in cells.zip(bounds.into_iter().cycle()) {
        let mean = f64::sqrt(low * high);
        cell.ratio_to_baseline = Some(Estimate { mean, low, high });
    }
    summary
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn every_number_is_that_of_the_summary() {
    on_each(|name, summary, _, browser| {
        // The cells of all tables of loads, and of the view's other tables.
        let shown = browser.eval(
            "[...document.querySelectorAll('table')].flatMap((table) => [...table.rows].map((row) => \
             [...row.cells].map((cell) => cell.textContent.trim())))",
        );
        let shown: BTreeSet<Vec<String>> = serde_json::from_value(shown).unwrap();
        let view = view(summary);
        let contenders = view.contenders.as_ref().map(|table| table.title.clone());
        let tables = all_tables(&view).filter(|table| Some(&table.title) != contenders.as_ref());
        for row in tables.flat_map(|table| &table.rows) {
            let row: Vec<String> = row.cells.iter().map(|cell| cell.text.clone()).collect();
            assert!(shown.contains(&row), "{name}: no row {row:?}");
        }
        // The texts of the marks.
        browser.eval("regatta.drawAll()");
        let mut texts = |figure: &str, load: usize| -> BTreeSet<String> {
            let all = browser.eval(&format!(
                "regatta.figures.filter((f) => f.spec.kind === '{figure}' && f.spec.load === {load})\
                 .flatMap((f) => [...f.element.querySelectorAll('[data-text]')].map((e) => e.dataset.text))"
            ));
            serde_json::from_value(all).unwrap()
        };
        let per = visible(&summary.asked.cost_per.one);
        let mut compared = 0;
        for (nth, load) in summary.asked.loads.iter().enumerate() {
            if load.beside.is_some() {
                return;
            }
            let (forest, costs) = (texts("forest", nth), texts("cost", nth));
            let memories = texts("memory", nth);
            for cell in cells(summary, load) {
                let contender = visible(&cell.contender);
                let mut has = |texts: &BTreeSet<String>, text: String| {
                    let found = texts.iter().any(|one| one.starts_with(&text));
                    assert!(found, "{name}, {load}: no {text:?} in {texts:?}");
                    compared += 1;
                };
                if let Some(ratio) = &cell.ratio_to_baseline {
                    has(&forest, format!("{contender}: {}", numbers::ratio(ratio)));
                }
                if let Some(cost) = &cell.cost_ns_per_request {
                    let cost = numbers::time_estimate(cost);
                    has(&costs, format!("{contender}: {cost} per {per}"));
                }
                if let Some(bytes) = cell.memory_bytes.filter(|bytes| *bytes > 0) {
                    has(&memories, format!("{contender}: {}", numbers::memory(bytes)));
                }
            }
        }
        assert!(compared > 2 * summary.cells.len() || name == "open.json", "{name}: {compared}");
        // What is drawn is the summary itself.
        let drawn = browser.eval("regatta.state.data.summary");
        assert_same(&drawn, &serde_json::to_value(summary).unwrap(), name);
    });
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn fits_every_window_and_paper_in_light_and_dark() {
    on_each(|name, _, _, browser| {
        let mut papers = BTreeSet::new();
        for (width, scheme) in [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")] {
            browser.media("screen", scheme);
            browser.resize(width, 900);
            browser.wait("regatta.figures.every((f) => f.canvas.clientWidth <= innerWidth)");
            browser.eval("regatta.drawAll()");
            let wider =
                "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.eval(wider), json!(0), "{name}: wider than {width} pixels");
            let small = "Math.min(...[...document.querySelectorAll('main *')].filter((e) => \
                         e.childElementCount === 0 && e.textContent.trim() && e.getClientRects().length)\
                         .map((e) => parseFloat(getComputedStyle(e).fontSize)))";
            assert!(browser.eval(small).as_f64().unwrap() >= 11.0, "{name}: text too small");
            let paper = browser.eval("getComputedStyle(document.body).backgroundColor");
            papers.insert(paper.as_str().unwrap().to_owned());
        }
        assert_eq!(papers.len(), 2, "dark differs from light: {papers:?}");
        browser.resize(1440, 900);
        let verdict = "Math.max(0, ...[...document.querySelectorAll('table.figures')]\
                       .filter((t) => t.getClientRects().length)\
                       .flatMap((t) => [...t.rows[0].cells].filter((c) => c.textContent === 'verdict'))\
                       .map((c) => c.getBoundingClientRect().right))";
        assert!(
            browser.eval(verdict).as_f64().unwrap() <= 1440.0,
            "{name}: no view of the verdict"
        );
        browser.media("print", "light");
        let pdf = browser.ask("Page.printToPDF", &json!({ "printBackground": true }));
        assert!(pdf["data"].as_str().unwrap().len() > 10_000, "{name}");
        assert_eq!(
            browser.eval("regatta.figures.filter((f) => !f.canvas.querySelector('svg')).length"),
            json!(0)
        );
        assert!(browser.complaints.is_empty(), "{name}: {:?}", browser.complaints);
    });
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn sorts_filters_and_emphasises() {
    let (summary, rounds) = race();
    let (mut browser, _folder) = open(&summary, &rounds);
    let column = |nth: usize| {
        format!(
            "[...document.querySelector('table.figures').tBodies[0].rows].map((r) => r.cells[{nth}].textContent)"
        )
    };
    let names = |value: Value| -> Vec<String> { serde_json::from_value(value).unwrap() };
    let before = names(browser.eval(&column(0)));
    browser.eval("document.querySelector('table.figures th button').click()");
    let mut sorted = before.clone();
    sorted.sort();
    assert_eq!(names(browser.eval(&column(0))), sorted, "by name");
    browser.eval("document.querySelector('table.figures th button').click()");
    sorted.reverse();
    assert_eq!(names(browser.eval(&column(0))), sorted, "in descending order");
    browser.eval("document.querySelectorAll('table.figures th button')[1].click()");
    let costs: Vec<f64> = names(browser.eval(&column(1)))
        .iter()
        .filter_map(|text| text.trim_matches(['(', ')']).split(' ').next()?.parse().ok())
        .collect();
    assert!(costs.len() >= 5 && costs.is_sorted(), "{costs:?}");

    // A contender is hidden everywhere, and shown again.
    let of_green = "[...document.querySelectorAll('figure [data-c], tbody tr[data-c]')].filter((e) => \
                    !e.hidden && e.dataset.c == regatta.state.data.names.indexOf('green')).length";
    browser.eval("regatta.drawAll()");
    let shown = browser.eval(of_green).as_u64().unwrap();
    assert!(shown > 8, "{shown}");
    let green =
        "[...document.querySelectorAll('.chip')].find((c) => c.textContent.includes('green'))";
    browser.eval(&format!("{green}.querySelector('.hide').click()"));
    browser.eval("regatta.drawAll()");
    assert_eq!(browser.eval(of_green), json!(0));
    browser.eval(&format!("{green}.querySelector('.hide').click()"));
    browser.eval("regatta.drawAll()");
    assert_eq!(browser.eval(of_green), json!(shown));

    // Pinned with the mouse and the keyboard: all others are dim, in plots and tables.
    let dim = "[...document.querySelectorAll('main [data-c]')].every((e) => \
               e.classList.contains('dim') === (e.dataset.c != regatta.state.data.names.indexOf('green')))";
    assert_eq!(browser.eval(dim), json!(false));
    browser.eval(&format!("{green}.querySelector('.pin').click()"));
    assert_eq!(browser.eval(dim), json!(true));
    for kind in ["keyDown", "keyUp"] {
        let key = json!({ "type": kind, "key": "Escape", "code": "Escape" });
        browser.ask("Input.dispatchKeyEvent", &key);
    }
    browser.wait("document.querySelectorAll('.dim').length === 0");
    browser.eval("document.querySelector('figure.forest g[aria-label=dot] > *').scrollIntoView()");
    let at = browser.eval(
        "(() => { const e = [...document.querySelectorAll('figure.forest g[aria-label=dot] > *')]\
         .find((e) => e.dataset.c == regatta.state.data.names.indexOf('green')); \
         e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); \
         return [r.x + r.width / 2, r.y + r.height / 2]; })()",
    );
    let moved = json!({ "type": "mouseMoved", "x": at[0], "y": at[1] });
    browser.ask("Input.dispatchMouseEvent", &moved);
    browser.wait(dim);
    browser.wait("document.getElementById('tip').textContent.startsWith('green: ')");

    // Linear axes start at zero.
    let ticks =
        "[...document.querySelectorAll('figure.cost text')].some((t) => t.textContent === '0')";
    assert_eq!(browser.eval(ticks), json!(false));
    browser.eval(
        "(() => { const s = document.getElementById('scale'); s.value = 'linear'; \
         s.dispatchEvent(new Event('change')); regatta.drawAll(); })()",
    );
    browser.wait(ticks);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn one_load_is_chosen_and_files_have_a_row_for_each_cell_and_round() {
    let summary = summary("sweep.json");
    let (mut browser, _folder) = open(&summary, &[]);
    let sections = "[...document.querySelectorAll('section.load')].filter((s) => !s.hidden).length";
    assert_eq!(browser.eval(sections), json!(summary.asked.loads.len()));
    browser.eval(
        "(() => { const s = document.getElementById('load'); s.value = '2'; \
         s.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(browser.eval(sections), json!(1));
    assert_eq!(marks(&mut browser, "forest", "svg").len(), 1);
    let rows = browser.eval("regatta.files.cellsCsv().trim().split('\\n').length");
    assert_eq!(rows, json!(summary.cells.len() + 1));

    let (race, rounds) = race();
    let (mut browser, _folder) = open(&race, &rounds);
    let rows = browser.eval("regatta.files.roundsCsv().trim().split('\\n').length");
    assert_eq!(rows, json!(rounds.len() + 1));
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn a_newer_body_and_newer_data_replace_the_page() {
    let (race, rounds) = race();
    let (mut browser, _folder) = open(&race, &rounds);
    let newer = summary("summary.json");
    let (body, data) = (regatta_page::body(&newer), regatta_page::data(&newer, &[]));
    let figures = browser.eval("regatta.figures.length");
    for _ in 0..2 {
        browser.eval(&format!("regatta.show({}, {data})", json!(body)));
        browser.eval("regatta.drawAll()");
        let drawn =
            browser.eval("[regatta.figures.length, document.querySelectorAll('figure').length]");
        assert_eq!(drawn[0], drawn[1]);
        assert_ne!(drawn[0], figures);
        assert!(
            browser
                .eval("document.querySelector('main').textContent.includes('haskell-conduit')")
                .as_bool()
                .unwrap()
        );
    }
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn hostile_names_do_not_become_code() {
    let mut summary = summary("summary.json");
    let old = summary.asked.contenders[3].clone();
    let hostile = "</script><img src=x onerror=document.body.dataset.run=1>\"';--\u{202e}";
    for name in summary.asked.contenders.iter_mut().filter(|name| **name == old) {
        *name = hostile.into();
    }
    for cell in summary.cells.iter_mut().filter(|cell| cell.contender == old) {
        cell.contender = hostile.into();
    }
    for entry in summary.asked.entries.iter_mut().filter(|entry| entry.name == old) {
        entry.name = hostile.into();
    }
    let (mut browser, _folder) = open(&summary, &[]);
    browser.eval("regatta.drawAll()");
    assert_eq!(browser.eval("document.querySelectorAll('img').length"), json!(0));
    assert_eq!(browser.eval("document.body.dataset.run ?? 'none'"), json!("none"));
    // Even if it were not escaped, it could not run.
    browser.eval("document.getElementById('main').insertAdjacentHTML('beforeend', '<img src=x: onerror=\"document.body.dataset.run=1\">')");
    browser.wait("document.querySelector('img').complete");
    assert_eq!(browser.eval("document.body.dataset.run ?? 'none'"), json!("none"));
}
