//! The page as a text: complete, self-contained, escaped, and small.

use crate::common::{all_tables, race, summary};
use regatta_page::{Feed, body, data, page, shell};
use regatta_record::{Kind, Outcome, RoleCost};
use regatta_report::view::view;
use regatta_testkit::json::assert_same;
use serde_json::Value;

const FIXTURES: [&str; 6] =
    ["summary.json", "axes.json", "sweep.json", "open.json", "counted.json", "regimes.json"];

/// A text as minijinja escapes it.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\'' => out += "&#x27;",
            '/' => out += "&#x2f;",
            c => out.push(c),
        }
    }
    out
}

#[test]
fn every_text_of_the_view_is_in_the_body() {
    for fixture in FIXTURES {
        let mut summary = summary(fixture);
        let role = |name: &str| RoleCost {
            name: name.into(),
            count: 1,
            cpus: vec![0],
            cost_ns_per_request: summary.cells[0].cost_ns_per_request,
            cost_not_known: false,
            share: Some(0.5),
            busy: None,
            memory_bytes: None,
        };
        summary.cells[0].roles = vec![role("server"), role("\u{1b}<app>")];
        let (view, body) = (view(&summary), body(&summary));
        assert!(!view.roles.is_empty());
        let has = |text: &str| assert!(body.contains(&escaped(text)), "{fixture}: no {text:?}");
        view.answers.iter().for_each(|answer| has(&answer.sentence));
        view.heading.iter().chain(&view.doubts).for_each(|line| has(line));
        // The contenders have a table of their own.
        let of_contenders = view.contenders.iter().map(|table| table.title.clone()).next();
        for table in all_tables(&view).filter(|table| Some(&table.title) != of_contenders.as_ref())
        {
            has(&table.title);
            has(&table.result);
            table.columns.iter().for_each(|column| has(&column.title));
            table.rows.iter().flat_map(|row| &row.cells).for_each(|cell| has(&cell.text));
            table.notes.iter().for_each(|note| has(&note.because));
        }
        for sweep in &view.sweeps {
            has(&sweep.title);
            sweep.found.iter().chain(&sweep.doubts).for_each(|found| has(&found.text));
        }
        for entry in &summary.asked.entries {
            has(&entry.command());
        }
    }
}

#[test]
fn the_page_is_self_contained() {
    let (summary, rounds) = race();
    let page = page(&summary, &rounds);
    for never in ["src=", "href=", "url(", "@import", "http:", "https:"] {
        assert!(!page.contains(never), "{never}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("connect-src"), "it connects to nothing");
    assert_eq!(page.matches("'sha256-").count(), 2, "only the loader and the script may run");
}

#[test]
fn hostile_texts_are_escaped() {
    let mut summary = summary("summary.json");
    let hostile = "</script><img src=x onerror=alert(1)>\"';--\u{202e}\u{1b}[31m";
    let old = summary.asked.contenders[3].clone();
    for name in summary.asked.contenders.iter_mut().filter(|name| **name == old) {
        *name = hostile.into();
    }
    for cell in summary.cells.iter_mut().filter(|cell| cell.contender == old) {
        cell.contender = hostile.into();
        cell.verdict.first_mut().cause = hostile.into();
    }
    for entry in summary.asked.entries.iter_mut().filter(|entry| entry.name == old) {
        (entry.name, entry.about, entry.manifest) =
            (hostile.into(), hostile.into(), hostile.into());
        (entry.start, entry.version) = (vec![hostile.into()], Some(hostile.into()));
    }
    (summary.asked.name, summary.asked.setup.cpu) = (hostile.into(), hostile.into());
    summary.doubts.push(hostile.into());
    let page = page(&summary, &[]);
    for never in ["<img", "\u{202e}", "\u{1b}"] {
        assert!(!page.contains(never), "{never:?}");
    }
    assert!(page.matches("&lt;img src=x").count() > 10);
    assert!(page.contains("\\u{202e}\\u{1b}[31m"), "made visible");
}

#[test]
fn the_data_has_the_summary_with_nine_digits() {
    for fixture in FIXTURES {
        let summary = summary(fixture);
        let data: Value = serde_json::from_str(&data(&summary, &[])).unwrap();
        assert_same(&data["summary"], &serde_json::to_value(&summary).unwrap(), fixture);
    }
}

#[test]
fn contenders_have_version_age_command_and_settings() {
    let mut summary = summary("summary.json");
    summary.asked.setup.started_unix_s = 1_790_000_000;
    let node = summary.asked.entries.iter_mut().find(|entry| entry.name == "node").unwrap();
    (node.version, node.released) = (Some("v22.6.0".into()), Some("2024-08-06".into()));
    node.manifest = "about = \"one process\"\nneeds = []".into();
    let body = body(&summary);
    for part in [
        "<td data-label=\"version\">v22.6.0, 2.1 years old</td>",
        "<code>node server.js --port {port}</code>",
        "<pre>about = &quot;one process&quot;\nneeds = []</pre>",
    ] {
        assert!(body.contains(part), "{part}");
    }
}

#[test]
fn curves_pass_through_the_percentiles_of_the_summary() {
    let (summary, rounds) = race();
    let data: Value = serde_json::from_str(&data(&summary, &rounds)).unwrap();
    let quantiles: Vec<f64> = serde_json::from_value(data["quantiles"].clone()).unwrap();
    let mut compared = 0;
    for (cell, curve) in summary.cells.iter().zip(data["ladders"].as_array().unwrap()) {
        let each = [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99_9")];
        let cell: Value = serde_json::to_value(cell).unwrap();
        for (quantile, name) in each {
            let nth = quantiles.iter().position(|one| *one == quantile).unwrap();
            let shown = cell["latency_intervals"][name]["mean"]
                .as_f64()
                .or_else(|| cell["latency_ns"][name].as_f64());
            let drawn = curve["ns"].get(nth).and_then(Value::as_f64);
            assert_eq!(drawn.is_some(), shown.is_some(), "{name} of {}", cell["contender"]);
            if let (Some(drawn), Some(shown)) = (drawn, shown) {
                assert!((drawn / shown - 1.0).abs() < 1e-3, "{name}: {drawn}, {shown}");
                compared += 1;
            }
            let low = curve["low"].get(nth).and_then(Value::as_f64);
            let high = curve["high"].get(nth).and_then(Value::as_f64);
            if let (Some(low), Some(drawn), Some(high)) = (low, drawn, high) {
                assert!(low <= drawn * 1.001 && drawn <= high * 1.001, "{low} {drawn} {high}");
            }
        }
    }
    assert!(compared >= 3 * summary.cells.len(), "{compared}");
}

#[test]
fn the_strip_has_every_round_in_its_order() {
    let (summary, rounds) = race();
    let data: Value = serde_json::from_str(&data(&summary, &rounds)).unwrap();
    let strip = &data["rounds"];
    assert_eq!(strip["contender"].as_array().unwrap().len(), rounds.len());
    for (nth, round) in rounds.iter().enumerate() {
        let contender = strip["contender"][nth].as_u64().unwrap() as usize;
        assert_eq!(data["contenders"][contender], round.contender.as_str());
        let drawn = strip["cost_ns"][nth].as_f64();
        assert_eq!(strip["outcome"][nth] == 0, round.outcome == Outcome::Finished);
        if round.outcome != Outcome::Finished || round.requests == 0 {
            assert_eq!(drawn, None);
            continue;
        }
        let cost = round.server.as_ref().unwrap().cpu_ns as f64 / round.requests as f64;
        assert!((drawn.unwrap() / cost - 1.0).abs() < 1e-3, "{drawn:?}, {cost}");
    }
}

#[test]
fn what_was_not_measured_is_said_at_the_top() {
    let mut summary = summary("summary.json");
    summary.asked.left_out = vec!["64 conn on 8 CPUs: there are 2".into()];
    let body = body(&summary);
    let top = body.split("<section").next().unwrap();
    for part in ["Not measured", "disqualified", "cannot-hold", "not installed", "on 8 CPUs"] {
        assert!(top.contains(part), "{part} is not in {top}");
    }
    for part in ["2026-09-21", "Noise floor", "±1.3%", "AMD EPYC"] {
        assert!(top.contains(part), "{part}");
    }
}

#[test]
fn a_race_in_two_regimes_has_one_table_with_groups() {
    let body = body(&summary("regimes.json"));
    let top = body.split("<section").next().unwrap();
    assert!(top.contains("every ratio is within <strong>±0.82%</strong>"), "{top}");
    assert!(!top.contains("Noise floor"), "{top}");
    assert!(top.contains("14 lives in slices of 50 ms"), "{top}");
    assert_eq!(body.matches("<section class=\"load\" data-load=\"0 1\"").count(), 1);
    for part in [
        "<tr class=\"groups\"><td></td><th scope=\"colgroup\" colspan=\"7\">at 61 k&#x2f;s</th>",
        "<th scope=\"colgroup\" colspan=\"5\">at saturation</th><td></td></tr>",
        "<h3>at an equal rate of 61 k&#x2f;s</h3>",
    ] {
        assert!(body.contains(part), "{part}");
    }
    assert!(!body.contains("class=\"matrix\""), "the table has both");
}

#[test]
fn a_race_without_results_has_a_page() {
    let mut summary = summary("summary.json");
    (summary.complete, summary.noise_floor) = (false, None);
    for cell in &mut summary.cells {
        cell.verdict.first_mut().kind = Kind::Skipped;
        (cell.cost_ns_per_request, cell.ratio_to_baseline) = (None, None);
        (cell.band, cell.relation) = (None, None);
    }
    let body = body(&summary);
    assert!(body.contains("not complete"));
    let top = body.split("<section").next().unwrap();
    assert!(!top.contains("no round was run yet"), "that is not a reason of the contender: {top}");
    assert!(page(&summary, &[]).contains("not complete"));
}

#[test]
fn a_page_that_follows_a_race_may_connect_to_its_server_only() {
    let page = shell("a", "<p>b</p>", "{}", Some(Feed { url: "/events\"><script>" }));
    assert!(page.contains("; connect-src 'self'\""));
    assert!(page.contains("data-feed=\"&#x2f;events&quot;&gt;&lt;script&gt;\""));
}

#[test]
fn the_bundle_is_the_version_of_the_lock_file() {
    let lock: Value = serde_json::from_str(include_str!("../../web/package-lock.json")).unwrap();
    let bundle = include_str!("../../assets/plot.min.js");
    let listed = bundle.lines().next().unwrap().trim_start_matches("/* ");
    let listed = listed.split(". Licences").next().unwrap();
    let licences = include_str!("../../assets/plot.LICENCES");
    let mut compared = 0;
    for package in listed.split(", ") {
        let (name, version) = package.rsplit_once(' ').unwrap();
        let locked = &lock["packages"][format!("node_modules/{name}")]["version"];
        assert_eq!(locked, version, "{name}: run scripts/page-bundle");
        assert!(licences.contains(&format!("{package}\n")), "no licence of {package}");
        compared += 1;
    }
    assert!(compared >= 10, "{listed}");
    assert!(
        !include_str!("../../web/package-lock.json").contains("\"resolved\""),
        "names a registry"
    );
}
