//! `.proto` files, on disk and in messages to other processes.

use super::*;
use prost_reflect::{
    prost::Message,
    prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet, UninterpretedOption},
};
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
    for path in [".", "..", "/", ""] {
        let why = Types::read(Path::new(path)).unwrap_err();
        assert!(why.contains("is not the name of a file"), "{path}: {why}");
    }
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
    assert!(arrived(b"").is_ok());
    assert!(arrived(b"\xff").is_err());
    assert!(arrived(&vec![0; (4 << 20) + 1]).unwrap_err().contains("expected at most 4194304"));
    // A file whose import is missing.
    assert!(arrived(&delimited(1, &[delimited(1, b"a"), delimited(3, b"b")].concat())).is_err());
    let types = types();
    assert!(types.expectation(GET, &[8]).is_err());
    assert!(types.expectation("/a/b", &[]).is_err());
}

fn of_text(text: &str) -> Result<Types, String> {
    compile(&[("a/b/m.proto", text)])
}

/// The library would panic at a reply, or when it reads the JSON of a message.
#[test]
fn entries_of_maps_are_not_written_by_hand() {
    for fields in ["", "string key = 1;", "M key = 1; M value = 2;", "string key = 1; M value = 2;"]
    {
        let entry = format!("message EEntry {{ option map_entry = true; {fields} }}");
        let text = format!("syntax = \"proto3\"; message M {{ {entry} repeated EEntry e = 1; }}");
        let why = of_text(&text).unwrap_err();
        assert!(why.contains("`map_entry`: it is not for files; write map<KEY, VALUE>"), "{why}");
    }
    assert!(of_text("syntax = \"proto3\"; message M { map<string, M> e = 1; }").is_ok());
}

#[test]
fn message_sets_are_refused() {
    let text = "message M { option message_set_wire_format = true; extensions 4 to max; }";
    let why = of_text(text).unwrap_err();
    assert!(why.contains("`message_set_wire_format`: it is not supported"), "{why}");
    let text = "message M { option message_set_wire_format = false; extensions 4 to max; }";
    assert!(of_text(text).is_ok());
}

/// The stack would overflow.
#[test]
fn values_of_options_inside_each_other_are_limited() {
    let of = |before: &str, times: usize, after: &str| {
        of_text(&format!(
            "import \"google/protobuf/descriptor.proto\";
             message R {{ optional R r = 1; optional string s = 2; repeated R rs = 3; }}
             extend google.protobuf.FileOptions {{ optional R r = 50000; }}
             option (r) = {{ {} s: \"}}}}{{{{\\\"{{\" {} }};",
            before.repeat(times),
            after.repeat(times)
        ))
    };
    for (before, after) in [("r {", "}"), ("r: <", ">"), ("rs: [{", "}]"), ("# {\n r {", "}")] {
        assert!(of(before, 40, after).is_ok(), "{before}");
        for times in [101, 600, 100_000] {
            let why = of(before, times, after).unwrap_err();
            assert!(why.contains("the option `r`: it has more than 100 values inside"), "{why}");
        }
    }
}

/// Descriptors of one message, changed, as another process sends them.
fn forged(change: impl FnOnce(&mut FileDescriptorSet)) -> Result<Types, String> {
    let text = "syntax = \"proto3\"; message M { map<string, M> e = 1; } service S { rpc E(M) returns (M); }";
    let mut set = FileDescriptorSet::decode(of_text(text).unwrap().set()).unwrap();
    change(&mut set);
    arrived(&set.encode_to_vec())
}

fn arrived(bytes: &[u8]) -> Result<Types, String> {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let sent = serde_json::to_string(&BASE64_STANDARD.encode(bytes)).unwrap();
    serde_json::from_str::<Types>(&sent).map_err(|error| error.to_string())
}

/// The library would panic, and a stack overflow could not even be caught.
#[test]
fn forged_descriptors_are_refused() {
    let refused = |change: &dyn Fn(&mut FileDescriptorSet), part: &str| {
        let why = forged(change).unwrap_err();
        assert!(why.contains(part), "{why}");
    };
    let syntax = |text: &str| forged(|set| set.file[0].syntax = Some(text.into()));
    assert!(syntax("proto2").is_ok());
    assert!(syntax("").is_ok());
    for text in ["editions", "proto4", &"x".repeat(1_000_000)] {
        let why = syntax(text).unwrap_err();
        assert!(why.contains("expected proto2 or proto3") && why.len() < 500, "{why}");
    }
    let option = |aggregate_value: String| UninterpretedOption {
        aggregate_value: Some(aggregate_value),
        ..UninterpretedOption::default()
    };
    for times in [101, 3_000, 100_000] {
        let value = format!("{}{}", "r {".repeat(times), "}".repeat(times));
        refused(
            &|set| {
                let options = set.file[0].options.get_or_insert_default();
                options.uninterpreted_option.push(option(value.clone()));
            },
            "more than 100 values inside each other",
        );
    }
    type Change = dyn Fn(&mut Vec<FieldDescriptorProto>);
    let changes: [&Change; 8] = [
        &|fields| fields.clear(),
        &|fields| drop(fields.pop()),
        &|fields| fields.push(fields[1].clone()),
        // A float, a message, and no type.
        &|fields| fields[0].r#type = Some(2),
        &|fields| (fields[0].r#type, fields[0].type_name) = (Some(11), Some(".M".into())),
        &|fields| fields[0].r#type = None,
        // Repeated.
        &|fields| fields[0].label = Some(3),
        &|fields| fields[1].number = Some(3),
    ];
    for change in changes {
        refused(
            &|set| change(&mut set.file[0].message_type[0].nested_type[0].field),
            "the message EEntry: `map_entry` with other fields",
        );
    }
    refused(
        &|set| {
            let options = set.file[0].message_type[0].options.get_or_insert_default();
            options.message_set_wire_format = Some(true);
        },
        "the message M: `message_set_wire_format` is not supported",
    );
}

/// 4 MiB of descriptors would take 500 MiB.
#[test]
fn definitions_are_limited() {
    let of = |messages: i32| {
        let message =
            |i: i32| DescriptorProto { name: Some(format!("M{i}")), ..DescriptorProto::default() };
        forged(|set| set.file[0].message_type.extend((0..messages).map(message)))
    };
    assert!(of(1_000).is_ok());
    assert!(of(50_000).unwrap_err().contains("have more than 50000 messages, fields,"));
    let file = delimited(1, &[0x22, 0].repeat(2_000_000));
    let why = arrived(&file).unwrap_err();
    assert!(why.contains("more values than expected: decoded, it takes more than 64 MiB"), "{why}");
}

#[test]
fn descriptors_that_were_changed_on_the_way_cause_no_panic() {
    use rand::{Rng, SeedableRng, rngs::StdRng};
    let text = "syntax = \"proto2\"; package p; message M { map<string, M> e = 1; oneof o { E f = 2; M h = 3; }
                repeated int32 n = 4 [packed = true]; extensions 9 to 20; optional group G = 5 {} }
                enum E { A = 1; B = 2; } extend M { optional E x = 9; } service S { rpc E(M) returns (M); }";
    let set = of_text(text).unwrap().set().to_vec();
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..500 {
        let mut changed = set.clone();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..changed.len());
            changed[at] = match random.random_range(0..3) {
                0 => random.random(),
                1 => changed[at].wrapping_add(1),
                _ => changed[random.random_range(0..set.len())],
            };
        }
        let Ok(types) = arrived(&changed) else { continue };
        let Ok(bytes) = types.reply("/p.S/E", r#"{"e": {"a": {"n": [1]}}}"#) else { continue };
        let expectation = types.expectation("/p.S/E", &bytes).unwrap();
        let _ = (expectation.in_words(), expectation.fault(b"\x0a\x05\x0a\x01a\x12\0"));
    }
}

#[test]
fn long_names_are_cut_in_errors() {
    let name = "x".repeat(400_000);
    for text in [
        format!("syntax = \"proto3\"; message A {{ {name} b = 1; }}"),
        format!("syntax = \"proto3\"; option ({name}) = 1;"),
        format!("syntax = \"proto3\"; option {name} = 1;"),
    ] {
        let why = of_text(&text).unwrap_err();
        assert!(why.len() < 2_000, "{} bytes", why.len());
    }
    let why = types().message(GET, &format!("{{\"{name}\": 1}}")).unwrap_err();
    assert!(why.len() < 2_000, "{} bytes", why.len());
    let why = types().message(GET, &format!("{{\"shade\": \"{name}\"}}")).unwrap_err();
    assert!(why.len() < 2_000, "{} bytes", why.len());
}
