//! What a file may say, and what is said of mistakes.

use super::*;

fn read(text: &str) -> Result<MixFile, String> {
    let text = format!("protocol = 'redis'\n{text}");
    MixFile::read(FileText::alone(&text, "mine"))
}

#[test]
fn a_file_says_keys_values_and_commands() {
    let text = "name = 'a'\nkeys = 1_000\nvalue_bytes = 32\ndistribution = 'zipf'\nexponent = 1.2\n\
                [[request]]\nweight = 3\ncommand = 'Mget'\nkeys_per_command = 100\n\
                [[request]]\nsend = ['HSET', 'h:{n=counter}', 'f', '{n}']\ninteger = '{n+1}'";
    let MixFile { kept, mix } = read(text).unwrap();
    assert_eq!((kept.name.as_str(), mix.keys, mix.value_bytes), ("a", 1_000, 32));
    assert_eq!(mix.distribution, Distribution::Zipf(1.2));
    assert!(matches!(mix.conversations[0].steps[..], [Step::Keys(Command::Mget, 100)]));
    let mut script = mix.compose(1, &kept.lists).script;
    script.close(1).unwrap();
    let replies: Vec<_> = (0..script.count()).map(|i| script.reply(i)).collect();
    let known: Vec<_> = replies.into_iter().filter(|reply| !reply.is_empty()).take(2).collect();
    assert_eq!(known, [b":1\r\n", b":2\r\n"]);
    let MixFile { mix, .. } = read("[[request]]\ncommand = 'SET'").unwrap();
    assert_eq!((mix.keys, mix.value_bytes), (KEYS, VALUE));
    assert_eq!(mix.distribution, Distribution::Uniform);
}

#[test]
fn mistakes_are_told_with_what_was_expected() {
    let get = "[[request]]\ncommand = 'GET'";
    for (file, said) in [
        ("keys = 0", "`keys` is 0; expected 1 to 65536"),
        ("keys = 65537", "`keys` is 65537"),
        ("value_bytes = 31", "`value_bytes` is 31; expected 32 to 1048576"),
        ("keys = 65536\nvalue_bytes = 1025", "more than 67108864 bytes for each connection"),
        ("distribution = 'normal'", "expected \"uniform\" or \"zipf\""),
        ("exponent = 1.0", "belongs to distribution = \"zipf\""),
        ("distribution = 'zipf'\nexponent = 0.0", "expected more than 0, up to 10"),
        ("pipeline = 3", "unknown field `pipeline`"),
    ] {
        let error = read(&format!("{file}\n{get}")).unwrap_err();
        assert!(error.contains(said), "{file}: {error}");
    }
    for (request, said) in [
        ("", "request 1: it has no command; expected one of command"),
        ("command = 'GET'\nsend = ['GET', 'k']", "it has command and send"),
        ("command = 'HGET'", "expected one of SET, GET, MSET, MGET, DEL, INCR; others"),
        ("command = 'GET'\nkeys_per_command = 2", "GET: `keys_per_command` is 2; expected 1 to 1"),
        ("command = 'DEL'\nkeys_per_command = 101", "is 101; expected 1 to 100"),
        ("command = 'DEL'\nkeys_per_command = 0", "is 0; expected 1 to 100"),
        ("command = 'GET'\nnil = true", "what must come back to GET is known"),
        ("send = ['A']\nkeys_per_command = 1", "`keys_per_command` belongs to `command`"),
        ("send = []", "`send` has 0 words"),
        ("send = ['{n}']", "no placeholder and no capture \"n\""),
        ("send = ['A']\nnil = true\nstatus = 'OK'", "several of status, integer"),
        ("send = ['A']\nnil = false", "`nil` is false; leave it out"),
        ("send = ['A']\nstatus = \"a\\nb\"", "such a reply is one line"),
        ("send = ['A']\nerror = \"a\\nb\"", "an error is one line"),
        ("send = ['A']\nbulk = '{hex:3}'", "cannot be drawn anew"),
        ("send = ['A']\nexact = 'b'", "unknown field `exact`"),
        ("steps = [{ command = 'GET' }, {}]", "request 1, step 2: it has no command"),
        ("command = 'GET'\nsteps = []", "a command or an expectation beside them"),
        ("command = 'GET'\nweight = 0", "`weight` is 0"),
    ] {
        let error = read(&format!("[[request]]\n{request}")).unwrap_err();
        assert!(error.contains(said), "{request}: {error}");
    }
    let long =
        "keys = 100\nvalue_bytes = 500_000\n[[request]]\ncommand = 'MSET'\nkeys_per_command = 9";
    assert!(read(long).unwrap_err().contains("longer than 4194304 bytes"));
}
