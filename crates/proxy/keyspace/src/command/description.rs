//! A command that the table lacks, as a node describes it (COMMAND INFO).
//!
//! Source: the documentation of COMMAND, and "Command key specifications".

use super::{
    entry::Command,
    flag::{self, Flags, KeyFlags},
    keys::MOST,
    spec::{Begin, Find, KeySpec},
};
use regatta_proto::resp::Value;

/// Maximum depth of a description. Redis uses 6.
const DEEPEST: usize = 10;

/// The number of a command that is not in the table.
const UNNUMBERED: u16 = u16::MAX;

/// The description of a command or subcommand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    name: String,
    arity: i16,
    flags: Flags,
    specs: Vec<KeySpec>,
    is_container: bool,
}

impl Description {
    /// Reads the reply to `COMMAND INFO name`, in RESP2 or RESP3. `name` is in lower case; that of a subcommand is
    /// e.g. `client|id`. Returns `None` if the node does not know the command, or describes it in another form.
    ///
    /// Keys whose positions are not described by numbers alone count as unknown: with a search for a word, an argument
    /// that happens to be that word would be mistaken for it.
    pub fn read(name: &str, reply: &[u8]) -> Option<Description> {
        let (Node::List(all), _) = Node::read(reply, 0)? else { return None };
        let [Node::List(fields)] = &all[..] else { return None };
        let [_, arity, flags, first, last, step, more @ ..] = &fields[..] else { return None };
        let flags = flags.words().filter_map(command_flag).fold(0, |all, flag| all | flag);
        // Since Redis 7: categories, tips, key specifications, subcommands.
        let specs = match more {
            [_, _, Node::List(specs), ..] => specs.iter().map(key_spec).collect(),
            _ => of_numbers([first, last, step].map(Node::number), flags),
        };
        let is_container = matches!(more, [_, _, _, Node::List(all), ..] if !all.is_empty());
        Some(Description {
            name: name.to_owned(),
            arity: i16::try_from(arity.number()?).ok()?,
            flags,
            specs: if specs.len() > MOST { vec![UNKNOWN] } else { specs },
            is_container,
        })
    }

    /// Whether this describes `command`.
    pub fn is_of(&self, command: &Command) -> bool {
        let Description { name, arity, flags, specs, is_container } = self;
        (command.name, command.arity, command.flags, command.specs, command.is_container)
            == (&name[..], *arity, *flags, &specs[..], *is_container)
    }

    /// Makes it a command, which lasts as long as the process.
    pub fn leak(self) -> &'static Command {
        Box::leak(Box::new(Command {
            name: self.name.leak(),
            arity: self.arity,
            flags: self.flags,
            since: "",
            group: "",
            specs: self.specs.leak(),
            is_container: self.is_container,
            number: UNNUMBERED,
        }))
    }
}

#[cfg(test)]
impl Description {
    /// A described command with another name and these flags, and the keys of `command`.
    pub(crate) fn like(command: &Command, name: &str, flags: Flags) -> &'static Command {
        let (arity, specs) = (command.arity, command.specs.to_vec());
        Description { name: name.to_owned(), arity, flags, specs, is_container: false }.leak()
    }
}

/// Keys at unknown positions.
const UNKNOWN: KeySpec =
    KeySpec { flags: flag::INCOMPLETE, begin: Begin::Unknown, find: Find::Unknown };

/// The keys of a command before Redis 7: the first, the last, and the distance between two.
fn of_numbers(numbers: [Option<i64>; 3], flags: Flags) -> Vec<KeySpec> {
    if flags & flag::MOVABLEKEYS != 0 {
        return vec![UNKNOWN];
    }
    let [Some(first), Some(last), Some(step)] = numbers else { return vec![UNKNOWN] };
    if first == 0 {
        return Vec::new();
    }
    let last = if last < 0 { last } else { last - first };
    let spec = || {
        let find =
            Find::Range { last: last.try_into().ok()?, step: step.try_into().ok()?, limit: 0 };
        Some(KeySpec { flags: 0, begin: Begin::Index(first.try_into().ok()?), find })
    };
    vec![spec().unwrap_or(UNKNOWN)]
}

fn key_spec(spec: &Node) -> KeySpec {
    let numbers = |of: &Node, names: [&str; 3]| {
        let spec = of.value("spec")?;
        let mut numbers = names.iter().map(|name| spec.value(name)?.number());
        Some([numbers.next()??, numbers.next()??, numbers.next()??])
    };
    let read = || {
        let (begin, find) = (spec.value("begin_search")?, spec.value("find_keys")?);
        let begin = match begin.value("type")?.text()? {
            "index" => {
                Begin::Index(begin.value("spec")?.value("index")?.number()?.try_into().ok()?)
            }
            _ => return None,
        };
        let find = match find.value("type")?.text()? {
            "range" => {
                let [last, step, limit] = numbers(find, ["lastkey", "keystep", "limit"])?;
                Find::Range {
                    last: last.try_into().ok()?,
                    step: step.try_into().ok()?,
                    limit: limit.try_into().ok()?,
                }
            }
            "keynum" => {
                let [at, first, step] = numbers(find, ["keynumidx", "firstkey", "keystep"])?;
                Find::Number {
                    at: at.try_into().ok()?,
                    first: first.try_into().ok()?,
                    step: step.try_into().ok()?,
                }
            }
            _ => return None,
        };
        let flags =
            spec.value("flags")?.words().filter_map(key_flag).fold(0, |all, flag| all | flag);
        Some(KeySpec { flags, begin, find })
    };
    read().unwrap_or(UNKNOWN)
}

/// The flag with this name. Those that are not listed here do not matter to a proxy.
fn command_flag(name: &str) -> Option<Flags> {
    Some(match name {
        "write" => flag::WRITE,
        "readonly" => flag::READONLY,
        "denyoom" => flag::DENYOOM,
        "admin" => flag::ADMIN,
        "pubsub" => flag::PUBSUB,
        "noscript" => flag::NOSCRIPT,
        "blocking" => flag::BLOCKING,
        "loading" => flag::LOADING,
        "stale" => flag::STALE,
        "skip_monitor" => flag::SKIP_MONITOR,
        "skip_slowlog" => flag::SKIP_SLOWLOG,
        "asking" => flag::ASKING,
        "fast" => flag::FAST,
        "no_auth" => flag::NO_AUTH,
        "no_mandatory_keys" => flag::NO_MANDATORY_KEYS,
        "no_async_loading" => flag::NO_ASYNC_LOADING,
        "no_multi" => flag::NO_MULTI,
        "movablekeys" => flag::MOVABLEKEYS,
        "allow_busy" => flag::ALLOW_BUSY,
        "module" => flag::MODULE,
        _ => return None,
    })
}

/// The flag of a key with this name.
fn key_flag(name: &str) -> Option<KeyFlags> {
    Some(match name {
        "RO" => flag::RO,
        "RW" => flag::RW,
        "OW" => flag::OW,
        "RM" => flag::RM,
        "access" => flag::ACCESS,
        "update" => flag::UPDATE,
        "insert" => flag::INSERT,
        "delete" => flag::DELETE,
        "not_key" => flag::NOT_KEY,
        "incomplete" => flag::INCOMPLETE,
        "variable_flags" => flag::VARIABLE_FLAGS,
        _ => return None,
    })
}

/// A part of a reply.
enum Node<'a> {
    Text(&'a [u8]),
    Number(i64),
    /// A list, a set, or the names and values of a map in turn.
    List(Vec<Node<'a>>),
    /// Null, or something that no description has.
    Other,
}

impl<'a> Node<'a> {
    /// Reads the value at the front. Returns it with its length in bytes.
    fn read(bytes: &'a [u8], depth: usize) -> Option<(Node<'a>, usize)> {
        let (value, mut taken) = Value::read(bytes)?;
        let node = match value {
            Value::Simple(text) | Value::Bulk(text) => Node::Text(text),
            Value::Integer(number) => Node::Number(number),
            Value::Elements(_, count, _) if depth < DEEPEST => {
                let mut elements = Vec::new();
                for _ in 0..count {
                    let (element, length) = Node::read(&bytes[taken..], depth + 1)?;
                    taken += length;
                    elements.push(element);
                }
                Node::List(elements)
            }
            Value::Elements(..) | Value::Error(_) => return None,
            _ => Node::Other,
        };
        Some((node, taken))
    }

    fn text(&self) -> Option<&'a str> {
        let Node::Text(text) = self else { return None };
        std::str::from_utf8(text).ok()
    }

    fn number(&self) -> Option<i64> {
        let Node::Number(number) = self else { return None };
        Some(*number)
    }

    /// The texts of a list.
    fn words(&self) -> impl Iterator<Item = &'a str> {
        let all = if let Node::List(all) = self { &all[..] } else { &[] };
        all.iter().filter_map(Node::text)
    }

    /// The value for a name.
    fn value(&self, name: &str) -> Option<&Node<'a>> {
        let Node::List(all) = self else { return None };
        let mut pairs = all.chunks_exact(2);
        pairs.find(|pair| pair[0].text() == Some(name)).map(|pair| &pair[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regatta_proto::resp::Replies;

    /// A reply of Redis 7.4, with line breaks as written.
    const HEXPIRE: &str = "*1 *10 +hexpire :-6 *3 +write +denyoom +fast :1 :1 :1 *3 +@write +@hash +@fast *0 *1 \
        *6 +flags *2 +RW +update +begin_search *4 +type +index +spec *2 +index :1 \
        +find_keys *4 +type +range +spec *6 +lastkey :0 +keystep :1 +limit :0 *0";

    fn reply(words: &str) -> Vec<u8> {
        words.split_whitespace().map(|word| format!("{word}\r\n")).collect::<String>().into_bytes()
    }

    fn read(words: &str) -> Option<Description> {
        Description::read("x", &reply(words))
    }

    #[test]
    fn a_description_becomes_a_command() {
        let description = Description::read("hexpire", &reply(HEXPIRE)).unwrap();
        let command = description.clone().leak();
        assert!(description.is_of(command));
        assert_eq!((command.name, command.arity), ("hexpire", -6));
        assert_eq!(command.flags, flag::WRITE | flag::DENYOOM | flag::FAST);
        let find = Find::Range { last: 0, step: 1, limit: 0 };
        let spec = KeySpec { flags: flag::RW | flag::UPDATE, begin: Begin::Index(1), find };
        assert_eq!(command.specs, [spec]);
        assert!(!command.is_container && command.takes(6) && !command.takes(5));
        let keys = command.keys(&["hexpire", "k", "9", "fields", "1", "f"][..]).unwrap();
        assert_eq!(keys.collect::<Vec<_>>(), [1]);
        for other in [HEXPIRE.replace(":-6", ":6"), HEXPIRE.replace("+denyoom", "+readonly")] {
            assert!(
                !Description::read("hexpire", &reply(&other)).unwrap().is_of(command),
                "{other}"
            );
        }
        assert!(!Description::read("hexpire2", &reply(HEXPIRE)).unwrap().is_of(command));
    }

    #[test]
    fn the_form_of_redis_6_is_read() {
        let specs = |words: &str| read(words).unwrap().specs;
        let range = |first, last, step| KeySpec {
            flags: 0,
            begin: Begin::Index(first),
            find: Find::Range { last, step, limit: 0 },
        };
        assert_eq!(specs("*1 *6 +x :3 *1 +write :1 :1 :1"), [range(1, 0, 1)]);
        assert_eq!(specs("*1 *6 +x :-3 *1 +write :2 :-1 :2"), [range(2, -1, 2)]);
        assert_eq!(specs("*1 *7 +x :-3 *1 +write :1 :2 :1 *0"), [range(1, 1, 1)]);
        assert_eq!(specs("*1 *7 +x :-3 *0 :0 :0 :0 *0"), []);
        assert_eq!(specs("*1 *7 +x :-3 *1 +movablekeys :1 :1 :1 *0"), [UNKNOWN]);
        assert_eq!(specs("*1 *7 +x :-3 *0 :-1 :1 :1 *0"), [UNKNOWN]);
        assert_eq!(specs("*1 *7 +x :-3 *0 _ :1 :1 *0"), [UNKNOWN]);
    }

    #[test]
    fn keys_that_numbers_alone_do_not_describe_are_unknown() {
        for other in [
            HEXPIRE.replace(
                "+index +spec *2 +index :1",
                "+keyword +spec *4 +keyword +KEYS +startfrom :1",
            ),
            HEXPIRE.replace("+index +spec *2 +index :1", "+unknown +spec *0"),
            HEXPIRE.replace("+range", "+other"),
            HEXPIRE.replace("+limit :0", "+limit :-1"),
            HEXPIRE.replace("+limit", "+limits"),
            HEXPIRE.replace("+index :1", "+index :70000"),
        ] {
            assert_eq!(read(&other).unwrap().specs, [UNKNOWN], "{other}");
        }
        // More specifications than can be followed.
        let (before, spec) = HEXPIRE.split_once("*1 *6").unwrap();
        let spec = format!("*6{}", spec.strip_suffix(" *0").unwrap());
        let all = format!("{before} *5 {} *0", [&spec[..]; 5].join(" "));
        assert_eq!(read(&all).unwrap().specs, [UNKNOWN]);
        assert_eq!(read(&all.replace("*5", "*4").replacen(&spec, "", 1)).unwrap().specs.len(), 4);
    }

    #[test]
    fn counted_keys_and_subcommands_are_read() {
        let counted = HEXPIRE
            .replace("+range", "+keynum")
            .replace("+lastkey :0 +keystep :1 +limit :0", "+keynumidx :0 +firstkey :1 +keystep :2");
        let find = Find::Number { at: 0, first: 1, step: 2 };
        assert_eq!(read(&counted).unwrap().specs[0].find, find);
        let container = HEXPIRE.strip_suffix("*0").unwrap().to_owned() + "*1 *1 +x|y";
        assert!(read(&container).unwrap().is_container);
        // RESP3 has maps and sets.
        let resp3 = HEXPIRE.replace("*3 +write", "~3 +write").replace("*6 +flags", "%3 +flags");
        assert_eq!(read(&resp3), read(HEXPIRE));
    }

    #[test]
    fn other_replies_describe_nothing() {
        for words in [
            "*1 *-1",
            "*1 _",
            "*0",
            "+OK",
            "-ERR",
            ":1",
            "*2 *6 +x :3 *0 :1 :1 :1 _",
            "*1 *5 +x :3 *0 :1 :1",
            "*1 *6 +x +y *0 :1 :1 :1",
            "*1 *6 +x :40000 *0 :1 :1 :1",
        ] {
            assert_eq!(read(words), None, "{words}");
        }
        let deep = "*1 ".repeat(DEEPEST + 1) + "*0";
        assert_eq!(read(&deep), None);
    }

    proptest! {
        /// Any whole reply is read, and a command that is described has keys among its arguments.
        #[test]
        fn any_reply_can_be_read(
            words in proptest::collection::vec(
                prop::sample::select(&["*1", "*2", "*6", "%1", "+index", "+type", ":1", ":-1", ":9", "_", "*0"][..]),
                0..30,
            ),
            cut in 0..60usize,
            count in 0..6usize,
        ) {
            let mut all: Vec<&str> = HEXPIRE.split_whitespace().collect();
            all.splice(cut.min(all.len()).., words);
            let bytes = reply(&all.join(" "));
            let whole = Replies::default().next(&bytes).is_ok_and(|found| found.whole);
            if let Some(description) = Description::read("x", &bytes) {
                prop_assert!(whole);
                let args = vec!["1"; count];
                let keys = description.leak().keys(&args[..]);
                if let Ok(mut keys) = keys {
                    prop_assert!(keys.all(|key| key < count));
                }
            }
        }
    }
}
