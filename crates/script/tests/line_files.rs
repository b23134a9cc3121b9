//! Workload files for lines: what they say, and every mistake in them with what was expected.

use proptest::prelude::*;
use regatta_script::Workload;

const HEAD: &str = "protocol = 'line'\n";

proptest! {
    #[test]
    fn whatever_stands_in_a_template_is_read_or_told(
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
fn mistakes_in_the_file_are_told_with_what_was_expected() {
    let request = "[[request]]\nsend='a'\nexact='b'\n";
    let with = |more: &str| format!("{HEAD}{more}");
    for (text, said) in [
        (with("[[request]\n"), "line 2"),
        (request.into(), "write: protocol = \"line\""),
        (format!("protocol='smtp'\n{request}"), "the protocol \"smtp\" is not spoken"),
        (HEAD.into(), "it has 0 requests; expected 1 to 1000, each as [[request]]"),
        (with(&format!("nmae='x'\n{request}")), "unknown field `nmae`"),
        (with(&format!("{request}weigth=2")), "unknown field `weigth`"),
        (with(&format!("name='a b'\n{request}")), "the name \"a b\" cannot be used"),
        (with(&format!("name='a.toml'\n{request}")), "does not end in .toml"),
        (with(&format!("longest_reply=0\n{request}")), "`longest_reply` is 0; expected"),
        (with(&format!("{request}weight=0")), "request 1: `weight` is 0; expected 1 to"),
        (with(&format!("{request}[[request]]\nexact='b'")), "request 2: it has no `send`"),
        (with("[[request]]\nsend='a'"), "says of the reply: nothing; expected one of exact"),
        (with(&format!("{request}prefix='b'")), "says of the reply: exact and prefix"),
        (with(&format!("{request}steps=[]")), "it has `steps`, and `send` or"),
        (with("[[request]]\nsteps=[]"), "it has 0 steps; expected 1 to"),
        (with("[[request]]\nsteps=[{send='a',exact='b'},{send='c'}]"), "request 1, step 2:"),
        (with("[[request]]\nsteps=[{send='a',exact='b',weight=1}]"), "unknown field `weight`"),
        (with("[[request]]\nsend='a'\nregex='a('"), "is no regular expression"),
        (with("[[request]]\nsend='a'\nregex='a)|(b'"), "is no regular expression"),
        (with("[[request]]\nsend='a'\nregex='(\\w{100}){1000}'"), "size limit"),
        (with("[[request]]\nsend=\"a\\nb\"\nexact='c'"), "a newline ends a line"),
        (with("[[request]]\nsend='{line:x}'\nexact='c'\n[lines]\nx=[]"), "x has no lines"),
        (with("[[request]]\nsend='{line:x}'\nexact='c'"), "\"x\" are not in [lines]"),
        (
            with("[[request]]\nsend='{line:x}'\nexact='c'\n[lines]\nx=[\"a\\nb\"]"),
            "has a newline in it",
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
fn mistakes_in_templates_are_told_with_an_example() {
    for (send, exact, said) in [
        ("{", "", "a single {; a placeholder is written {int:1..9}"),
        ("a}b", "", "a single }; "),
        ("{n", "", "a single {"),
        ("{}", "", "{}: expected an integer"),
        ("{foo}", "", "no placeholder and no capture \"foo\"; nothing is captured so far"),
        ("{foo:3}", "", "no placeholder \"foo\"; there are {counter}"),
        ("{n=int:1..2}", "{m}", "captured so far: n; there are"),
        ("{int}", "", "int needs more, as {int:1..1000}"),
        ("{int:5}", "", "expected a range as {int:1..1000}"),
        ("{int:1..x}", "", "found \"1..x\""),
        ("{int:9..1}", "", "the range 9..1 is empty"),
        ("{int:0..99999999999999999999}", "", "between -2^64 and 2^64"),
        ("{hex:-1}", "", "expected lengths from 0 to 65536"),
        ("{hex:x}", "", "expected a length as {hex:8} or {hex:3..10}"),
        ("{alnum}", "", "alnum needs more, as {alnum:8}"),
        ("{counter:x}", "", "expected an integer"),
        ("{int=int:1..2}", "", "\"int\" cannot be a name"),
        ("{1=int:1..2}", "", "\"1\" cannot be a name"),
        ("{n=int:1..2}{n=int:1..2}", "", "n is captured already"),
        ("a", "{int:1..2}", "what must come back cannot be drawn anew"),
        ("{n=int:1..2}", "{m=n}", "only what is sent can be captured"),
        ("{request}", "", "the request is known only where a reply is expected"),
        ("{s=hex:2}", "{s+1}", "s is text; only integers"),
        ("{n=int:1..2}", "{n/2}", "expected +, - or *, found '/'"),
        ("{n=int:0..18446744073709551616}", "{n*n}", "this can exceed 128 bits"),
        ("a", "{upper:}", "upper needs the name of a capture, as {upper:name}"),
    ] {
        let error = error(&format!("{HEAD}[[request]]\nsend='{send}'\nexact='{exact}'"));
        assert!(error.contains(said), "{send} {exact}: {error}");
        assert!(error.contains("request 1: `"), "{error}");
    }
}

#[test]
fn files_that_cannot_be_read_are_told_by_their_path() {
    let folder = std::env::temp_dir().join(format!("regatta-workload-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("mine.toml");
    let told = |text: &str, words: &[u8]| {
        std::fs::write(&path, text).unwrap();
        std::fs::write(folder.join("words"), words).unwrap();
        Workload::read(&path).map(|_| ()).map_err(|error| error.to_string())
    };
    let text = |words: &str| format!("{HEAD}[[request]]\nsend='{{line:{words}}}'\nexact=''");
    let results = [
        told(&text("words"), b"a\r\nb\n"),
        told(&text("words"), b""),
        told(&text("words"), b"\xff\n"),
        told(&text("words"), &vec![b'\n'; (4 << 20) + 1]),
        told(&text("missing"), b""),
        told(&text("."), b""),
    ];
    std::fs::remove_dir_all(&folder).unwrap();
    let said = [
        "words has no lines",
        "valid UTF-8",
        "at most 4 MiB",
        "/missing: No such",
        "expected a file",
    ];
    assert_eq!(results[0], Ok(()));
    for (result, said) in results[1..].iter().zip(said) {
        let error = result.as_ref().unwrap_err();
        assert!(error.contains(said) && error.contains("mine.toml"), "{error}");
    }
}
