//! Commands of the documentation are run, or their arguments are checked. `page` describes the words after the language of a code block
//! that say how, and `bin/regatta` how commands are shortened.

use super::{
    page::{Page, Step},
    pages, root,
    scene::{Ended, Scene},
};
use regatta_testkit::skip;
use regex::Regex;
use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Mutex, thread};

/// Programs that a machine may lack. A block that needs a missing one is not run; only its arguments are
/// checked.
const OPTIONAL: [&str; 11] = [
    "curl",
    "docker",
    "gh",
    "jq",
    "memcached",
    "nc",
    "node",
    "podman",
    "python3",
    "redis-cli",
    "redis-server",
];

/// What is done with commands.
#[derive(Clone, Copy, PartialEq)]
pub enum How {
    /// They are run.
    Run,
    /// Only their arguments are checked.
    Check,
}

/// Runs or checks the commands of all pages, and fails with what went wrong.
pub fn play_all(how: How) {
    let (pages, wrong) = (Mutex::new(pages()), Mutex::new(Vec::new()));
    let next = || pages.lock().unwrap().pop();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(path) = next() {
                    let found = played(&path, how);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Pages that are played at the same time.
const THREADS: usize = 2;

/// Runs or checks the commands of a page. Returns what went wrong.
pub fn played(path: &Path, how: How) -> Vec<String> {
    let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let page = Page::read(path);
    let (mut scene, mut wrong, mut output) = (Scene::new(), Vec::new(), None::<String>);
    // The ports of servers that are not installed.
    let mut absent = Vec::<&str>::new();
    for (line, step) in &page.steps {
        let mut fail = |why: String| wrong.push(format!("{name}:{line}: {why}"));
        match step {
            Step::Write { name, text } => {
                // Commands in the files of a pipeline are commands, too.
                if name.ends_with(".yml") {
                    check(text, &mut scene).into_iter().for_each(&mut fail);
                }
                scene.write(name, text);
            }
            Step::Check { commands, why } => {
                if how == How::Run {
                    eprintln!("only checked: {name}:{line}: {why}");
                }
                check(commands, &mut scene).into_iter().for_each(&mut fail);
            }
            Step::Run { commands, .. } if how == How::Check && !prepares(commands) => {
                check(commands, &mut scene).into_iter().for_each(&mut fail);
            }
            Step::Serve { .. } | Step::Compare { .. } if how == How::Check => {}
            Step::Serve { command, port } => match missing(command) {
                Some(missing) => {
                    skip(&format!("{name}:{line}: {missing} is not installed"));
                    absent.push(port);
                }
                None => scene.serve(command, port).unwrap_or_else(&mut fail),
            },
            Step::Run { commands, raced, statuses } => {
                let absent = absent.iter().find(|port| commands.contains(*port));
                if let Some(missing) = missing(commands).or(absent.copied()) {
                    skip(&format!("{name}:{line}: {missing} is not there"));
                    check(commands, &mut scene).into_iter().for_each(&mut fail);
                    output = None;
                    continue;
                }
                let settings: &[_] = if *raced { &[("DOCS_RACED", "1")] } else { &[] };
                let ended = scene.run(commands, settings);
                if !ended.status.is_some_and(|status| statuses.contains(&status)) {
                    fail(format!("expected the exit status {statuses:?}, got {}", shown(&ended)));
                }
                output = Some(ended.stdout);
            }
            Step::Compare { output: expected } => {
                let difference = output.as_ref().and_then(|output| difference(expected, output));
                difference.into_iter().for_each(&mut fail);
            }
        }
    }
    for (line, code) in page.code.iter().filter(|(_, code)| is_whole(code)) {
        for why in check(code, &mut scene) {
            wrong.push(format!("{name}:{line}: {why}"));
        }
    }
    wrong.extend(scene.stop().into_iter().map(|why| format!("{name}: {why}")));
    wrong
}

/// Whether commands only write files, which the arguments of later commands name.
fn prepares(commands: &str) -> bool {
    let runs = OPTIONAL.iter().chain(&["regatta", "cargo", "scripts/"]);
    runs.into_iter().all(|name| !commands.contains(name))
}

/// Whether code within a text is a whole command.
fn is_whole(code: &str) -> bool {
    let is_example = Regex::new("[A-Z]{3}|…").unwrap().is_match(code);
    code.starts_with("regatta ") && !is_example
}

/// Returns a program that the commands need and that is missing.
fn missing(commands: &str) -> Option<&'static str> {
    let path = std::env::var("PATH").expect("PATH");
    let is_needed =
        |name: &&&str| Regex::new(&format!(r"(?m)(^|[|&;(] *){name} ")).unwrap().is_match(commands);
    let is_there = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    OPTIONAL.iter().filter(is_needed).find(|name| !is_there(name)).copied()
}

/// Checks the arguments of the `regatta` commands in a text without running them, and that named scripts
/// exist. Returns what is wrong.
fn check(commands: &str, scene: &mut Scene) -> Vec<String> {
    let mut wrong = Vec::new();
    let substituted = Regex::new(r"\$\([^)]*\)").unwrap();
    let behind = Regex::new(r" +(\||\|\||&&|&|>) .*| +&$").unwrap();
    for command in commands.replace("\\\n", " ").lines() {
        let command = substituted.replace_all(command.trim(), "1").into_owned();
        let command = command.trim_start_matches("- ").trim_start_matches("run: ");
        if command.starts_with("scripts/") {
            let script = command.split_whitespace().next().expect("a word");
            let is_program = fs::metadata(root().join(script))
                .is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
            if !is_program {
                wrong.push(format!("{script} is no program of the checkout"));
            }
        }
        if command.starts_with("regatta ") || command.starts_with("cargo run ") {
            let alone = behind.replace(command, "");
            let ended = scene.run(&alone, &[("DOCS_CHECK_ONLY", "1")]);
            if ended.status != Some(0) {
                wrong.push(format!("wrong arguments: {command}: {}", shown(&ended)));
            }
        }
    }
    wrong
}

/// Compares the shape of an output with the documented one: the same lines in the same order, except for
/// numbers, for spaces, and for lines that the documentation omits with `…`.
pub fn difference(expected: &str, output: &str) -> Option<String> {
    let number = Regex::new(r"\d[\d.,]*").unwrap();
    let shape = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        number.replace_all(&words.join(" "), "#").into_owned()
    };
    let mut lines = output.lines().map(shape);
    for line in expected.lines().filter(|line| !matches!(line.trim(), "" | "…")) {
        let wanted = shape(line);
        if !lines.any(|line| line == wanted) {
            return Some(format!("no line {wanted:?}, at its place, in the output:\n{output}"));
        }
    }
    None
}

fn shown(ended: &Ended) -> String {
    let status = ended.status.map_or("none: killed at the deadline".to_owned(), |s| s.to_string());
    format!("{status}\n{}{}", ended.stdout, ended.stderr)
}
