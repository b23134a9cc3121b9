//! `.proto` files, on disk and in messages to other processes.

use super::*;
use std::{fs, os::unix::fs::FileTypeExt, process::Command};

fn compile(files: &[(&str, &str)]) -> Result<Types, String> {
    Types::compile("m.proto", &[Path::new("a/b"), Path::new("a"), Path::new("")], &mut |path| {
        find(files, path)
    })
}

#[test]
fn imports_are_looked_up_from_the_folder_of_the_file_upwards() {
    let main = r#"syntax = "proto3"; import "one.proto"; import "b/two.proto"; service S { rpc M(A) returns (B); }"#;
    let one = r#"syntax = "proto3"; import "three.proto"; message A { C c = 1; }"#;
    let two = r#"syntax = "proto3"; message B { int32 n = 1; }"#;
    let three = r#"syntax = "proto3"; message C { int32 n = 1; }"#;
    let files = [
        ("a/b/m.proto", main),
        ("a/b/one.proto", one),
        ("a/b/two.proto", two),
        ("three.proto", three),
    ];
    let types = compile(&files).unwrap();
    assert_eq!(types.message("/S/M", r#"{"c": {"n": 7}}"#), Ok(vec![0x0a, 2, 8, 7]));
    assert_eq!(types.reply("/S/M", r#"{"n": 7}"#), Ok(vec![8, 7]));
}

#[test]
fn mistakes_in_files_are_named_with_their_place() {
    let of = |text: &str| compile(&[("a/b/m.proto", text)]).unwrap_err();
    assert!(
        of("syntax = \"proto3\";\nmessage {").starts_with("m.proto:2:9: "),
        "{}",
        of("message {")
    );
    assert!(of("syntax = \"proto3\";\nmessage A { B b = 1; }").contains("m.proto:2:13: "));
    let missing = of("import \"x.proto\";");
    assert_eq!(missing, "m.proto imports \"x.proto\": no a/b/x.proto; no a/x.proto; no x.proto");
    assert!(of("import \"m.proto\";").contains("cycle"));
    assert!(
        of("edition = \"2023\";").starts_with("m.proto:1:1: "),
        "{}",
        of("edition = \"2023\";")
    );
    assert_eq!(compile(&[]).unwrap_err(), "no a/b/m.proto; no a/m.proto; no m.proto");
}

#[test]
fn files_and_their_number_have_limits() {
    let long = format!("// {}", "a".repeat(3 << 20));
    let files = [("m.proto", &*format!("import \"n.proto\"; {long}")), ("n.proto", &*long)];
    assert!(compile(&files).unwrap_err().contains("exceed 4 MiB or 500 files"));
    let chain = |files: usize| {
        let text = |i: usize| match i + 1 < files {
            true => format!("syntax = \"proto3\"; import \"f{}.proto\";", i + 1),
            false => "syntax = \"proto3\";".to_owned(),
        };
        Types::compile("f0.proto", &[Path::new("")], &mut |path| {
            let name = path.file_stem().unwrap().to_string_lossy()[1..].to_owned();
            Ok(text(name.parse().unwrap()).into_bytes())
        })
    };
    assert!(chain(500).is_ok());
    assert!(chain(501).unwrap_err().contains("exceed 4 MiB or 500 files"));
}

#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| Types::read(&folder.path().join(name)).unwrap_err();
    let fifo = folder.path().join("fifo.proto");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    assert!(read("fifo.proto").contains("expected a file of at most 4 MiB"));
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.proto")).unwrap();
    assert!(read("zero.proto").contains("expected a file of at most 4 MiB"));
    fs::write(folder.path().join("long.proto"), vec![b' '; (4 << 20) + 1]).unwrap();
    assert!(read("long.proto").contains("expected a file of at most 4 MiB"));
    fs::write(folder.path().join("m.proto"), "import \"fifo.proto\";").unwrap();
    assert!(read("m.proto").contains("m.proto imports \"fifo.proto\": "));
    fs::write(folder.path().join("bytes.proto"), b"\xff").unwrap();
    assert!(read("bytes.proto").contains("is not valid UTF-8"));
    assert!(read("").contains("cannot read"));
}

#[test]
fn types_arrive_in_another_process() {
    let types = types();
    let sent = serde_json::to_string(&types).unwrap();
    let arrived: Types = serde_json::from_str(&sent).unwrap();
    assert_eq!(types, arrived);
    assert_eq!(arrived.reply(GET, r#"{"id": 7}"#), Ok(vec![8, 7]));
    let expectation = arrived.expectation(GET, &[8, 7]).unwrap();
    assert_eq!(expectation.fault(&[8, 7]), None);
    assert!(expectation.fault(&[8, 6]).is_some());
}

#[test]
fn wrong_types_of_another_process_are_refused() {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let arrived = |bytes: &[u8]| {
        let sent = serde_json::to_string(&BASE64_STANDARD.encode(bytes)).unwrap();
        serde_json::from_str::<Types>(&sent).map_err(|error| error.to_string())
    };
    assert!(arrived(b"").is_ok());
    assert!(arrived(b"\xff").is_err());
    assert!(arrived(&vec![0; (4 << 20) + 1]).unwrap_err().contains("expected at most 4194304"));
    // A file whose import is missing.
    assert!(arrived(&delimited(1, &[delimited(1, b"a"), delimited(3, b"b")].concat())).is_err());
    let types = types();
    assert!(types.expectation(GET, &[8]).is_err());
    assert!(types.expectation("/a/b", &[]).is_err());
}
