//! Records the git revision in the binary, so that a result says what was measured, and looks for the programs that
//! tests need.

use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // Outside of a checkout there is no revision to tell.
    let revision = git(&["describe", "--always", "--dirty"]).unwrap_or_default();
    println!("cargo::rustc-env=REGATTA_REVISION={revision}");
    let version = env!("CARGO_PKG_VERSION");
    let version = match revision.as_str() {
        "" => version.to_owned(),
        revision => format!("{version} ({revision})"),
    };
    println!("cargo::rustc-env=REGATTA_VERSION={version}");
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    prerequisites();
}

/// Programs that some tests need. A test whose program is missing is ignored, with the reason.
fn prerequisites() {
    regatta_testkit::prerequisite::programs(&[
        "chromium",
        "chromium-browser",
        "curl",
        "dpkg-deb",
        "google-chrome",
        "ip",
        "kubectl",
        "mdbook",
        "nats-server",
        "nginx",
        "node",
        "openssl",
        "python3",
        "redis-server",
        "sshd",
    ]);
}
