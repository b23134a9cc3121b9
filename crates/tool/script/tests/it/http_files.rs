//! Mistakes in workload files over HTTP: each message says what was expected.

use proptest::prelude::*;
use regatta_script::Workload;

fn read(text: &str) -> Result<(), String> {
    let text = format!("protocol = 'http'\n{text}");
    Workload::from_text(&text, "mine").map(|_| ()).map_err(|error| error.to_string())
}

proptest! {
    #[test]
    fn reads_or_rejects_any_text_in_a_request(
        key in prop::sample::select(vec![
            "path", "method", "body", "exact", "prefix", "regex", "status",
            "headers.X-A", "headers.Host", "expect_headers.X-A", "json.'/a'",
        ]),
        text in prop::collection::vec(fragment(), 0..8),
    ) {
        let path = if key == "path" { "" } else { "path='/{n=int:1..9}'\n" };
        let text = text.concat();
        if let Err(error) = read(&format!("[[request]]\n{path}{key}='{text}'")) {
            let key = key.split('.').next().unwrap();
            let place = format!("request 1: `{key}`");
            prop_assert!(error.contains(&place), "{}", error);
        }
    }
}

fn fragment() -> impl Strategy<Value = String> {
    let parts = [
        "{",
        "}",
        "{{",
        "}}",
        "/",
        "?",
        "%",
        "%20",
        "#",
        ":",
        " ",
        "GET",
        "2xx",
        "404",
        "n",
        "{s=hex:3}",
        "{n}",
        "{n*2}",
        "{upper:n}",
        "{request}",
        "{counter}",
        "\u{e9}",
    ];
    prop_oneof![
        4 => prop::sample::select(parts.to_vec()).prop_map(str::to_owned),
        1 => "[^'\\p{Cc}]{1,3}",
    ]
}

#[test]
fn reports_mistakes_with_what_was_expected() {
    let long = "x".repeat(8_001);
    for (request, said) in [
        ("", "request 1: it has no `path`; write: path = "),
        ("path='a'", "`path` = \"a\": a path starts with /"),
        ("path='{hex:3}'", "a path starts with /"),
        ("path='/a b'", "a path cannot contain ' '; write it as %20"),
        ("path='/é'", "a path cannot contain 'é'; write it as %C3%A9"),
        ("path='/a#b'", "are not sent to a server; remove them"),
        ("path='/%2{hex:1}'", "a % must be followed by two hexadecimal digits"),
        (
            "path='{line:paths}'\n[lines]\npaths=['/a', 'b']",
            "`path` = \"{line:paths}\": \"b\": a path starts with /",
        ),
        ("path='{line:paths}'\n[lines]\npaths=['/a b']", "write it as %20"),
        ("path='/{hex:3000}'", "`path` = \"/{hex:3000}\" can become 9001 bytes long"),
        ("path='/'\nmethod='get'", "`method`: \"get\" is not a method; expected one of GET"),
        ("path='/'\nstatus=99", "`status`: \"99\" is not a final status; expected 200 to 599"),
        ("path='/'\nstatus='2x'", "a class such as 2xx, or any"),
        ("path='/'\nstatus=true", "`status`: \"true\" is not a final status"),
        ("path='/'\nmethdo='GET'", "unknown field `methdo`"),
        ("path='/'\nheaders={X=1}", "expected a string"),
        ("path='/'\nheaders={'X Y'='1'}", "`headers`: \"X Y\" is not a header name"),
        ("path='/'\nheaders={X=\"a\\nb\"}", "the value of a header cannot contain '\\n'"),
        ("path='/'\nheaders={X='1', x='2'}", "`headers`: x is given twice"),
        ("path='/'\nheaders={Content-Length='1'}", "the load sends Content-Length itself"),
        ("path='/'\nheaders={Transfer-Encoding='chunked'}", "bodies are sent whole"),
        ("path='/'\nheaders={X='{line:x}'}\n[lines]\nx=[\"a\\rb\"]", "remove it from the list"),
        (
            "path='/{s=line:x}'\nexpect_headers={X='{upper:s}'}\n[lines]\nx=[\"a\\tb\"]",
            "its placeholders can produce a control character",
        ),
        ("path='/'\nbody=''\nbody_file='x'", "it has both `body` and `body_file`"),
        ("path='/'\nbody_file='x'", "`body_file`: the content of \"x\" is not in [files]"),
        ("path='/'\nbody_file='x'\n[files]\nx=1", "{ base64 = \"aGVsbG8=\" }"),
        ("path='/'\nexact='a'\nregex='b'", "expected content is given by exact and regex"),
        ("path='/'\nexact='a'\njson={'/a'=1}", "exact and json; use only one of exact"),
        ("path='/'\nregex='a('", "`regex` = \"a(\" is not a valid regular expression"),
        ("path='/'\nmethod='HEAD'\nexact=''", "the reply to HEAD has no content"),
        ("path='/'\nexpect_headers={'a:'='1'}", "`expect_headers`: \"a:\" is not a header name"),
        ("path='/'\nexpect_headers={A=false}", "true for any value, or { regex"),
        ("path='/'\nexpect_headers={A={regex='('}}", "is not a valid regular expression"),
        ("path='/'\nexpect_headers={A='{n}'}", "nothing is captured so far"),
        ("path='/'\njson={'a'=1}", "`json`: \"a\" is not a JSON Pointer"),
        ("path='/'\njson={'/~2'=1}", "with ~0 for ~ and ~1 for /"),
        ("path='/'\njson={'/a'={b=1}}", "give each value its own pointer"),
        ("path='/'\njson={'/a'=[{b=1}]}", "a list cannot contain tables"),
        (
            "path='/{n=int:1..18446744073709551615}'\njson={'/a'='{n+1}'}",
            "JSON numbers are compared only from -2^63 to 2^64-1",
        ),
        ("path='/'\njson={'/a'='{int:1..2}'}", "an expected reply cannot draw a new value"),
        ("path='/'\nsteps=[]", "it has `steps` and also other keys of a request"),
        ("steps=[]", "it has 0 steps; expected 1 to 1000, e.g. steps = [{ path"),
        ("steps=[{path='/', weight=1}]", "request 1, step 1: a step cannot have `weight`"),
        ("steps=[{path='/'}, {}]", "request 1, step 2: it has no `path`"),
        ("path='/'\nweight=0", "request 1: `weight` is 0"),
        ("path='/'\n[lines]\n[mine]", "unknown field `mine`"),
        (&format!("path='/{long}'"), "at most 8000 are permitted"),
        (&format!("path='/'\nheaders={{X='{long}'}}"), "at most 8000 are permitted"),
        ("path='/'\nheaders={X='{hex:8000}', Y='{hex:8000}', Z='{hex:8000}'}", "at most 16384"),
    ] {
        let error = read(&format!("[[request]]\n{request}")).unwrap_err();
        assert!(error.contains(said) && error.starts_with("the workload mine: "), "{error}");
    }
    let error = read("longest_reply=9\n[[request]]\npath='/'").unwrap_err();
    assert!(error.contains("`longest_reply` applies only to lines"), "{error}");
    assert!(read("").unwrap_err().contains("each as [[request]] with path = \"/\""));
    let lines = "protocol='line'\n[[request]]\nsend='a'\nexact='b'\n[files]\nx=''";
    let error = Workload::from_text(lines, "mine").unwrap_err().to_string();
    assert!(error.contains("the line protocol has no `body_file`"), "{error}");
}
