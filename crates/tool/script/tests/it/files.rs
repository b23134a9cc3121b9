//! Workload files of every protocol: the examples can be read, and their text needs no other file.

use regatta_script::{CompileOptions, Destination, Workload};
use std::path::Path;

fn bytes(workload: &Workload) -> Vec<u8> {
    let order = CompileOptions {
        seed: 1,
        pipeline: 1,
        place: Destination::default(),
        ..CompileOptions::default()
    };
    let compiled = workload.compile(&order).unwrap();
    compiled.script().requests(0, compiled.script().period().request).to_vec()
}

#[test]
fn reads_the_examples_and_recompiles_them_from_their_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../workloads");
    let mut protocols = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let workload = Workload::read(&path).unwrap();
        let text = workload.text().unwrap();
        let again = Workload::from_text(text, workload.name()).unwrap();
        assert_eq!((workload.name(), Some(text)), (again.name(), again.text()));
        assert!(bytes(&workload) == bytes(&again), "{}", path.display());
        protocols.push(workload.protocol().name);
    }
    // WebSocket has no workload files.
    for row in regatta_script::dialects::ROWS.iter().filter(|row| row.name != "websocket") {
        assert!(protocols.contains(&row.name), "no example of the protocol {}", row.name);
    }
}

#[test]
fn reads_the_examples_of_the_documentation() {
    let pages = [
        include_str!("../../../../../docs/src/reference/workload-files.md"),
        include_str!("../../../../../docs/src/reference/grpc.md"),
    ];
    let page = pages.concat();
    let proto = page.split("```proto file=items.proto\n").nth(1).unwrap();
    let (proto, _) = proto.split_once("```").unwrap();
    let blocks = page.split("```toml ").skip(1).filter_map(|part| part.split_once("```"));
    let files = blocks.filter_map(|(block, _)| Some(block.split_once('\n')?.1));
    let mut protocols = Vec::new();
    for text in files {
        let more = if text.contains("passwords.txt") {
            "[lines]\n'passwords.txt' = ['x']".to_owned()
        } else if text.contains("items.proto") {
            format!("[files]\n'items.proto' = '''{proto}'''")
        } else {
            String::new()
        };
        let text = format!("{text}\n{more}");
        let workload = Workload::from_text(&text, "mine").unwrap();
        assert!(!bytes(&workload).is_empty());
        protocols.push(workload.protocol().name);
    }
    assert_eq!(protocols, ["line", "http", "memcached", "redis", "grpc"]);
}

#[test]
fn keeps_named_files_in_the_text_of_the_workload() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(folder.path().join("text.json"), "{\"a\": 1}\n").unwrap();
    std::fs::write(folder.path().join("bytes"), b"\xff\x00").unwrap();
    let text = "protocol='http'\n[[request]]\npath='/'\nbody_file='text.json'\n\
                [[request]]\npath='/'\nbody_file='bytes'";
    std::fs::write(&path, text).unwrap();
    let file = Workload::read(&path).unwrap();
    drop(folder);
    let again = Workload::from_text(file.text().unwrap(), "mine").unwrap();
    assert!(bytes(&file) == bytes(&again), "{:?}", again.text());
    assert!(bytes(&file).windows(4).any(|four| four == b"\n\xff\x00G"));
}

#[test]
fn finds_built_in_workloads_by_name() {
    for workload in Workload::built_in() {
        let parsed = Workload::parse(workload.name()).unwrap();
        assert_eq!(parsed.name(), workload.name());
        assert_eq!(parsed.protocol().name, workload.protocol().name);
    }
    assert!(Workload::parse("triple").is_none());
}

#[test]
fn a_name_has_at_most_a_hundred_characters() {
    for (length, is_taken) in [(1, true), (100, true), (101, false)] {
        let name = "a".repeat(length);
        let text = format!("name='{name}'\nprotocol='line'\n[[request]]\nsend='a'\nexact='b'");
        assert_eq!(Workload::from_text(&text, "mine").is_ok(), is_taken, "{length}");
    }
}
