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
    fix_place();
    prerequisites();
}

/// Tests start this program thousands of times. Without optimization it has 250,000 relocations, which a
/// position-independent program processes at each start: almost half of the time that a start takes. Only where the C
/// compiler links a usual dynamic program.
fn fix_place() {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let is_static = features.split(',').any(|feature| feature == "crt-static");
    let is_usual = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is("PROFILE", "debug") && is_usual && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
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
