use super::*;
use tempfile::TempDir;

/// Creates a folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// A manifest with `more` at its end.
pub(crate) fn manifest(name: &str, more: &str) -> String {
    format!(
        "name = \"{name}\"\nabout = \"x\"\nworkloads = [\"double\"]\n\
         start = [\"sh\", \"-c\", \"serve {{port}} {{cores}}\"]\n{more}"
    )
}

#[test]
fn finds_the_manifests_of_a_folder_in_order() {
    let peers = folder(&[
        ("go/manifest.toml", &manifest("go", "")),
        ("bun/manifest.toml", &manifest("bun", "")),
        ("node/README.md", "no manifest"),
        ("loose.toml", "neither"),
    ]);
    let found = Contender::find_all(peers.path()).unwrap();
    let names: Vec<&str> = found.iter().map(|one| one.manifest.name.as_str()).collect();
    assert_eq!(names, ["bun", "go"]);
    assert!(found[0].dir.ends_with("bun"));
}

#[test]
fn errors_name_the_wrong_or_duplicate_manifest() {
    let wrong = folder(&[("go/manifest.toml", "name = 1")]);
    let error = Contender::find_all(wrong.path()).unwrap_err().to_string();
    assert!(error.contains("go/manifest.toml: "), "{error}");
    let two = folder(&[
        ("a/manifest.toml", &manifest("same", "")),
        ("b/manifest.toml", &manifest("same", "")),
    ]);
    let error = Contender::find_all(two.path()).unwrap_err().to_string();
    assert!(error.contains("b/manifest.toml: its name \"same\" is also that of"), "{error}");
    let error = Contender::find_all(Path::new("/no/peers")).unwrap_err().to_string();
    assert!(error.starts_with("/no/peers: "), "{error}");
}

#[test]
fn a_missing_program_is_reported_with_the_remedy() {
    let check = |text: String| {
        let peers = folder(&[("x/manifest.toml", &text)]);
        Contender::read(&peers.path().join("x/manifest.toml")).unwrap().missing()
    };
    assert_eq!(check(manifest("x", "needs = [\"sh\"]")), None);
    let absent = check(manifest("x", "needs = [\"sh\", \"no-such-compiler\"]"));
    assert_eq!(absent.unwrap(), "not on PATH: no-such-compiler; install it");
    let unbuilt = manifest("x", "setup = [\"make\"]").replace("\"sh\"", "\"build/x\"");
    let expected = "not built yet; run `regatta peers install x`";
    assert_eq!(check(unbuilt).unwrap(), expected);
    assert_eq!(check(manifest("x", "").replace("\"sh\"", "\"{regatta}\"")), None);
}

#[test]
fn the_version_is_the_first_line_of_the_output() {
    let version = |command: &str| {
        let text = manifest("x", &format!("version = [\"sh\", \"-c\", \"{command}\"]"));
        let peers = folder(&[("x/manifest.toml", &text)]);
        Contender::read(&peers.path().join("x/manifest.toml")).unwrap().version()
    };
    assert_eq!(version("echo go1.26; echo more").as_deref(), Some("go1.26"));
    assert_eq!(version("printf 'libev\\\\t 4.33 \\\\n'").as_deref(), Some("libev 4.33"));
    assert_eq!(version("exit 1"), None);
}

#[test]
fn a_version_followed_by_pages_of_text_is_read_without_delay() {
    let pages = "echo v2; i=0; while [ $i -lt 9000 ]; do echo 0123456789abcdef; i=$((i+1)); done";
    let text = manifest("x", &format!("version = [\"sh\", \"-c\", \"{pages}\"]"));
    let peers = folder(&[("x/manifest.toml", &text)]);
    let contender = Contender::read(&peers.path().join("x/manifest.toml")).unwrap();
    let began = Instant::now();
    assert_eq!(contender.version().as_deref(), Some("v2"));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn lines_of_all_sources_are_counted() {
    let peers = folder(&[
        ("x/manifest.toml", &manifest("x", "source = [\"a.js\", \"../y/b.py\"]")),
        ("x/a.js", "// no\nyes\nyes\n"),
        ("y/b.py", "# no\nyes\n"),
        ("z/manifest.toml", &manifest("z", "")),
    ]);
    let lines = |name: &str| {
        let path = peers.path().join(name).join("manifest.toml");
        Contender::read(&path).unwrap().lines_of_code("double").unwrap()
    };
    assert_eq!(lines("x"), Some(3));
    assert_eq!(lines("z"), None);
}
