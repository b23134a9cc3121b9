//! A workload that is sent to another process compiles there into the same bytes and the same checks.

use regatta_script::{
    CompileOptions, Compiled, Destination, Workload,
    dialects::adapters,
    dialects::http::{
        Content, Expected, Field, HttpAsks, HttpRequest, HttpWorkload, Is, Member, Status, Value,
        rules,
    },
};

fn sent(workload: &Workload) -> Workload {
    let line = serde_json::to_string(workload).unwrap();
    assert!(!line.contains('\n'));
    serde_json::from_str(&line).unwrap()
}

fn compiled(workload: &Workload) -> Compiled {
    let place = Destination { host: "h:1", path: None, closes: false, timeout: None };
    workload
        .compile(&CompileOptions { seed: 7, pipeline: 3, place, ..CompileOptions::default() })
        .unwrap()
}

fn assert_arrives(workload: &Workload) {
    let (here, there) = (compiled(workload), compiled(&sent(workload)));
    let (one, other) = (here.script(), there.script());
    assert_eq!(one.count(), other.count());
    for i in 0..one.count() + 3 {
        assert_eq!(one.request(i), other.request(i), "{} {i}", workload.name());
        assert_eq!(one.reply(i), other.reply(i), "{} {i}", workload.name());
    }
    // This includes everything that decides how replies are checked.
    assert_eq!(format!("{workload:?}"), format!("{:?}", sent(workload)));
    assert_eq!(workload.name(), sent(workload).name());
}

#[test]
fn built_in_workloads_arrive_unchanged() {
    for workload in Workload::built_in() {
        assert_arrives(&workload);
        let derived = [workload.echoed(), workload.with_n(77)];
        let adapted = adapters().filter_map(|adapter| workload.adapted(adapter));
        derived.into_iter().flatten().chain(adapted).for_each(|workload| assert_arrives(&workload));
        if let Some((canned, _)) = workload.canned(Destination::default()) {
            assert_arrives(&canned);
        }
    }
}

#[test]
fn workload_files_arrive_with_the_files_they_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("words"), "one\ntwo\n").unwrap();
    std::fs::write(folder.path().join("raw"), b"\xff\x00\n").unwrap();
    let read = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Workload::read(&path).unwrap()
    };
    let lines = read(
        "lines.toml",
        "protocol='line'\n[[request]]\nsend='{w=line:words} {n=int:1..9}'\nexact='{w} {n*2}'\n\
         [[request]]\nweight=3\nsend='b'\nregex='[a-z]+'\n[[request]]\nsend='c'\nprefix='d'\n",
    );
    let http = read(
        "http.toml",
        "protocol='http'\nname='mine'\n[[request]]\nmethod='POST'\npath='/a'\nbody_file='raw'\n",
    );
    for workload in [lines, http] {
        assert_arrives(&workload);
        assert_arrives(&workload.echoed().unwrap());
    }
    let cache = "protocol='memcached'\n[[request]]\nset='k:{line:words}'\nvalue='{hex:9}'\n\
                 [[request]]\nget='k:one'";
    assert_arrives(&read("cache.toml", cache));
    std::fs::create_dir(folder.path().join("protos")).unwrap();
    let proto = "syntax = 'proto3'; import 'b.proto'; service S { rpc M(B) returns (B); }";
    std::fs::write(folder.path().join("protos/a.proto"), proto).unwrap();
    let proto = "syntax = 'proto3'; message B { map<string, int32> n = 1; }";
    std::fs::write(folder.path().join("b.proto"), proto).unwrap();
    let calls = "protocol='grpc'\nproto='protos/a.proto'\n[[request]]\npath='/S/M'\n\
                 message={n={a=7}}\nexpect={n={a=8}}";
    let calls = read("calls.toml", calls);
    assert_arrives(&calls);
    let again = Workload::from_text(calls.text().unwrap(), "calls").unwrap();
    assert_eq!(format!("{calls:?}"), format!("{again:?}"));
}

#[test]
fn requests_from_flags_arrive_with_their_expected_replies() {
    let member = |pointer: &str, is| Member { pointer: pointer.into(), is };
    let contents = [
        Content::Any,
        Content::Text,
        Content::Prefix,
        Content::Matches(rules::regex("(a|b)+").unwrap()),
        Content::Json(vec![
            member("/n", Is::Value(serde_json::from_str(r#"{"a": [1, 2.50, null]}"#).unwrap())),
            member("/any", Is::Any),
            member("", Is::Given),
        ]),
        Content::Clock { within: 3 },
    ];
    let field = |name: &str, value| Field { name: name.into(), value };
    let statuses = [Status::Is(204), Status::Class(3), Status::Any];
    let requests = contents.into_iter().zip(statuses.into_iter().cycle());
    let requests = requests.map(|(content, status)| HttpRequest {
        weight: 2,
        expected: Expected {
            method: rules::method("PATCH").unwrap(),
            status,
            fields: vec![
                field("a", Value::Any),
                field("b", Value::Is("x".into())),
                field("c", Value::Matches(rules::regex("[0-9]+").unwrap())),
            ],
            content,
        },
        fields: vec![("X-A".into(), "1".into())],
        content: Some(vec![0, 255, b'\n']),
        text: b"\xfe".to_vec(),
        ..HttpRequest::get("/path?q=1")
    });
    let workload = HttpWorkload::new("PATCH /path", requests.collect()).unwrap();
    assert_arrives(&Workload::from(HttpAsks::from(workload)));
    let without_content = HttpWorkload::new("get", vec![HttpRequest::get("/")]).unwrap();
    assert_arrives(&Workload::from(HttpAsks::from(without_content)));
}

#[test]
fn rejects_invalid_messages() {
    let error = |protocol: &str, asks: serde_json::Value| {
        let message = serde_json::json!({"protocol": protocol, "asks": asks});
        serde_json::from_value::<Workload>(message).unwrap_err().to_string()
    };
    assert_eq!(error("smtp", "double".into()), "the protocol \"smtp\" is not supported");
    assert!(error("line", "triple".into()).contains("unknown variant"));
    let file = serde_json::json!({"file": {"name": "mine", "text": "protocol='line'"}});
    assert!(error("line", file).contains("it has 0 requests"));
    let never = HttpRequest { weight: 0, ..HttpRequest::get("/") };
    let requests = serde_json::json!({"requests": {"name": "x", "requests": [never]}});
    assert!(error("http", requests).contains("weight 0"));
}
