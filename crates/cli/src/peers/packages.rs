//! Debian packages that peers need: which are not installed, and how they are.

use std::process::{Command, Stdio};

/// Those that are not installed; all of them where there is no dpkg to ask.
pub fn lacking(packages: &[String]) -> Vec<&str> {
    packages.iter().map(String::as_str).filter(|package| !is_installed(package)).collect()
}

fn is_installed(package: &str) -> bool {
    let asked = Command::new("dpkg-query")
        .args(["-W", "-f=${db:Status-Status}", package])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    asked.is_ok_and(|told| told.status.success() && told.stdout == b"installed")
}

/// The command that installs them, as it is shown.
pub fn shown(packages: &[&str]) -> String {
    format!("{} {}", APT_GET.join(" "), packages.join(" "))
}

const APT_GET: [&str; 5] = ["apt-get", "install", "--quiet=2", "--yes", "--no-install-recommends"];

/// Installs them; fetches the package lists if they do not know the packages. The error is a
/// sentence.
pub fn install(packages: &[&str]) -> Result<(), String> {
    let attempt = || run(&[&APT_GET[..], packages].concat());
    attempt().or_else(|_| run(&["apt-get", "update", "--quiet=2"]).and_then(|()| attempt()))
}

fn run(command: &[&str]) -> Result<(), String> {
    let with_sudo = [&["sudo", "-E"], command].concat();
    let command = if rustix::process::geteuid().is_root() { command } else { &with_sudo };
    let told = Command::new(command[0])
        .args(&command[1..])
        .env("DEBIAN_FRONTEND", "noninteractive")
        // A peer is started by its race alone: a package's service is not (see invoke-rc.d(8);
        // systemd starts it all the same).
        .env("RUNLEVEL", "1")
        .stdout(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", command[0]))?;
    if told.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&told.stderr);
    let first = why.lines().find(|line| line.starts_with("E:")).unwrap_or("");
    Err(format!("`{}` failed: {} {first}", command.join(" "), told.status))
}
