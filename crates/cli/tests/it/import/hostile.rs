//! Entries are written by others: their names and texts end no string and no word, and links lead nowhere.

use super::{Place, copy};
use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    process::Command,
};

#[test]
fn symbolic_links_are_not_followed() {
    let place = Place::new();
    let at = |name: &str| place.path("checkout").join(name);
    place.write("elsewhere/meta.json", &place.read("checkout/frameworks/plain/meta.json"));
    place.write("elsewhere/Dockerfile", "FROM scratch\n");
    symlink(place.path("elsewhere"), at("frameworks/linked")).unwrap();
    for (name, file) in [("meta-linked", "meta.json"), ("file-linked", "Dockerfile")] {
        copy(&at("frameworks/plain"), &at("frameworks").join(name));
        let file = at("frameworks").join(name).join(file);
        fs::remove_file(&file).unwrap();
        symlink(place.path("elsewhere").join(file.file_name().unwrap()), file).unwrap();
    }
    for folder in ["data/static", "certs"] {
        fs::remove_dir_all(at(folder)).unwrap();
        symlink("/etc", at(folder)).unwrap();
    }
    let ended = place.import(&["checkout"]);
    for expected in [
        "left out: linked: it is not a folder but a symbolic link\n",
        "left out: meta-linked: its meta.json is not a file of the checkout\n",
        "left out: file-linked: it has no Dockerfile, so it is not a single container\n",
        "left out: the mount /data/static: data/static is a symbolic link; ",
        "left out: the mount /certs: certs is a symbolic link; ",
    ] {
        assert!(ended.stdout.contains(expected), "{expected:?} in {}", ended.stdout);
    }
    let manifest = place.read("peers/arena-plain/manifest.toml");
    assert!(manifest.contains("/data/dataset.json") && !manifest.contains("/certs"), "{manifest}");
    assert!(!place.path("peers/arena-linked").exists());
}

#[test]
fn names_cannot_leave_their_folder_or_their_word() {
    let place = Place::new();
    let names = [
        "a b",
        "a;touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "-f",
        "a'b",
        "a\nb",
        "..hidden",
    ];
    for name in names {
        let folder = place.path("checkout/frameworks").join(name);
        copy(&place.path("checkout/frameworks/plain"), &folder);
    }
    let ended = place.import(&["checkout"]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(
        ended.stdout.matches("its name cannot be that of an image").count(),
        8,
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("left out: a b: its name"),
        "the newline is not printed: {}",
        ended.stdout
    );
    assert!(!ended.stdout.contains('\u{1b}'), "{:?}", ended.stdout);
    let peers = fs::read_dir(place.path("peers")).unwrap().count();
    assert_eq!(peers, 2);
}

#[test]
fn the_setup_command_has_the_path_of_the_checkout_as_one_word() {
    let place = Place::new();
    let strange = "it's $(touch pwned) `touch pwned` \"x\" ;";
    fs::rename(place.path("checkout"), place.path(strange)).unwrap();
    assert_eq!(place.import(&[strange, "--only", "plain"]).code(), 0);
    let manifest: toml::Table =
        toml::from_str(&place.read("peers/arena-plain/manifest.toml")).unwrap();
    let setup = manifest["setup"][0].as_str().unwrap();
    // An engine that prints its words, one a line.
    place.write("bin/podman", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
    fs::set_permissions(place.path("bin/podman"), Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
    let mut shell = Command::new("sh");
    shell.args(["-c", setup]).env("PATH", path).current_dir(place.path("peers"));
    let printed = shell.output().unwrap();
    let context = fs::canonicalize(place.path(strange)).unwrap().join("frameworks/plain");
    let expected = format!("build\n--tag\nlocalhost/arena-plain\n{}\n", context.display());
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), expected);
    assert!(!place.path("peers/pwned").exists());
}

#[test]
fn a_huge_or_senseless_meta_json_is_left_out() {
    let place = Place::new();
    let meta = "checkout/frameworks/plain/meta.json";
    for (text, expected) in [
        ("x".repeat(70_000), "its meta.json has more than 65536 bytes"),
        ("[]".into(), "its meta.json cannot be understood: "),
        ("{\"tests\": []}".into(), "its meta.json has 0 tests; expected 1 to 100"),
        (format!("{{\"tests\": [{}\"x\"]}}", "\"x\",".repeat(100)), "its meta.json has 101 tests"),
    ] {
        place.write(meta, &text);
        let ended = place.import(&["checkout", "--only", "plain"]);
        assert_eq!(ended.code(), 1, "{ended:?}");
        assert!(ended.stdout.contains(&format!("left out: plain: {expected}")), "{}", ended.stdout);
    }
}
