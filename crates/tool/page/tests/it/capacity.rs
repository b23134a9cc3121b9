//! The page of capacity searches in a real browser: its plots have their marks, its numbers are those of
//! the records, and it fits the window.

use regatta_page::capacity_page;
use regatta_record::{
    Arrivals, Capacity, CapacityInterval, CapacityLoad, CapacityPhase, CapacityStep, Limit,
    Operation, Setup,
};
use regatta_testkit::browser::{Browser, installed};
use regatta_testkit::json::assert_same;
use serde_json::{Value, json};
use std::fs;

fn step(level: u32, percentile_ns: Option<u64>, passed: Option<bool>) -> CapacityStep {
    CapacityStep {
        level,
        phase: CapacityPhase::StepUp,
        percentile_ns,
        reply_rate_per_s: f64::from(level) * 0.987,
        window_s: 1.0,
        load_busy: 0.25,
        server_busy: Some(0.75),
        memory_bytes: Some(7 << 20),
        passed,
        because: (passed != Some(true)).then(|| format!("the reason of {level} <b>\u{1b}")),
    }
}

/// A search that found an interval.
fn found(server: &str) -> Capacity {
    Capacity {
        format: 1,
        server: server.into(),
        workload: "double".into(),
        over: None,
        load: CapacityLoad::Rate { connections: 64, pipeline: 16, arrivals: Arrivals::Poisson },
        limit: Limit { quantile: 0.95, ns: 20_000_000 },
        limited: Operation::REQUESTS,
        fresh_starts: true,
        agents: Vec::new(),
        clients: None,
        rate_per_s: Some(CapacityInterval { best: 6_100, low: 5_900, high: Some(6_400) }),
        memory_bytes: Some(7 << 20),
        one_sided: None,
        settling: None,
        unverified: None,
        steps: vec![
            step(2_000, Some(3_456_789), Some(true)),
            step(8_000, Some(45_600_000), Some(false)),
            step(6_400, Some(31_000_000), Some(false)),
            step(5_900, Some(15_000_000), Some(true)),
        ],
        setup: Some(Setup { cpu: "a CPU".into(), cpus: 2, ..Setup::default() }),
        contender: None,
    }
}

/// One without an upper end, because the load was the bottleneck, and one without any passed level.
fn others() -> [Capacity; 2] {
    let open = Capacity {
        rate_per_s: Some(CapacityInterval { best: 9_000, low: 9_000, high: None }),
        one_sided: Some("the load was the bottleneck".into()),
        unverified: Some("it was interrupted".into()),
        steps: vec![step(9_000, Some(5_000_000), Some(true)), step(18_000, None, None)],
        ..found("open")
    };
    let none = Capacity {
        rate_per_s: None,
        steps: vec![step(2_000, Some(90_000_000), Some(false))],
        ..found("none")
    };
    [open, none]
}

fn open(all: &[Capacity]) -> (Browser, tempfile::TempDir) {
    let program = installed().expect("a browser is installed");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capacity.html");
    fs::write(&file, capacity_page(all)).unwrap();
    let mut browser = Browser::open(program, &file);
    browser.wait("document.querySelectorAll('#controls .chip').length > 0");
    browser.eval("regatta.drawAll()");
    (browser, folder)
}

/// The texts of all marks of a figure that are not labels.
fn texts(browser: &mut Browser, figure: &str, mark: &str) -> Vec<String> {
    let all = browser.eval(&format!(
        "[...document.querySelectorAll('figure.{figure} {mark}')].map((e) => e.dataset.text)"
    ));
    serde_json::from_value(all).unwrap()
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn every_search_has_its_interval_and_every_step_its_mark() {
    let all: Vec<Capacity> = [found("first")].into_iter().chain(others()).collect();
    let (mut browser, _folder) = open(&all);
    let dots = "g[aria-label=dot] > *";
    let intervals = texts(&mut browser, "capacity", "g[aria-label=link] > *");
    assert_eq!(
        intervals,
        [
            "first: 6,100 (5,900–6,400) requests/s",
            "open: ≥ 9,000 requests/s, the load was the bottleneck, not verified"
        ]
    );
    assert_eq!(texts(&mut browser, "capacity", dots).len(), 2);
    let arrows = texts(&mut browser, "capacity", "g.open > *");
    assert_eq!(arrows.len(), 1, "only the open interval has an arrow: {arrows:?}");
    let labels = browser.eval("document.querySelector('figure.capacity').textContent");
    assert!(labels.as_str().unwrap().contains("none found"), "{labels}");

    // Positions, not only texts: the axes are logarithmic.
    let places = browser.eval(
        "(() => { const f = regatta.figures.find((f) => f.spec.kind === 'levels'); \
         return [...f.element.querySelectorAll('g[aria-label=dot] > *')].filter((e) => e.dataset.c === '0')\
         .map((e) => { const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }); })()",
    );
    let places: Vec<(f64, f64)> = serde_json::from_value(places).unwrap();
    let steps = &all[0].steps;
    assert_eq!(places.len(), steps.len());
    let log = |step: &CapacityStep| {
        (f64::from(step.level).ln(), (step.percentile_ns.unwrap() as f64).ln())
    };
    let scale = |nth: usize| {
        let (from, to) = (log(&steps[0]), log(&steps[nth]));
        let (x, y) = (places[nth].0 - places[0].0, places[nth].1 - places[0].1);
        (x / (to.0 - from.0), y / (to.1 - from.1))
    };
    for nth in 2..steps.len() {
        let (one, other) = (scale(1), scale(nth));
        assert!((one.0 / other.0 - 1.0).abs() < 0.02, "{places:?}");
        assert!((one.1 / other.1 - 1.0).abs() < 0.02, "{places:?}");
    }
    let said = texts(&mut browser, "levels", dots);
    assert_eq!(said.len(), 6, "a step without a percentile has no mark: {said:?}");
    assert_eq!(said[0], "first at 2 k/s: p95 3.46 ms; passed");
    assert!(said[1].starts_with("first at 8 k/s: p95 45.6 ms; failed: the reason"), "{said:?}");
    let limits = browser.eval("document.querySelectorAll('figure.levels g.limit > *').length");
    assert_eq!(limits, json!(1), "the limit");
    let replies = texts(&mut browser, "replies", dots);
    assert_eq!(replies.len(), 7);
    assert_eq!(replies[0], "first at 2 k/s: 1,974 replies/s; passed");
    let broken = "[...document.querySelectorAll('.canvas svg *')].filter((e) => \
                  [...e.attributes].some((a) => /NaN|Infinity|undefined/.test(a.value))).length";
    assert_eq!(browser.eval(broken), json!(0), "marks without a place");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn every_number_is_that_of_the_record() {
    let all: Vec<Capacity> = [found("first")].into_iter().chain(others()).collect();
    let (mut browser, _folder) = open(&all);
    let stored = browser.eval("regatta.files.capacityJson()");
    let stored: Value = serde_json::from_str(stored.as_str().unwrap()).unwrap();
    assert_same(&stored, &serde_json::to_value(&all).unwrap(), "capacity.json");
    let csv = browser.eval("regatta.files.stepsCsv()");
    assert_eq!(csv.as_str().unwrap().lines().count(), 1 + 4 + 2 + 1, "{csv}");
    let rows = browser.eval(
        "[...document.querySelectorAll('section.server tbody tr')].map((r) => [...r.cells].map((c) => c.textContent).join('|'))",
    );
    assert_eq!(rows[0], "1|step up|2,000|3.46 ms|1,974|25%|75%|7.00 MiB|passed");
    assert_eq!(rows[5], "2|step up|18,000|–|17,766|25%|75%|7.00 MiB|not judged");
    let main = browser.eval("document.getElementById('main').textContent");
    let main = main.as_str().unwrap();
    for part in [
        "How many requests per second does first sustain with p95 ≤ 20 ms?",
        "6,100 requests/s at p95 ≤ 20 ms; every try of 5,900 passed, every try of 6,400 failed",
        "≥ 9,000 requests/s at p95 ≤ 20 ms",
        "none found at p95 ≤ 20 ms",
        "the reason of 18000 <b>\\u{1b}",
        "the capacity may be higher",
        "not verified: it was interrupted",
        "a CPU, 2 CPUs",
    ] {
        assert!(main.contains(part), "{part:?} is not in {main}");
    }
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn it_fits_every_window_and_hostile_names_do_not_become_code() {
    let hostile = "</script><img src=x onerror=document.body.dataset.run=1>\"';--\u{202e}\u{1b}";
    let all = [found(hostile), others()[0].clone()];
    let page = capacity_page(&all);
    for never in ["<img", "\u{202e}", "\u{1b}", "src=\"", "href=", "url(", "connect-src"] {
        assert!(!page.contains(never), "{never:?}");
    }
    assert!(page.len() < 200_000, "{} bytes", page.len());
    let (mut browser, _folder) = open(&all);
    for (width, scheme) in [(1440, "light"), (390, "dark")] {
        browser.media("screen", scheme);
        browser.resize(width, 900);
        browser.wait("regatta.figures.every((f) => f.canvas.clientWidth <= innerWidth)");
        browser.eval("regatta.drawAll()");
        let wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.eval(wider), json!(0), "wider than {width} pixels");
    }
    assert_eq!(browser.eval("document.querySelectorAll('img').length"), json!(0));
    assert_eq!(browser.eval("document.body.dataset.run ?? 'none'"), json!("none"));
    browser.media("print", "light");
    let pdf = browser.ask("Page.printToPDF", &json!({ "printBackground": true }));
    assert!(pdf["data"].as_str().unwrap().len() > 10_000);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}
