//! The GitHub Action races a build with itself.

use crate::support::action::{Job, SHORT};
use regatta_testkit::machine;
use std::path::Path;

#[test]
fn a_race_of_a_build_with_itself_passes_and_comments() {
    let _turn = machine::alone();
    let server =
        format!("{} serve double --listen 127.0.0.1:{{port}}", env!("CARGO_BIN_EXE_regatta"));
    let inputs = [
        ("base", server.as_str()),
        ("regatta", env!("CARGO_BIN_EXE_regatta")),
        ("rounds", "5"),
        ("fail-over", "100%"),
        ("options", SHORT),
        ("build", "echo built >it"),
    ];
    let job = Job::new(&inputs);
    let ended = job.run();
    assert_eq!((ended.status, ended.outcome()), (0, "passed"), "{}", ended.log);
    assert_eq!((job.text("base/it"), job.text("head/it")), ("built\n".into(), "built\n".into()));
    assert!(
        ended.gh.contains("gh api --method POST repos/me/mine/issues/7/comments"),
        "{}",
        ended.gh
    );
    let table = "| head |";
    for text in [&ended.gh, &ended.summary] {
        assert!(text.contains("<!-- regatta: regatta -->\n**regatta: passed** · "), "{text}");
        assert!(text.contains(table) && text.contains("| base |"), "{text}");
    }
    let results = Path::new(&ended.outputs["steps.race.outputs.results"]);
    assert!(results.join("summary.json").is_file() && results.join("report.html").is_file());
}
