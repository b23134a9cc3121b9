//! The page in a real browser: its layout needs no script, it makes no network requests, logs no error,
//! and fits the window.
//!
//! Skipped with a message if no Chromium is installed (scripts/setup installs it).

use regatta_record::{Curve, Over};
use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn browser() -> Option<&'static str> {
    let path = env::var_os("PATH")?;
    BROWSERS.into_iter().find(|name| env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

/// Returns the page after layout, and the browser's log.
fn open(browser: &str, page: &Path, width: u32) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--timeout=20000", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_page_lays_out_in_a_browser_and_fits_the_window() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no browser is installed; scripts/setup installs chromium");
        return;
    };
    for fixture in ["summary.json", "axes.json", "sweep.json"] {
        lays_out(browser, fixture);
    }
}

fn lays_out(browser: &str, fixture: &str) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let summary = fs::read_to_string(tests.join(fixture)).unwrap();
    let summary: regatta_record::Summary = serde_json::from_str(&summary).unwrap();
    let html = regatta_report::html(&summary);
    assert!(!html.contains("<script"), "the page needs no script");
    let policy = "default-src 'none'";
    assert!(html.contains(policy), "the page forbids network requests");
    // The tested copy measures itself with a script.
    let probe = "<script>document.body.dataset.wider = \
                 document.documentElement.scrollWidth > window.innerWidth;\
                 document.body.dataset.asked = performance.getEntriesByType('resource').length;\
                 </script></body>";
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let allowed = format!("{policy}; script-src 'unsafe-inline'");
    fs::write(&page, html.replace(policy, &allowed).replace("</body>", probe)).unwrap();
    for width in [1280, 700, 400] {
        let (dom, log) = open(browser, &page, width);
        assert!(dom.contains("data-wider=\"false\""), "wider than {width} pixels");
        assert!(dom.contains("data-asked=\"0\""), "it requests an external resource");
        assert!(!log.contains("CONSOLE"), "{log}");
        assert!(dom.matches("<svg").count() >= 2, "plots of cost and latency");
        let scaled = summary.cells.iter().any(|cell| cell.scaling.is_some());
        assert_eq!(dom.contains("<h2>scaling over cores"), scaled);
        // Three plots over rates, one over connections; each has a series for each curve.
        let swept = |what| summary.curves.iter().filter(what).count();
        let over_rates = swept(|c: &&Curve| matches!(c.over, Over::Rate { .. }));
        let others = summary.curves.len() - over_rates;
        let plots = 3 * usize::from(over_rates > 0) + usize::from(others > 0);
        assert_eq!(dom.matches("<figure>").count(), plots);
        assert!(dom.matches("<g class=\"series").count() == 3 * over_rates + others);
        for entry in &summary.asked.entries {
            let shown = entry.name.replace('<', "&lt;").replace('>', "&gt;");
            assert!(dom.contains(&shown), "{shown} is missing");
        }
        assert!(!dom.contains("<script>alert"), "a contender's name became code");
    }
}
