//! Tests that find out only while they run that the machine lacks something: they say so and return. If the
//! build can find it out, the test is ignored with the reason instead: see [`crate::prerequisite`].

use std::{env, fs::File, io::Write, thread};

/// Reports that the calling test is skipped: writes `skipped: TEST: why` to stderr, where the test harness does
/// not capture it, and appends the line to the file that `REGATTA_SKIPPED` names, if that is set. The test
/// then returns.
pub fn skip(why: &str) {
    let thread = thread::current();
    let line = format!("skipped: {}: {}\n", thread.name().unwrap_or("?"), why.trim());
    // A closed stderr is no reason to fail.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = env::var_os("REGATTA_SKIPPED") {
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
