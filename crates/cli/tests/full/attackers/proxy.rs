//! Attackers of the proxy.

use super::{
    attack::{Held, Kind, dial, kind, read_most, reset},
    beside::Attacked,
};
use crate::support::{
    Server,
    shard::{client, nodes::Node, on_shard_models, proxy},
};
use regatta_proto::resp::write_command;
use regatta_testkit::machine;
use std::{
    fs,
    io::{self, Read, Write},
    iter,
    net::{Shutdown, SocketAddr, TcpStream},
};
use tempfile::TempDir;

/// `--all-buffers` of each core, in MiB.
const BUDGET: u64 = 128;
/// Memory of the proxy without its clients' buffers, in MiB: the program, threads, connections.
const STANDING: u64 = 64;
const PASSWORD: &str = "secret-of-the-nodes";
/// Size of the value at `60mib`, in bytes.
const LARGE: usize = 60 << 20;

on_shard_models!(attackers_of_many_kinds_do_not_harm_others: percore, uring, epoll);

fn attackers_of_many_kinds_do_not_harm_others(model: &str) {
    let _turn = machine::alone();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("password");
    fs::write(&path, PASSWORD).unwrap();
    let path = path.to_str().unwrap();
    let nodes: Vec<Node> = (0..4).map(|_| Node::start(&["--requirepass", PASSWORD])).collect();
    let budget = BUDGET.to_string();
    let options =
        ["--node-password-file", path, "--all-buffers", &budget, "--request-timeout", "10s"];
    let (server, twin) = (proxy(model, &nodes, &options), proxy(model, &nodes, &options));
    // The same with a password of its own.
    let guarded = proxy(model, &nodes, &[&options[..], &["--password-file", path]].concat());
    prepare(&server);
    let cores =
        if model == "epoll" { 1 } else { std::thread::available_parallelism().unwrap().get() };
    let (at, strangers) = (server.addr, guarded.addr);
    Attacked {
        name: format!("shard on {model}"),
        honest: vec![format!("redis://{at}"), "-c".into(), "20".into()],
        rate: 500.0,
        // The documentation promises two and a half times the budget.
        budget: (cores as u64 * BUDGET * 5 / 2 + STANDING) << 20,
        kinds: &|at| kinds(at, strangers),
        left: &|| vec![("connections of the nodes", nodes.iter().map(connections).sum())],
        server,
        twin,
    }
    .withstands();
}

/// Stores what the attackers request.
fn prepare(server: &Server) {
    let mut client = client(server);
    let value = vec![b'x'; LARGE];
    assert_eq!(client.ask(&[&b"SET"[..], b"60mib", &value]), b"+OK\r\n");
    assert_eq!(client.ask(&[&b"SET"[..], b"100kb", &value[..100_000]]), b"+OK\r\n");
    assert_eq!(client.say("SET small v"), "+OK\r\n");
    assert_eq!(client.say("HSET hash field value"), ":1\r\n");
}

/// The number of connections that a node has.
fn connections(node: &Node) -> u64 {
    let mut client = node.client();
    assert_eq!(client.say(&format!("AUTH {PASSWORD}")), "+OK\r\n");
    let info = client.say("INFO clients");
    let line = info.lines().find_map(|line| line.strip_prefix("connected_clients:"));
    line.expect("the number of clients").parse().expect("a number")
}

/// A command of words.
fn command(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_command(line.split(' ').map(str::as_bytes).collect::<Vec<_>>(), &mut out);
    out
}

/// Connects and sends bytes.
fn say(at: SocketAddr, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut stream = dial(at)?;
    stream.write_all(bytes)?;
    Ok(stream)
}

/// Like [`say`], and holds the connection, even if the proxy has stopped to read from it.
fn say_some(at: SocketAddr, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut stream = dial(at)?;
    let _ = stream.write_all(bytes);
    Ok(stream)
}

/// Returns the bytes of the answer, of which there must be as many as expected.
fn answer(stream: &mut TcpStream, bytes: usize) -> io::Result<Vec<u8>> {
    let mut answer = vec![0; bytes];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// Reads replies up to this end.
fn read_to(stream: &mut TcpStream, end: &[u8]) -> io::Result<()> {
    let mut came = Vec::new();
    while !came.ends_with(end) {
        came.extend(answer(stream, 1)?);
        assert!(came.len() < 10_000, "{}", came.escape_ascii());
    }
    Ok(())
}

fn kinds(at: SocketAddr, guarded: SocketAddr) -> Vec<Kind> {
    [strangers(guarded), incomplete(at), unread(at), leaving(at), odd(at)]
        .into_iter()
        .flatten()
        .collect()
}

/// Clients that do not authenticate.
fn strangers(at: SocketAddr) -> Vec<Kind> {
    let (part, mut parts) = ([&b"*10\r\n$16000\r\n"[..], &[b'x'; 15_999]].concat(), Held::new(200));
    vec![
        kind("half of a large request before AUTH", 50, move || parts.add(say_some(at, &part))),
        kind("wrong passwords", 50, move || {
            let reply = answer(&mut say(at, &command("AUTH guessed"))?, 10)?;
            assert_eq!(reply, b"-WRONGPASS");
            Ok(())
        }),
    ]
}

/// Requests that never become complete.
fn incomplete(at: SocketAddr) -> Vec<Kind> {
    let mut large = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$50000000\r\n".to_vec();
    large.resize(1 << 20, b'x');
    let mut many = b"*1000000\r\n".to_vec();
    many.extend(iter::repeat_n(*b"$1\r\na\r\n", 20_000).flatten());
    let slow = command(&format!("SET slow {}", "x".repeat(1000)));
    let (mut heads, mut values, mut counts) = (Held::new(200), Held::new(30), Held::new(10));
    let mut loris: Held<(TcpStream, usize)> = Held::new(50);
    vec![
        kind("part of a head", 50, move || heads.add(say(at, b"*3\r\n$3\r\nSE"))),
        kind("part of a value of 50 MB", 200, move || values.add(say_some(at, &large))),
        kind("a million arguments, one of 50 sent", 500, move || counts.add(say_some(at, &many))),
        kind("a byte a second", 1000, move || {
            while !loris.is_full() {
                loris.add(Ok((dial(at)?, 0)))?;
            }
            loris.retain(|(stream, sent)| {
                *sent += 1;
                // A connection on which all was sent is replaced.
                let byte = slow.get(*sent - 1..*sent).ok_or(io::ErrorKind::UnexpectedEof)?;
                stream.write_all(byte)
            });
            Ok(())
        }),
    ]
}

/// Clients that do not read.
fn unread(at: SocketAddr) -> Vec<Kind> {
    let gets = command("GET small").repeat(100_000);
    let mget = command(&format!("MGET {}", ["small"; 5_000].join(" "))).repeat(20);
    let channels: Vec<String> = (0..10_000).map(|number| format!("channel-{number}")).collect();
    let subscribe = command(&format!("SUBSCRIBE {}", channels.join(" ")));
    let (mut pipelines, mut values) = (Held::new(3), Held::new(3));
    let (mut lists, mut subscribers) = (Held::new(3), Held::new(3));
    vec![
        kind("100,000 pipelined GETs", 10_000, move || pipelines.add(say_some(at, &gets))),
        // Clients that share the connection to the node wait until such a value has passed, so it is rare.
        kind("60 MiB", 30_000, move || values.add(say_some(at, &command("GET 60mib")))),
        kind("long MGETs", 2_000, move || lists.add(say_some(at, &mget))),
        kind("SUBSCRIBE to 10,000 channels", 10_000, move || {
            subscribers.add(say_some(at, &subscribe))
        }),
        kind("a reset inside of a reply", 200, move || {
            let mut stream = say(at, &command("GET 100kb").repeat(20))?;
            answer(&mut stream, 1000)?;
            reset(&stream)
        }),
    ]
}

/// Clients that leave while something is pending.
fn leaving(at: SocketAddr) -> Vec<Kind> {
    let queue =
        [command("MULTI"), command(&format!("SET {{queue}}k {}", "x".repeat(100))).repeat(1_000)]
            .concat();
    vec![
        kind("half-closes after a request", 50, move || {
            let mut stream = say(at, &command("GET small"))?;
            stream.shutdown(Shutdown::Write)?;
            assert_eq!(read_most(&mut stream, 1000)?.escape_ascii().to_string(), r"$1\r\nv\r\n");
            Ok(())
        }),
        kind("BLPOP and close", 50, move || say(at, &command("BLPOP nothing 0")).map(drop)),
        kind("BLPOP and reset", 50, move || reset(&say(at, &command("BLPOP nothing 0"))?)),
        kind("MULTI, 1,000 commands, and close", 500, move || {
            answer(&mut say(at, &queue)?, 5 + 9 * 1_000)?;
            Ok(())
        }),
        kind("WATCH and reset", 50, move || {
            let mut stream = say(at, &command("WATCH small"))?;
            assert_eq!(answer(&mut stream, 5)?, b"+OK\r\n");
            reset(&stream)
        }),
        kind("QUIT in a pipeline", 50, move || {
            let gets = command("GET small").repeat(5);
            let mut stream = say(at, &[&gets[..], &command("QUIT"), &gets].concat())?;
            let came = read_most(&mut stream, 1000)?;
            assert_eq!(came, [&b"$1\r\nv\r\n".repeat(5)[..], b"+OK\r\n"].concat());
            Ok(())
        }),
        kind("connects and closes", 20, move || dial(at).map(drop)),
    ]
}

/// Clients that send unusual or malformed requests.
fn odd(at: SocketAddr) -> Vec<Kind> {
    let malformed: [&[u8]; 8] = [
        b"*-5\r\n$1\r\nx\r\n",
        b"*2\r\n$abc\r\n",
        b"*99999999999999999999\r\n",
        b"*1\r\n$-7\r\n",
        b"*1\r\n:5\r\n",
        b"*2\r\n$600000000\r\n",
        b"GET \"unbalanced\r\n",
        &[0; 70_000],
    ];
    let mut malformed = malformed.map(<[u8]>::to_vec).into_iter().cycle();
    let mut idle = Held::new(300);
    let scripts = [
        "EVAL local\u{a0}t={}\u{a0}for\u{a0}i=1,60\u{a0}do\u{a0}t={t}\u{a0}end\u{a0}return\u{a0}t 1 k",
        "EVAL return\u{a0}string.rep('x',500000) 1 k",
        "EVAL local\u{a0}t={}\u{a0}for\u{a0}i=1,2000\u{a0}do\u{a0}t[i]=i\u{a0}end\u{a0}return\u{a0}t 1 k",
        "EVAL return\u{a0}redis.call('nothing') 1 k",
    ];
    let mut scripts = scripts.map(script).into_iter().cycle();
    vec![
        kind("protocol errors", 50, move || {
            let mut stream = say_some(at, &malformed.next().expect("it cycles"))?;
            stream.shutdown(Shutdown::Write)?;
            read_most(&mut stream, 10_000).map(drop)
        }),
        kind("idle connections", 20, move || idle.add(dial(at))),
        kind(
            "SUBSCRIBE and UNSUBSCRIBE with messages on their way",
            50,
            keeping(at, move |subscriber| {
                subscriber.write_all(&command("SUBSCRIBE churn"))?;
                let mut publisher = say(at, &command("PUBLISH churn message").repeat(5))?;
                subscriber.write_all(&[command("UNSUBSCRIBE churn"), command("PING")].concat())?;
                answer(&mut publisher, 4 * 5)?;
                read_to(subscriber, b"+PONG\r\n")
            }),
        ),
        kind("scripts with long and deep replies", 500, move || {
            let mut stream = say(at, &scripts.next().expect("it cycles"))?;
            read_most(&mut stream, 100_000).map(drop)
        }),
        kind("CONFIG GET of passwords", 100, move || {
            let mut stream = dial(at)?;
            for name in ["requirepass", "masterauth", "*", "*pass*"] {
                stream.write_all(&command(&format!("CONFIG GET {name}")))?;
            }
            stream.shutdown(Shutdown::Write)?;
            let came = read_most(&mut stream, 1 << 20)?.escape_ascii().to_string();
            assert!(!came.is_empty() && !came.contains(PASSWORD), "{came}");
            Ok(())
        }),
        kind(
            "HELLO 2 and HELLO 3 in turn",
            100,
            keeping(at, move |stream| {
                for (version, reply) in [(3, "%1\r\n"), (2, "*2\r\n")] {
                    let hello = format!("HELLO {version}");
                    let requests = [&hello[..], "ECHO mark", "HGETALL hash"];
                    stream.write_all(&requests.map(command).concat())?;
                    let end = format!("$4\r\nmark\r\n{reply}$5\r\nfield\r\n$5\r\nvalue\r\n");
                    read_to(stream, end.as_bytes())?;
                }
                Ok(())
            }),
        ),
    ]
}

/// A command whose words may contain spaces, written as no-break spaces.
fn script(line: &str) -> Vec<u8> {
    let words: Vec<String> = line.split(' ').map(|word| word.replace('\u{a0}', " ")).collect();
    let mut out = Vec::new();
    write_command(words.iter().map(String::as_bytes).collect::<Vec<_>>(), &mut out);
    out
}

/// Steps on one connection, which is opened again after an error.
fn keeping(
    at: SocketAddr,
    mut step: impl FnMut(&mut TcpStream) -> io::Result<()>,
) -> impl FnMut() -> io::Result<()> {
    let mut kept: Option<TcpStream> = None;
    move || {
        let mut stream = kept.take().map_or_else(|| dial(at), Ok)?;
        step(&mut stream)?;
        kept = Some(stream);
        Ok(())
    }
}
