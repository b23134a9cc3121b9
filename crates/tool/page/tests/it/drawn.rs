//! The places of marks: read from the drawing through its scales, they are the values of the summary. And
//! the texts of marks are those of the report's numbers. Plots that only some races have; `browser.rs`
//! checks the others.

use crate::common::{race, summary};
use regatta_page::page;
use regatta_record::{Cell, Estimate, Figure, Over, Percentile, RoleCost, Summary, WarmUpClass};
use regatta_report::{numbers, table::visible};
use regatta_testkit::browser::{Browser, installed};
use serde::Deserialize;
use std::fs;

/// A mark: a point, a line from `x1` to `x2`, or a bar.
#[derive(Clone, Debug, Deserialize)]
struct Mark {
    /// The contender, as shown.
    name: String,
    text: String,
    x1: Option<f64>,
    x2: Option<f64>,
    y1: Option<f64>,
    y2: Option<f64>,
}

fn open(summary: &Summary) -> (Browser, tempfile::TempDir) {
    let program = installed().expect("a browser is installed");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs::write(&file, page(summary, &[])).unwrap();
    let mut browser = Browser::open(program, &file);
    browser.wait("document.querySelectorAll('#controls .chip').length > 0");
    // Sections of many loads are closed at first.
    browser.eval(
        "document.querySelectorAll('details').forEach((details) => { details.open = true; })",
    );
    browser.eval("regatta.drawAll()");
    (browser, folder)
}

/// The marks of all figures of a kind. `mark` is the label of their group: `dot`, `link` or `rect`. Only those
/// with a text.
fn marks(browser: &mut Browser, figure: &str, mark: &str) -> Vec<Mark> {
    let script = format!(
        "regatta.figures.filter((f) => f.spec.kind === '{figure}').flatMap((f) => {{
           const svg = f.canvas.querySelector('svg');
           const value = (axis, at) => {{
             const scale = svg.scale(axis);
             return scale?.invert && Number.isFinite(at) ? scale.invert(at) : null;
           }};
           const places = (e) => {{
             const of = (name) => parseFloat(e.getAttribute(name));
             if (e.tagName === 'rect') return [of('x'), of('x') + of('width'), of('y'), of('y') + of('height')];
             if (e.tagName === 'circle') return [of('cx'), of('cx'), of('cy'), of('cy')];
             const numbers = (text) => (text.match(/-?\\d+(\\.\\d+)?(e-?\\d+)?/g) ?? []).map(Number);
             const moved = e.getAttribute('transform');
             if (moved) {{ const [x, y] = numbers(moved); return [x, x, y, y]; }}
             const [x1, y1, x2, y2] = numbers(e.getAttribute('d'));
             return [x1, x2, y1, y2];
           }};
           return [...svg.querySelectorAll('g[aria-label={mark}] > *')].filter((e) => e.dataset.text).map((e) => {{
             const [x1, x2, y1, y2] = places(e);
             return {{name: regatta.state.data.names[e.dataset.c], text: e.dataset.text,
               x1: value('x', x1), x2: value('x', x2), y1: value('y', y1), y2: value('y', y2)}};
           }});
         }})"
    );
    serde_json::from_value(browser.eval(&script)).unwrap()
}

/// Checks that exactly one mark is at a place, within a thousandth.
#[track_caller]
fn assert_at(marks: &[Mark], name: &str, text: &str, x: f64, y: Option<f64>) {
    let close = |drawn: Option<f64>, is: f64| {
        drawn.is_some_and(|drawn| (drawn - is).abs() <= 1e-3 * is.abs().max(1e-9))
    };
    let found = marks.iter().filter(|mark| {
        mark.name == name
            && mark.text.starts_with(text)
            && close(mark.x1, x)
            && y.is_none_or(|y| close(mark.y1, y))
    });
    assert_eq!(found.count(), 1, "{name}: no mark {text:?} at {x} and {y:?} in {marks:#?}");
}

/// Checks that exactly one line of a contender spans these values of an axis, within a thousandth.
#[track_caller]
fn assert_spans(marks: &[Mark], name: &str, e: &Estimate, is_vertical: bool) {
    let close = |drawn: Option<f64>, is: f64| {
        drawn.is_some_and(|drawn| (drawn - is).abs() <= 1e-3 * e.high.abs())
    };
    let spans = |mark: &&Mark| match is_vertical {
        true => close(mark.y1, e.low) && close(mark.y2, e.high),
        false => close(mark.x1, e.low) && close(mark.x2, e.high),
    };
    let found = marks.iter().filter(|mark| mark.name == name).filter(spans);
    assert!(found.count() >= 1, "{name}: no line over {e:?} in {marks:#?}");
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn latency_and_cost_over_rates_are_those_of_the_sweep() {
    let summary = summary("sweep.json");
    let (mut browser, _folder) = open(&summary);
    let [p50, p99, cpu] = ["over-rate-p50", "over-rate-p99", "cpu-over-rate"]
        .map(|kind| marks(&mut browser, kind, "dot"));
    let cpu_lines = marks(&mut browser, "cpu-over-rate", "link");
    let [marginal, standing] =
        ["marginal", "standing"].map(|kind| marks(&mut browser, kind, "dot"));
    let [marginal_lines, standing_lines] =
        ["marginal", "standing"].map(|kind| marks(&mut browser, kind, "link"));
    let (mut medians, mut costs) = (0, 0);
    for curve in &summary.curves {
        let Over::Rate { points, cost, .. } = &curve.over else { continue };
        let name = visible(&curve.contender);
        for point in points {
            let rate = f64::from(point.rate);
            for (dots, ns, percentile) in [(&p50, point.p50_ns, "p50"), (&p99, point.p99_ns, "p99")]
            {
                let Some(ns) = ns.filter(|ns| *ns > 0) else { continue };
                assert_at(dots, &name, &format!("{name} at "), rate, Some(ns as f64));
                let text = format!("{percentile} {}", numbers::time(ns as f64));
                let said = |mark: &&Mark| mark.name == name && mark.text.contains(&text);
                assert!(dots.iter().any(|mark| said(&mark)), "{name}: no {text:?}");
                medians += usize::from(percentile == "p50");
            }
            if let Some(cpu_ns) = point.cpu_ns_per_s {
                assert_at(&cpu, &name, &format!("{name} at "), rate, Some(cpu_ns.mean));
                assert_spans(&cpu_lines, &name, &cpu_ns, true);
            }
        }
        if let Some(cost) = cost {
            for (dots, lines, e) in [
                (&marginal, &marginal_lines, cost.marginal_ns),
                (&standing, &standing_lines, cost.standing_ns_per_s),
            ] {
                assert_at(dots, &name, &format!("{name}: "), e.mean, None);
                assert_spans(lines, &name, &e, false);
                costs += 1;
            }
        }
    }
    assert!(medians > 10 && medians == p50.len(), "{medians}");
    assert!(costs >= 6 && costs == marginal.len() + standing.len(), "{costs}");
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn small_requests_beside_large_ones_are_at_their_latency_and_rate() {
    let mut summary = summary("counted.json");
    // The stored percentiles of a contender are all equal.
    for (nth, cell) in summary.cells.iter_mut().enumerate() {
        cell.latency_ns.p99 = cell.latency_ns.p99.map(|ns| ns * (2 + nth as u64));
    }
    let (mut browser, _folder) = open(&summary);
    let dots = marks(&mut browser, "beside", "dot");
    let shown = |cell: &Cell| Some((cell.beside_per_s?, cell.percentile(Percentile::P99)?.ns));
    let mut compared = 0;
    for cell in summary.cells.iter().filter(|cell| cell.load.beside.is_some()) {
        let Some((rate, p99)) = shown(cell) else { continue };
        let name = visible(&cell.contender);
        let text = format!("{name}: p99 of the small requests {}", numbers::time(p99));
        assert_at(&dots, &name, &text, rate.mean, Some(p99));
        compared += 1;
    }
    assert!(compared >= 3 && compared == dots.len(), "{compared} of {dots:#?}");
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn the_matrix_has_the_ratio_of_each_cell() {
    for fixture in ["summary.json", "axes.json", "sweep.json"] {
        let summary = summary(fixture);
        let (mut browser, _folder) = open(&summary);
        let rows = browser.eval(
            "[...document.querySelector('table.matrix').rows].map((r) => [...r.cells].map((c) => c.textContent.trim()))",
        );
        let rows: Vec<Vec<String>> = serde_json::from_value(rows).unwrap();
        let mut compared = 0;
        for cell in summary.cells.iter().filter(|cell| cell.load.beside.is_none()) {
            let Some(ratio) = cell.ratio_to_baseline else { continue };
            let name = visible(&cell.contender);
            let column = rows[0].iter().position(|title| *title == name).expect("a column");
            let load = visible(&cell.load.to_string());
            let row = rows.iter().find(|row| row[0] == load).expect("a row");
            let text = numbers::brief(&numbers::ratio(&ratio));
            let is_void = cell.verdict.voids(Figure::Cost);
            let text = if is_void { format!("({text})") } else { text };
            let is_baseline = name == visible(&summary.asked.baseline);
            assert_eq!(row[column], if is_baseline { "1" } else { &text }, "{load}, {name}");
            compared += 1;
        }
        assert!(compared > 5, "{fixture}: {compared}");
    }
}

/// A race whose contenders have roles, figures of an article, and warm-ups.
fn with_extras() -> Summary {
    let (mut summary, _) = race();
    let with_cost = summary.cells.iter_mut().filter(|cell| cell.cost_ns_per_request.is_some());
    for (nth, cell) in with_cost.enumerate() {
        let cost = cell.cost_ns_per_request.unwrap();
        let role = |name: &str, share: f64| RoleCost {
            name: name.into(),
            count: 1,
            cpus: vec![0],
            cost_ns_per_request: Some(Estimate {
                mean: cost.mean * share,
                low: cost.low * share,
                high: cost.high * share,
            }),
            cost_not_known: false,
            share: Some(share),
            busy: None,
            memory_bytes: None,
        };
        cell.roles = vec![role("server", 0.7), role("backend", 0.2), role("disk", 0.1)];
        cell.then = Some(["4,654 /s", "11.5 k/s", "1200–1900 /s"][nth % 3].into());
        let settling = cell.settling.as_mut().unwrap();
        settling.cold_ns_per_request = settling.warm_ns_per_request * (1.5 + nth as f64);
        settling.after_ns = 250_000_000 * (nth as u64 + 1);
        settling.class =
            if nth % 2 == 0 { WarmUpClass::WarmsUp } else { WarmUpClass::NeverSettles };
    }
    summary
}

#[test]
#[cfg_attr(
    not(any(has_chromium, has_chromium_browser, has_google_chrome)),
    ignore = "no browser is installed (scripts/setup)"
)]
fn roles_warm_up_and_lines_of_code_are_those_of_the_cells() {
    let summary = with_extras();
    let (mut browser, _folder) = open(&summary);
    let roles = marks(&mut browser, "roles", "rect");
    let warm_ups = marks(&mut browser, "settling", "dot");
    let (then, now) = (marks(&mut browser, "then", "link"), marks(&mut browser, "then", "dot"));
    let (code, code_lines) =
        (marks(&mut browser, "code", "dot"), marks(&mut browser, "code", "link"));
    let per = visible(&summary.asked.cost_per.one);
    let [mut of_roles, mut of_warm_ups, mut of_then, mut of_code] = [0; 4];
    for cell in summary.cells.iter().filter(|cell| cell.cost_ns_per_request.is_some()) {
        let name = visible(&cell.contender);
        let mut from = 0.0;
        for role in &cell.roles {
            let ns = role.cost_ns_per_request.unwrap().mean;
            let is_void = if cell.verdict.voids(Figure::Cost) { ", void" } else { "" };
            let text = format!("{name}, {}: {} per {per}{is_void}", role.name, numbers::time(ns));
            let bar = roles.iter().find(|mark| mark.text == text);
            let bar = bar.unwrap_or_else(|| panic!("no {text:?} in {roles:#?}"));
            let width = bar.x2.unwrap() - bar.x1.unwrap();
            // Plot rounds no bars, but insets of a pixel may be drawn.
            assert!((width / ns - 1.0).abs() < 0.02, "{text}: {width}");
            assert!((bar.x1.unwrap() - from).abs() < 0.02 * (from + ns), "{text}: {bar:?}");
            from += ns;
            of_roles += 1;
        }
        let settling = cell.settling.as_ref().unwrap();
        for ns in [settling.cold_ns_per_request, settling.warm_ns_per_request] {
            let text = format!(
                "{name}: {} per request in the first second, then {}; {}",
                numbers::time(settling.cold_ns_per_request),
                numbers::time(settling.warm_ns_per_request),
                match settling.class {
                    WarmUpClass::NeverSettles => {
                        format!("not steady within {}", numbers::time(settling.observed_ns as f64))
                    }
                    _ => format!("steady after {}", numbers::time(settling.after_ns as f64)),
                }
            );
            assert_at(&warm_ups, &name, &text, ns, None);
            of_warm_ups += 1;
        }
        let rate = cell.rate_per_s.unwrap();
        let article = cell.then.as_ref().unwrap();
        assert_at(&now, &name, &format!("{name}: {article} then, "), rate.mean, None);
        let (low, high) = match article.as_str() {
            "4,654 /s" => (4_654.0, 4_654.0),
            "11.5 k/s" => (11_500.0, 11_500.0),
            _ => (1_200.0, 1_900.0),
        };
        // The bar of a single figure is 2% wide on each side.
        let bar = Estimate { mean: low, low: low / 1.02, high: high * 1.02 };
        assert_spans(&then, &name, &bar, false);
        of_then += 1;
        let entry = summary.asked.entries.iter().find(|entry| entry.name == cell.contender);
        let lines = entry.and_then(|entry| entry.lines_of_code).filter(|lines| *lines > 0);
        let is_void = cell.verdict.voids(regatta_record::Figure::Cost);
        if let (Some(lines), false) = (lines, is_void) {
            let cost = cell.cost_ns_per_request.unwrap();
            let text =
                format!("{name}: {lines} lines, {} per {per}", numbers::time_estimate(&cost));
            assert_at(&code, &name, &text, f64::from(lines), Some(cost.mean));
            assert_spans(&code_lines, &name, &cost, true);
            of_code += 1;
        }
    }
    assert!(of_roles >= 12 && of_roles == roles.len(), "{of_roles}");
    assert!(of_warm_ups >= 8 && of_warm_ups == warm_ups.len(), "{of_warm_ups}");
    assert!(of_then >= 4 && of_then == now.len(), "{of_then}");
    assert!(of_code >= 3 && of_code == code.len(), "{of_code}");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}
