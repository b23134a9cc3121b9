//! Debian packages that peers need: finds those that are missing and installs them.

use std::process::{Command, Stdio};

/// Returns the packages that are not installed; all of them if there is no dpkg.
pub fn missing(packages: &[String]) -> Vec<&str> {
    packages.iter().map(String::as_str).filter(|package| !is_installed(package)).collect()
}

fn is_installed(package: &str) -> bool {
    let output = Command::new("dpkg-query")
        .args(["-W", "-f=${db:Status-Status}", package])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    output.is_ok_and(|output| output.status.success() && output.stdout == b"installed")
}

/// The command that installs `packages`, as it is shown to the user.
pub fn shown(packages: &[&str]) -> String {
    format!("{} {}", APT_GET.join(" "), packages.join(" "))
}

const APT_GET: [&str; 5] = ["apt-get", "install", "--quiet=2", "--yes", "--no-install-recommends"];

/// Installs `packages`. If that fails, updates the package lists and tries again. The error is a
/// message for the user.
pub fn install(packages: &[&str]) -> Result<(), String> {
    let attempt = || run(&[&APT_GET[..], packages].concat());
    attempt().or_else(|_| run(&["apt-get", "update", "--quiet=2"]).and_then(|()| attempt()))
}

fn run(command: &[&str]) -> Result<(), String> {
    let with_sudo = [&["sudo", "-E"], command].concat();
    let command = if rustix::process::geteuid().is_root() { command } else { &with_sudo };
    let output = Command::new(command[0])
        .args(&command[1..])
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Only a race starts a peer, so the package must not start its service (see
        // invoke-rc.d(8); systemd starts it all the same).
        .env("RUNLEVEL", "1")
        .stdout(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", command[0]))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let first = why.lines().find(|line| line.starts_with("E:")).unwrap_or("");
    Err(format!("`{}` failed: {} {first}", command.join(" "), output.status))
}
