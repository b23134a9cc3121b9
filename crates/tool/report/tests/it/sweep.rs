//! Tests of all report formats for curves, on the summary of a simulated race over rates and over
//! connections (`sweep.json`, made by the example `simulated_sweep` of regatta-judge).

use regatta_record::{Over, Summary};
use regatta_report::{csv, json, markdown, terminal};
use unicode_width::UnicodeWidthStr;

const OVER_RATES: &str = "over rates · double · 64 conn";
const OVER_CONNECTIONS: &str = "over connections · double · 1 to 1000 conn";

fn summary() -> Summary {
    serde_json::from_str(include_str!("../sweep.json")).expect("the fixture is a summary")
}

/// The section under a title, its lines joined.
fn section(text: &str, title: &str) -> String {
    let from = text.lines().skip_while(|line| *line != title);
    let lines: Vec<&str> = from.take_while(|line| !line.is_empty()).map(str::trim).collect();
    assert!(!lines.is_empty(), "no section {title:?}:\n{text}");
    lines.join(" ")
}

#[test]
fn describes_curves_in_words() {
    for width in [80, 200] {
        let text = terminal(&summary(), width, false);
        let rates = section(&text, OVER_RATES);
        for text in [
            "threads: CPU = 24.4 [22.9–25.8] ms/s standing + 6.6 [6.3–6.9] µs per request; knee at \
             35 k/s (between 25 and 60 k/s)",
            "but <b>node</b>: no line of cost: it needs 3 rates that were held; these were: \
             5000, 15000; no knee:",
            "knee: the rate with the highest ratio of rate to p99",
        ] {
            assert!(rates.contains(text), "{text:?} in {rates}");
        }
        assert!(!rates.contains("epoll-twin"));
        let connections = section(&text, OVER_CONNECTIONS);
        for text in [
            "threads: λ 7798 [7421–8195] /s, σ 0.1104 [0.1088–0.1120], κ 3.07 [2.97–3.17] ×10⁻⁵; \
             fastest at 170 [168–173] conn; r² 1.000",
            "κ 0.3 [0.0–1.2] ×10⁻⁶; no peak found",
            "but epoll, null, green, threads, <b>node</b>: the rates are lower bounds: co-bound \
             at 250 conn",
        ] {
            assert!(connections.contains(text), "{text:?} in {connections}");
        }
    }
}

#[test]
fn no_line_is_too_long() {
    let s = summary();
    for width in 40..200 {
        let text = terminal(&s, width, false);
        let too_long = text.lines().find(|line| line.width() > width);
        assert_eq!(too_long, None, "{width}");
    }
}

#[test]
fn markdown_describes_curves() {
    let text = markdown(&summary());
    assert!(text.contains(&format!("### {OVER_RATES}\n\n- **epoll**: CPU = ")));
    assert!(text.contains(r"- **threads**: λ 7798 \[7421–8195\] /s"));
    assert!(text.contains("- but &lt;b&gt;node&lt;/b&gt;: no line of cost"));
    assert!(!text.contains("<b>"));
}

#[test]
fn json_and_csv_contain_curves() {
    let s = summary();
    assert_eq!(serde_json::from_str::<Summary>(&json(&s)).unwrap(), s);
    let value: serde_json::Value = serde_json::from_str(&json(&s)).unwrap();
    let curve = &value["curves"][0];
    assert_eq!((&curve["contender"], &curve["over"]["kind"]), (&"epoll".into(), &"rate".into()));
    assert!(curve["over"]["cost"]["standing_ns_per_s"]["low"].is_number());
    assert!(curve["over"]["knee"]["high"].is_number());
    assert_eq!(csv(&s).lines().count(), 1 + s.cells.len(), "one line per cell, as without curves");
}

#[test]
fn renders_curves_without_values() {
    let mut s = summary();
    for curve in &mut s.curves {
        curve.doubt = None;
        match &mut curve.over {
            Over::Rate { points, cost, knee } => {
                (*cost, *knee) = (None, None);
                for point in points {
                    (point.p50_ns, point.p99_ns, point.cpu_ns_per_s) = (None, None, None);
                }
            }
            Over::Connections { points, usl } => {
                *usl = None;
                points.iter_mut().for_each(|point| point.rate_per_s = None);
            }
            Over::Idle { .. } | Over::Cores { .. } => panic!("the fixture has none"),
        }
    }
    assert!(section(&terminal(&s, 80, false), OVER_RATES).starts_with(OVER_RATES));
    assert!(markdown(&s).contains(OVER_CONNECTIONS));
}
