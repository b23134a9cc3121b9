//! `scripts/package`, with the binary of the tests instead of a release build: the archive, the Debian package
//! and the image are installed in folders of their own and run.

use crate::support::regatta;
use regatta_testkit::skip;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that must succeed. Returns its output.
fn output(command: &mut Command) -> String {
    let ended = run(command);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?}: {}: {stderr}", ended.status);
    String::from_utf8(ended.stdout).unwrap()
}

/// The files of a release, in the folder `made`, and what the script printed.
struct Release {
    folder: TempDir,
    printed: String,
}

impl Release {
    fn new() -> Release {
        let folder = TempDir::new().unwrap();
        let mut script = Command::new(root().join("scripts/package"));
        script.arg("--binary").arg(env!("CARGO_BIN_EXE_regatta"));
        // The binary of the tests is large, and how well it is compressed is not tested.
        let printed =
            output(script.args(["--level", "1", "--out"]).arg(folder.path().join("made")));
        Release { folder, printed }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file whose name has this end.
    fn file(&self, end: &str) -> PathBuf {
        let names = fs::read_dir(self.path("made")).unwrap().map(|entry| entry.unwrap().path());
        let mut found = names.filter(|path| path.to_str().unwrap().ends_with(end));
        found.next().unwrap_or_else(|| panic!("no file *{end}: {}", self.printed))
    }
}

fn version() -> String {
    output(&mut regatta!("--version"))
}

/// Checks what is installed below `usr`: the binary runs, and has manual pages and completions.
fn assert_installed(usr: &Path) {
    let regatta = usr.join("bin/regatta");
    assert_eq!(output(Command::new(&regatta).arg("--version")), version());
    let help = output(Command::new(&regatta).arg("--help"));
    for name in ["race", "load", "capacity", "report", "serve", "hub", "shard"] {
        assert!(help.contains(&format!("  {name} ")), "{help}");
        let page = usr.join(format!("share/man/man1/regatta-{name}.1.gz"));
        let page = output(Command::new("gzip").arg("-dc").arg(page));
        assert!(page.contains(".TH") && page.contains(name), "{page}");
    }
    let script = usr.join("share/bash-completion/completions/regatta");
    let complete = "source \"$0\" && complete -p regatta";
    let printed = output(Command::new("bash").args(["-c", complete]).arg(script));
    assert!(printed.contains("_regatta"), "{printed}");
    for file in ["zsh/site-functions/_regatta", "fish/vendor_completions.d/regatta.fish"] {
        assert!(fs::read_to_string(usr.join("share").join(file)).unwrap().contains("capacity"));
    }
    for name in ["hub", "shard"] {
        let unit = usr.join(format!("lib/systemd/system/regatta-{name}.service"));
        let unit = fs::read_to_string(unit).unwrap();
        let start =
            format!("\nExecStart=/usr/bin/regatta {name} --config /etc/regatta/{name}.toml\n");
        assert!(unit.contains(&start) && unit.contains("\nType=notify\n"), "{unit}");
        assert!(usr.join(format!("lib/systemd/system/regatta-{name}.socket")).is_file());
    }
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(usr.join("share/doc/regatta").join(file).is_file(), "{file}");
    }
}

#[test]
fn the_files_of_a_release_install_and_run() {
    let release = Release::new();
    let archive = release.file("-linux.tar.gz");
    let sum = format!("{}.sha256", archive.file_name().unwrap().to_str().unwrap());
    output(Command::new("sha256sum").args(["--check", &sum]).current_dir(release.path("made")));
    fs::create_dir(release.path("unpacked")).unwrap();
    output(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(release.path("unpacked")));
    assert_installed(&release.path("unpacked/regatta"));
    debian(&release);
    image(&release);
}

/// Installs the package with dpkg into a root of its own, and removes it again.
fn debian(release: &Release) {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        assert!(release.printed.contains("not made: Debian package: "), "{}", release.printed);
        return skip("there is no dpkg-deb");
    }
    let package = release.file(".deb");
    let field = |name| output(Command::new("dpkg-deb").arg("-f").arg(&package).arg(name));
    assert_eq!(field("Package"), "regatta\n");
    assert_eq!(field("Version"), format!("{}\n", env!("CARGO_PKG_VERSION")));
    let files = output(Command::new("dpkg-deb").arg("-c").arg(&package));
    let foreign = files.lines().find(|line| !line.contains(" root/root "));
    assert_eq!(foreign, None, "every file belongs to root");
    let own = release.path("own");
    let admin = own.join("var/lib/dpkg");
    for folder in ["updates", "info", "triggers"] {
        fs::create_dir_all(admin.join(folder)).unwrap();
    }
    for file in ["status", "available"] {
        fs::write(admin.join(file), "").unwrap();
    }
    let dpkg = |args: &[&str]| {
        let mut command = Command::new("dpkg");
        command
            .arg(format!("--root={}", own.display()))
            .arg(format!("--log={}/log", own.display()));
        // The libraries of the test binary are not in that root.
        command.args(["--force-not-root", "--force-depends", "--force-bad-path"]).args(args);
        output(&mut command)
    };
    dpkg(&["-i", package.to_str().unwrap()]);
    assert!(fs::read_to_string(admin.join("status")).unwrap().contains("install ok installed"));
    assert_installed(&own.join("usr"));
    assert!(own.join("usr/share/doc/regatta/copyright").is_file());
    dpkg(&["-r", "regatta"]);
    assert!(!own.join("usr/bin/regatta").exists());
}

/// The image needs a static binary, which the one of the tests is not.
fn image(release: &Release) {
    let expected = "not made: container image: the binary is not static";
    assert!(release.printed.contains(expected), "{}", release.printed);
    let text = fs::read_to_string(root().join("Containerfile")).unwrap();
    for line in text.lines().filter_map(|line| line.strip_prefix("COPY ")) {
        let (from, to) = line.split_once(' ').expect("COPY FROM TO");
        assert!(release.path("made/regatta").join(from).exists(), "the archive has no {from}");
        assert!(to.starts_with("/usr/"), "{to}");
    }
}

#[test]
fn wrong_arguments_and_binaries_are_errors() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("made");
    for (args, expected) in [
        (["--binary", "/no/such/file"], "there is no program /no/such/file"),
        (["--binary", "/bin/true"], "prints no version; expected a regatta binary"),
        (["--other", "x"], "expected --binary FILE, --out DIR or --level N, found --other"),
    ] {
        let mut script = Command::new(root().join("scripts/package"));
        let ended = run(script.args(args).arg("--out").arg(&out));
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
        assert!(!out.exists(), "{args:?}");
    }
}

#[test]
fn the_changelog_begins_with_this_version() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let first = text.lines().find_map(|line| line.strip_prefix("## ")).expect("a version");
    assert!(first.starts_with(env!("CARGO_PKG_VERSION")), "{first}");
}
