//! Contents of a workload file, and the messages for mistakes in it.

use super::*;

fn read(text: &str) -> Result<MixFile, String> {
    let text = format!("protocol = 'redis'\n{text}");
    MixFile::read(FileText::alone(&text, "mine"))
}

#[test]
fn reads_keys_values_and_commands() {
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
fn reports_mistakes_with_what_was_expected() {
    let get = "[[request]]\ncommand = 'GET'";
    for (file, said) in [
        ("keys = 0", "`keys` is 0; expected 1 to 65536"),
        ("keys = 65537", "`keys` is 65537"),
        ("value_bytes = 31", "`value_bytes` is 31; expected 32 to 1048576"),
        ("keys = 65536\nvalue_bytes = 1025", "exceed the limit of 67108864 bytes per connection"),
        ("distribution = 'normal'", "expected \"uniform\" or \"zipf\""),
        ("exponent = 1.0", "belongs to distribution = \"zipf\""),
        ("distribution = 'zipf'\nexponent = 0.0", "expected more than 0, up to 10"),
        ("pipeline = 3", "unknown field `pipeline`"),
    ] {
        let error = read(&format!("{file}\n{get}")).unwrap_err();
        assert!(error.contains(said), "{file}: {error}");
    }
    for (request, said) in [
        ("", "request 1: it has no command; expected either command"),
        ("command = 'GET'\nsend = ['GET', 'k']", "it has command and send"),
        ("command = 'HGET'", "expected one of SET, GET, MSET, MGET, DEL, INCR; use `send`"),
        ("command = 'GET'\nkeys_per_command = 2", "GET: `keys_per_command` is 2; expected 1 to 1"),
        ("command = 'DEL'\nkeys_per_command = 101", "is 101; expected 1 to 100"),
        ("command = 'DEL'\nkeys_per_command = 0", "is 0; expected 1 to 100"),
        ("command = 'GET'\nnil = true", "the load knows the reply to GET"),
        ("send = ['A']\nkeys_per_command = 1", "`keys_per_command` belongs to `command`"),
        ("send = []", "`send` has 0 arguments"),
        ("send = ['{n}']", "no such placeholder or capture: \"n\""),
        ("send = ['A']\nnil = true\nstatus = 'OK'", "several of status, integer"),
        ("send = ['A']\nnil = false", "`nil` is false; remove it"),
        ("send = ['A']\nstatus = \"a\\nb\"", "such a reply must be one line"),
        ("send = ['A']\nerror = \"a\\nb\"", "an error must be one line"),
        ("send = ['A']\nbulk = '{hex:3}'", "cannot draw a new value"),
        ("send = ['A']\nexact = 'b'", "unknown field `exact`"),
        ("steps = [{ command = 'GET' }, {}]", "request 1, step 2: it has no command"),
        ("command = 'GET'\nsteps = []", "and also a command or an expectation"),
        ("command = 'GET'\nweight = 0", "`weight` is 0"),
    ] {
        let error = read(&format!("[[request]]\n{request}")).unwrap_err();
        assert!(error.contains(said), "{request}: {error}");
    }
    let long =
        "keys = 100\nvalue_bytes = 500_000\n[[request]]\ncommand = 'MSET'\nkeys_per_command = 9";
    assert!(read(long).unwrap_err().contains("exceeds 4194304 bytes"));
}
