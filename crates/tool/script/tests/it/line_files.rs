//! Mistakes in workload files of lines: each message says what was expected.

use proptest::prelude::*;
use regatta_script::Workload;

const HEAD: &str = "protocol = 'line'\n";

proptest! {
    #[test]
    fn reads_or_rejects_any_text_in_a_template(
        send in prop::collection::vec(fragment(), 0..12),
        exact in prop::collection::vec(fragment(), 0..12),
    ) {
        let (send, exact) = (send.concat(), exact.concat());
        let text = format!("{HEAD}[[request]]\nsend='{send}'\nexact='{exact}'");
        if let Err(error) = Workload::from_text(&text, "mine") {
            prop_assert!(error.to_string().contains("request 1: `"), "{}", error);
        }
    }
}

fn fragment() -> impl Strategy<Value = String> {
    let parts = [
        "{",
        "}",
        "{{",
        "}}",
        "=",
        ":",
        "..",
        "*",
        "+",
        "-",
        " ",
        "n",
        "s",
        "int",
        "hex",
        "len",
        "request",
        "1",
        "99999999999999999999",
        "{n=int:1..9}",
        "{s=hex:3}",
        "{counter}",
        "{n}",
    ];
    prop_oneof![
        4 => prop::sample::select(parts.to_vec()).prop_map(str::to_owned),
        1 => "[^'\\p{Cc}]{1,3}",
    ]
}

fn error(text: &str) -> String {
    match Workload::from_text(text, "mine") {
        Ok(_) => panic!("no error in {text:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn reports_mistakes_in_the_file_with_what_was_expected() {
    let request = "[[request]]\nsend='a'\nexact='b'\n";
    let with = |more: &str| format!("{HEAD}{more}");
    for (text, said) in [
        (with("[[request]\n"), "line 2"),
        (request.into(), "write: protocol = \"line\""),
        (format!("protocol='smtp'\n{request}"), "the protocol \"smtp\" is not supported"),
        (HEAD.into(), "it has 0 requests; expected 1 to 1000, each as [[request]]"),
        (with(&format!("nmae='x'\n{request}")), "unknown field `nmae`"),
        (with(&format!("{request}weigth=2")), "unknown field `weigth`"),
        (with(&format!("name='a b'\n{request}")), "the name \"a b\" cannot be used"),
        (with(&format!("name='a.toml'\n{request}")), "does not end in .toml"),
        (with(&format!("longest_reply=0\n{request}")), "`longest_reply` is 0; expected"),
        (with(&format!("{request}weight=0")), "request 1: `weight` is 0; expected 1 to"),
        (with(&format!("{request}[[request]]\nexact='b'")), "request 2: it has no `send`"),
        (with("[[request]]\nsend='a'"), "for the reply, found nothing"),
        (with(&format!("{request}prefix='b'")), "for the reply, found exact and prefix"),
        (with(&format!("{request}steps=[]")), "it has `steps` and also `send` or"),
        (with("[[request]]\nsteps=[]"), "it has 0 steps; expected 1 to"),
        (with("[[request]]\nsteps=[{send='a',exact='b'},{send='c'}]"), "request 1, step 2:"),
        (with("[[request]]\nsteps=[{send='a',exact='b',weight=1}]"), "unknown field `weight`"),
        (with("[[request]]\nsend='a'\nregex='a('"), "is not a valid regular expression"),
        (with("[[request]]\nsend='a'\nregex='a)|(b'"), "is not a valid regular expression"),
        (with("[[request]]\nsend='a'\nregex='(\\w{100}){1000}'"), "size limit"),
        (with("[[request]]\nsend=\"a\\nb\"\nexact='c'"), "a newline is added to each line"),
        (with("[[request]]\nsend='{line:x}'\nexact='c'\n[lines]\nx=[]"), "x is empty"),
        (with("[[request]]\nsend='{line:x}'\nexact='c'"), "\"x\" are not in [lines]"),
        (
            with("[[request]]\nsend='{line:x}'\nexact='c'\n[lines]\nx=[\"a\\nb\"]"),
            "contains a newline",
        ),
        (with("[[request]]\nsend='{hex:65536}!'\nexact=''"), "can become 65537 bytes long"),
        (
            with("longest_reply=9\n[[request]]\nsend='{s=hex:9}'\nexact='>{s}'"),
            "`exact` = \">{s}\": a line can become 10 bytes long; at most 9",
        ),
    ] {
        let error = error(&text);
        assert!(error.contains(said) && error.starts_with("the workload mine: "), "{error}");
    }
}

#[test]
fn reports_mistakes_in_templates_with_an_example() {
    for (send, exact, said) in [
        ("{", "", "a single {; write a placeholder as {int:1..9}"),
        ("a}b", "", "a single }; "),
        ("{n", "", "a single {"),
        ("{}", "", "{}: expected an integer"),
        ("{foo}", "", "no such placeholder or capture: \"foo\"; nothing is captured so far"),
        ("{foo:3}", "", "no such placeholder: \"foo\"; placeholders are {counter}"),
        ("{n=int:1..2}", "{m}", "captured so far: n; placeholders are"),
        ("{int}", "", "int needs an argument, e.g. {int:1..1000}"),
        ("{int:5}", "", "expected a range, e.g. {int:1..1000}"),
        ("{int:1..x}", "", "found \"1..x\""),
        ("{int:9..1}", "", "the range 9..1 is empty"),
        ("{int:0..99999999999999999999}", "", "between -2^64 and 2^64"),
        ("{hex:-1}", "", "expected lengths from 0 to 65536"),
        ("{hex:x}", "", "expected a length, e.g. {hex:8} or {hex:3..10}"),
        ("{alnum}", "", "alnum needs an argument, e.g. {alnum:8}"),
        ("{counter:x}", "", "expected an integer"),
        ("{int=int:1..2}", "", "\"int\" is not a valid name"),
        ("{1=int:1..2}", "", "\"1\" is not a valid name"),
        ("{n=int:1..2}{n=int:1..2}", "", "n is captured already"),
        ("a", "{int:1..2}", "an expected reply cannot draw a new value"),
        ("{n=int:1..2}", "{m=n}", "only sent values can be captured"),
        ("{request}", "", "{request} can be used only in an expected reply"),
        ("{s=hex:2}", "{s+1}", "s is text; arithmetic needs integers"),
        ("{n=int:1..2}", "{n/2}", "expected +, - or *, found '/'"),
        ("{n=int:0..18446744073709551616}", "{n*n}", "the result can exceed 128 bits"),
        ("a", "{upper:}", "upper needs the name of a capture, e.g. {upper:name}"),
    ] {
        let error = error(&format!("{HEAD}[[request]]\nsend='{send}'\nexact='{exact}'"));
        assert!(error.contains(said), "{send} {exact}: {error}");
        assert!(error.contains("request 1: `"), "{error}");
    }
}

#[test]
fn reports_the_path_of_a_file_that_cannot_be_read() {
    let folder = std::env::temp_dir().join(format!("regatta-workload-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("mine.toml");
    let read = |text: &str, words: &[u8]| {
        std::fs::write(&path, text).unwrap();
        std::fs::write(folder.join("words"), words).unwrap();
        Workload::read(&path).map(|_| ()).map_err(|error| error.to_string())
    };
    let text = |words: &str| format!("{HEAD}[[request]]\nsend='{{line:{words}}}'\nexact=''");
    let results = [
        read(&text("words"), b"a\r\nb\n"),
        read(&text("words"), b""),
        read(&text("words"), b"\xff\n"),
        read(&text("words"), &vec![b'\n'; (4 << 20) + 1]),
        read(&text("missing"), b""),
        read(&text("."), b""),
    ];
    std::fs::remove_dir_all(&folder).unwrap();
    let said =
        ["words is empty", "valid UTF-8", "at most 4 MiB", "/missing: No such", "expected a file"];
    assert_eq!(results[0], Ok(()));
    for (result, said) in results[1..].iter().zip(said) {
        let error = result.as_ref().unwrap_err();
        assert!(error.contains(said) && error.contains("mine.toml"), "{error}");
    }
}
