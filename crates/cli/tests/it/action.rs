//! The GitHub Action, `action.yml`: its steps are run as a job would run them, with a `gh` that records what it
//! gets. One race is real: of a build with a planted regression. `tests/full` races a build with itself.

use crate::support::action::{Job, SHORT, action, string};
use std::{fs, process::Command};

#[test]
fn a_planted_regression_fails_and_replaces_the_comment() {
    let server =
        format!("{} serve double --listen 127.0.0.1:{{port}}", env!("CARGO_BIN_EXE_regatta"));
    let slower = format!("{server} --model epoll --burn 1ms");
    // At a rate, the load leaves CPU to other tests.
    let options = format!("{SHORT} --rate 400/s -c 8");
    let inputs = [
        ("base", server.as_str()),
        ("head", slower.as_str()),
        ("regatta", env!("CARGO_BIN_EXE_regatta")),
        ("rounds", "5"),
        ("fail-over", "50%"),
        ("options", options.as_str()),
    ];
    let ended = Job { found: "4711", ..Job::new(&inputs) }.run();
    assert_eq!((ended.status, ended.outcome()), (1, "failed"), "{}", ended.log);
    assert!(
        ended.gh.contains("gh api --method PATCH repos/me/mine/issues/comments/4711"),
        "{}",
        ended.gh
    );
    assert!(ended.gh.contains("**regatta: failed** · "), "{}", ended.gh);
    assert!(!ended.gh.contains("POST"), "it does not comment twice: {}", ended.gh);
    assert!(
        ended.log.contains("::error::regatta: head costs over 50%25 more than base"),
        "{}",
        ended.log
    );
}

#[test]
fn an_undecided_race_passes_with_a_warning_or_fails() {
    let ended = Job::fake(&[], "3").run();
    assert_eq!((ended.status, ended.outcome()), (0, "not-decided"), "{}", ended.log);
    assert!(ended.log.contains("::warning::regatta: not decided"), "{}", ended.log);
    assert!(ended.gh.contains("**regatta: not decided** · "), "{}", ended.gh);
    let ended = Job::fake(&[("on-undecided", "fail")], "3").run();
    assert_eq!(ended.status, 3, "{}", ended.log);
    assert!(ended.log.contains("::error::regatta: not decided"), "{}", ended.log);
    let ended = Job::fake(&[("on-undecided", "maybe")], "3").run();
    assert_eq!(ended.status, 2);
    assert!(ended.log.contains("`maybe`; expected pass or fail"), "{}", ended.log);
}

#[test]
fn a_race_without_a_result_is_an_error_and_no_outcome() {
    for status in ["2", "130"] {
        let ended = Job::fake(&[], status).run();
        assert_eq!((ended.status, ended.outcome()), (2, ""), "{}", ended.log);
        assert!(ended.log.contains(&format!("exit status {status}, without a result")));
        assert!(!ended.gh.contains("comments"), "{}", ended.gh);
    }
}

#[test]
fn there_is_a_comment_only_on_a_pull_request_and_if_it_is_wanted() {
    for (job, comments) in [
        (Job::fake(&[], "0"), true),
        (Job::fake(&[("comment", "false")], "0"), false),
        (Job { pull_request: "", ..Job::fake(&[], "0") }, false),
    ] {
        let ended = job.run();
        assert_eq!((ended.status, ended.gh.contains("issues")), (0, comments), "{}", ended.log);
        assert!(ended.summary.contains("| a row of the table |"), "{}", ended.summary);
    }
}

#[test]
fn a_comment_that_is_refused_is_a_warning() {
    let job = Job::fake(&[], "0");
    job.program("bin/gh", "#!/bin/sh\nexit 1\n");
    let ended = job.run();
    assert_eq!(ended.status, 0, "{}", ended.log);
    assert!(ended.log.contains("::warning::regatta: cannot comment"), "{}", ended.log);
}

#[test]
fn a_long_table_is_cut_at_a_line() {
    let job = Job::fake(&[], "0");
    fs::write(job.path("long"), "").unwrap();
    let ended = job.run();
    assert_eq!(ended.status, 0, "{}", ended.log);
    assert!((50_000..65_000).contains(&ended.summary.chars().count()));
    let rows = ended.summary.lines().filter(|line| line.starts_with("| a"));
    assert!(rows.clone().count() > 2000 && rows.clone().all(|row| row == "| a row of the table |"));
    assert!(ended.summary.ends_with("too long for a comment; the rest is in the results.\n"));
}

#[test]
fn inputs_are_words_and_never_code() {
    let hostile = "a $(touch ran) `touch ran` 'x' \"y\"";
    let job = Job::fake(&[("base-dir", hostile), ("head-dir", "head")], "0");
    fs::create_dir(job.path(hostile)).unwrap();
    let options = format!("--contender 'a b' \"c $(touch {})\" d\\ e", job.path("ran").display());
    let job = job.with(&[("options", &options), ("rounds", "9 $(touch ran)")]);
    let ended = job.run();
    assert_eq!(ended.status, 0, "{}", ended.log);
    let ran = job.path("ran");
    assert!(!ran.exists() && !job.path("head/ran").exists());
    let arguments = job.text("arguments");
    let options = format!("<a b>\n<c $(touch {})>\n<d e>\n", ran.display());
    assert!(arguments.ends_with(&options), "{arguments}");
    assert!(arguments.contains("<--rounds>\n<9 $(touch ran)>\n"), "{arguments}");
    // The starter of base finds its directory.
    let starter = arguments.lines().find_map(|line| line.strip_prefix("<base=")).unwrap();
    let starter = starter.strip_suffix(" {port}>").unwrap();
    job.program(&format!("{hostile}/server"), "#!/bin/sh\npwd; echo \"port $1\"\n");
    let printed = Command::new(starter).arg("4000").output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.ends_with(&format!("{hostile}\nport 4000\n")), "{printed}");
}

#[test]
fn wrong_inputs_are_named() {
    for (inputs, expected) in [
        ([("head-dir", "nowhere")], "no directory `nowhere`"),
        ([("head", "./server")], "`./server` does not contain {port}"),
        ([("build", "exit 7")], "the build in `base` failed"),
        ([("name", "a\n::error::-->")], "the name `a%0A::error::-->` must have 1 to 60 letters"),
        ([("options", "'open")], "cannot be split into words"),
        ([("regatta", "./nothing")], "`./nothing` does not run"),
    ] {
        let ended = Job::fake(&inputs, "0").run();
        assert_eq!(ended.status, 2, "{inputs:?}: {}", ended.log);
        let error = ended.log.lines().find(|line| line.starts_with("::error::regatta: "));
        assert!(error.is_some_and(|line| line.contains(expected)), "{inputs:?}: {}", ended.log);
    }
}

#[test]
fn the_release_binary_is_downloaded_and_verified() {
    let job = Job::fake(&[("regatta", "")], "0");
    let pack = "mkdir -p release pack/regatta/bin && cp fake-regatta pack/regatta/bin/regatta &&
        tar -czf release/regatta-x86_64-linux.tar.gz -C pack regatta && cd release &&
        sha256sum regatta-x86_64-linux.tar.gz >regatta-x86_64-linux.tar.gz.sha256";
    let packed = Command::new("sh").args(["-c", pack]).current_dir(job.folder.path()).status();
    assert!(packed.unwrap().success());
    let ended = job.run();
    assert_eq!((ended.status, ended.outcome()), (0, "passed"), "{}", ended.log);
    assert!(ended.log.contains("regatta 9.9.9"), "{}", ended.log);
    assert!(ended.gh.contains("gh release download v1.2.3 --repo them/regatta"), "{}", ended.gh);
    let ended = job.with(&[("version", "v1.0.0")]).run();
    assert!(ended.gh.contains("gh release download v1.0.0 --repo"), "{}", ended.gh);

    let job = Job::fake(&[("regatta", "")], "0");
    Command::new("sh").args(["-c", pack]).current_dir(job.folder.path()).status().unwrap();
    fs::write(job.path("release/regatta-x86_64-linux.tar.gz"), "other").unwrap();
    let ended = job.run();
    assert_eq!((ended.status, ended.outcome()), (2, ""), "{}", ended.log);
    assert!(ended.log.contains("is damaged"), "{}", ended.log);
}

/// An expression in a script is code injection: its value becomes part of the script.
#[test]
fn scripts_contain_no_expressions_and_every_input_is_used() {
    let action = action();
    let mut used = String::new();
    for step in action["runs"]["steps"].as_vec().unwrap() {
        assert!(!string(&step["run"]).contains("${{"), "{step:?}");
        for (_, value) in step["env"].as_hash().unwrap() {
            used += &format!("{} ", string(value));
        }
    }
    for (name, input) in action["inputs"].as_hash().unwrap() {
        let name = string(name);
        assert!(used.contains(&format!("inputs.{name} ")), "{name} is not used");
        let required = input["required"].as_bool() == Some(true);
        assert!(required || input["default"].as_str().is_some(), "{name} has no default");
        assert!(!string(&input["description"]).is_empty());
    }
}
