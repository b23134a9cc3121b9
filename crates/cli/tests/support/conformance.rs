//! Contenders give the same answers to the transcripts: our models, with shared and hand-written code, and
//! installed peers, except exhibits. Each is started and stopped as in a race.

use super::{
    contender::Running,
    regatta, run,
    transcript::{self, Transcript},
};

use regatta_host::Role;
use regatta_race::{Adapter, Contender, Manifest, RoleCpus, built_in, peers_folder};
use regatta_record::EXHIBIT;
use regatta_script::hash_file;
use regatta_testkit::skip;
use std::{
    fs,
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    iter,
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

/// The peers that are tested.
#[derive(Clone, Copy)]
pub enum Peers {
    /// Those that are installed quickly, start at once and need few processes.
    Quick,
    /// All that are installed.
    All,
}

/// See [`Peers::Quick`].
const QUICK: [&str; 8] =
    ["caddy", "grpc-go", "grpc-js", "nginx", "node", "redis-direct", "tonic", "valkey"];

/// The contenders to which transcripts are also sent in pieces among [`Peers::Quick`]: one for each way in which
/// the code of a connection is written, and for each driver.
const CUT: [&str; 5] = ["threads", "green", "epoll", "uring", "async"];

/// Returns the contenders that serve `workload` and can be started here, except null servers and
/// exhibits. Reports that the test is skipped for those that cannot be started.
fn contenders(workload: &str, peers: Peers) -> Vec<Contender> {
    let mut all = built_in();
    let folder = peers_folder().expect("this checkout has peers");
    let mut others = Contender::find_all(&folder).expect("the manifests are right");
    if let Peers::Quick = peers {
        others.retain(|peer| QUICK.contains(&peer.manifest.name.as_str()));
    }
    all.extend(others);
    // The null server does not compute replies.
    all.retain(|contender| !contender.manifest.adapter.is_some_and(Adapter::is_null));
    // An exhibit is expected to be wrong.
    all.retain(|contender| !contender.manifest.about.starts_with(EXHIBIT));
    all.retain(|contender| contender.manifest.workloads.iter().any(|w| w == workload));
    all.retain(|contender| match contender.missing() {
        Some(why) => {
            skip(&format!("{}: {why}", contender.manifest.name));
            false
        }
        None => true,
    });
    all
}

/// A running contender.
struct Served<'a> {
    manifest: &'a Manifest,
    addr: SocketAddr,
    /// The file that it reads, if its workload is `hash`.
    file: &'a Path,
    /// The addresses of its backends.
    backends: Vec<SocketAddr>,
}

/// Number of contenders that run at a time. Some have hundreds of processes or a virtual machine that
/// warms up, and there may be only two CPUs.
const AT_ONCE: usize = 4;
/// Deadline of a reply while other contenders run.
const WITHIN: Duration = Duration::from_secs(30);

/// Starts every contender of `workload`, passes it to `test`, and stops it. Runs a few at a time and
/// reports all failures together.
fn with_each(
    workload: &str,
    peers: Peers,
    test: impl Fn(&Served<'_>) -> Result<(), String> + Sync,
) {
    let contenders = contenders(workload, peers);
    // Our models need only this program; the nodes of `shard` need a redis-server.
    let least = if workload == "shard" { 0 } else { 4 };
    assert!(contenders.len() >= least, "our four models at least");
    let next = AtomicUsize::new(0);
    let some = || -> Vec<String> {
        let each = iter::from_fn(|| contenders.get(next.fetch_add(1, Relaxed)));
        let failed = each.filter_map(|contender| {
            let why = with(contender, workload, &test).err()?;
            Some(format!("{}: {why}", contender.manifest.name))
        });
        failed.collect()
    };
    let failures: Vec<String> = thread::scope(|scope| {
        let running: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(some)).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn with(
    contender: &Contender,
    workload: &str,
    test: &impl Fn(&Served<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let running = Running::start(contender, workload, 2, &RoleCpus::default())?;
    let (addr, file) = (running.addr, running.file.as_path());
    let (_server, behind) = running.roles.all().split_last().expect("the server comes last");
    let backends = behind.iter().flat_map(Role::addresses).collect();
    let tested = test(&Served { manifest: &contender.manifest, addr, file, backends });
    match (tested, running.stop()) {
        (Err(wrong), Err(fault)) => Err(format!("{wrong}; and {fault}")),
        (tested, stopped) => tested.and(stopped),
    }
}

pub fn answers_the_transcripts(workload: &str, peers: Peers) {
    let transcripts = load_transcripts(workload);
    with_each(workload, peers, |served| answers(served, peers, &transcripts));
}

/// Each contender whose manifest says that it speaks HTTP/2 answers `hello` over it, on many streams.
pub fn serves_hello_over_http2(peers: Peers) {
    let over = Some("http2");
    let mut all = contenders("hello", peers);
    all.retain(|contender| contender.manifest.over.contains_key("http2"));
    for contender in all {
        let name = &contender.manifest.name;
        let served = with(&contender.started_over(over), "hello", &|served: &Served<'_>| {
            let url = format!("http://{}/", served.addr);
            let load = regatta!("load {url} --workload hello --http2 -c 4 -p 16 --requests 1000");
            let ended = run(load);
            if ended.status.success() { Ok(()) } else { Err(ended.stderr) }
        });
        assert_eq!(served, Ok(()), "{name}");
    }
}

/// Calls of SayHello with their replies: no name, names in two scripts, and one of 100,000 bytes; and of
/// SayHelloStreamReply with a single reply, which is one of a unary call.
fn calls() -> String {
    let call = |method: &str, message: &[u8], reply: &str| {
        let reply = field(1, reply.as_bytes());
        format!(
            "[[request]]\npath = '/helloworld.Greeter/{method}'\nmessage_hex = '{}'\nexpect_hex = '{}'\n",
            hex(message),
            hex(&reply)
        )
    };
    let long = "n".repeat(100_000);
    let names = ["a", "bc", "Zoë", "世界", &long];
    let hellos =
        names.map(|name| call("SayHello", &field(1, name.as_bytes()), &format!("Hello {name}")));
    let none = call("SayHello", &[], "Hello ");
    let single = [&field(1, b"a")[..], &[0x10, 1]].concat();
    let single = call("SayHelloStreamReply", &single, "Hello a 1");
    format!("protocol = 'grpc'\n{}{none}{single}", hellos.concat())
}

/// A field of Protocol Buffers that has bytes or a text.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Each contender of the workload `grpc` answers calls that are in flight together on many streams, and says so if
/// there is no such method, or if a stream has more than one reply.
pub fn answers_calls(peers: Peers) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.toml");
    fs::write(&file, calls()).expect("written");
    let file = file.to_str().expect("a path");
    let mixed = ["--workload", file, "-c", "4", "-p", "16", "-n", "2000", "--timeout", "30s"];
    let few = ["-c", "1", "-n", "1", "--timeout", "30s", "--message-hex", "0a01611002"];
    for contender in contenders("grpc", peers) {
        let name = &contender.manifest.name;
        let served = with(&contender, "grpc", &|served: &Served<'_>| {
            let load = |path: &str, more: &[&str]| {
                let url = format!("grpc://{}{path}", served.addr);
                let ended = run(regatta!("load {url}").args(more));
                (ended.status.code(), ended.stdout + &ended.stderr)
            };
            let wrong = |path: &str, part: &str| match load(path, &few) {
                (Some(1), said) if said.contains(part) => Ok(()),
                (code, said) => Err(format!("{path}: expected {part:?}, got {code:?}: {said}")),
            };
            let (code, said) = load("", &mixed);
            if code != Some(0) {
                return Err(said);
            }
            wrong("/helloworld.Greeter/SayNothing", "grpc-status 12 (UNIMPLEMENTED)")?;
            wrong("/helloworld.Nobody/SayHello", "grpc-status 12 (UNIMPLEMENTED)")?;
            // The message asks for two replies.
            wrong("/helloworld.Greeter/SayHelloStreamReply", "more bytes behind the message")
        });
        assert_eq!(served, Ok(()), "{name}");
    }
}

fn load_transcripts(workload: &str) -> Vec<Transcript> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(workload);
    transcript::load_dir(&folder)
}

/// Plays the transcripts. Strict ones are only for our own servers, and a transcript is skipped if its
/// pipeline exceeds the contender's limit.
fn answers(served: &Served<'_>, peers: Peers, transcripts: &[Transcript]) -> Result<(), String> {
    let Served { manifest, addr, .. } = served;
    let ours = built_in().iter().any(|contender| contender.manifest.name == manifest.name);
    let deepest = manifest.limits.pipeline.unwrap_or(u32::MAX);
    let asked = transcripts.iter().filter(|t| (ours || !t.strict) && t.pipeline <= deepest);
    let is_cut = matches!(peers, Peers::All) || CUT.contains(&manifest.name.as_str());
    let play = if is_cut { transcript::play } else { transcript::play_whole };
    let wrong: Vec<String> = asked.filter_map(|t| play(t, *addr, WITHIN).err()).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// In addition to the transcripts, the file is changed, removed and restored. Every reply must show the
/// file's state at the time of the request.
pub fn answers_the_transcripts_of_hash(peers: Peers) {
    const DIGEST_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let transcripts = load_transcripts("hash");
    with_each("hash", peers, |served| {
        answers(served, peers, &transcripts)?;
        let Served { addr, file, .. } = served;
        let change = |what: io::Result<()>| what.map_err(|error| error.to_string());
        expect_hash(*addr, "200", hash_file::DIGEST)?;
        change(fs::write(file, "abc"))?;
        expect_hash(*addr, "200", DIGEST_OF_ABC)?;
        change(fs::remove_file(file))?;
        expect_hash(*addr, "500", "")?;
        change(hash_file::write(file))?;
        expect_hash(*addr, "200", hash_file::DIGEST)
    });
}

/// Requests the digest on a new connection.
fn expect_hash(addr: SocketAddr, status: &str, content: &str) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let mut stream = TcpStream::connect(addr).map_err(text)?;
    stream.set_read_timeout(Some(WITHIN)).map_err(text)?;
    let request = b"GET /hash?n=2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request).map_err(text)?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).map_err(text)?;
    match reply.starts_with(&format!("HTTP/1.1 {status} ")) && reply.contains(content) {
        true => Ok(()),
        false => Err(format!("expected a reply with {status} and {content:?}, got {reply:?}")),
    }
}

/// Every proxy must spread short keys that differ only in a number, like those of the load, over all its
/// nodes; otherwise it could not be compared with the others.
pub fn spreads_keys_over_all_nodes(peers: Peers) {
    const KEYS: usize = 4_000;
    with_each("shard", peers, |Served { addr, backends, .. }| {
        if backends.is_empty() {
            return Ok(());
        }
        let requests: Vec<u8> = (0..KEYS).flat_map(|n| redis_set(&format!("key:{n}"))).collect();
        let replies = ask_redis(*addr, &requests, KEYS)?;
        if replies.iter().any(|reply| reply != "+OK") {
            return Err(format!("expected +OK for each SET, got {:?}", replies.last()));
        }
        let mut counts = Vec::new();
        for node in backends {
            let size = ask_redis(*node, b"*1\r\n$6\r\nDBSIZE\r\n", 1)?;
            let size = size[0].strip_prefix(':').and_then(|size| size.parse::<usize>().ok());
            counts.push(size.ok_or("expected a number for DBSIZE")?);
        }
        let (all, least) = (counts.iter().sum::<usize>(), counts.iter().min());
        match all == KEYS && least > Some(&(KEYS / backends.len() / 2)) {
            true => Ok(()),
            false => Err(format!("of {KEYS} keys the nodes have {counts:?}")),
        }
    });
}

/// Returns a request that sets a key.
fn redis_set(key: &str) -> Vec<u8> {
    format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n$5\r\nvalue\r\n", key.len()).into_bytes()
}

/// Sends requests and reads their replies, one line each.
fn ask_redis(addr: SocketAddr, requests: &[u8], replies: usize) -> Result<Vec<String>, String> {
    let text = |error: io::Error| error.to_string();
    let mut stream = TcpStream::connect(addr).map_err(text)?;
    stream.set_read_timeout(Some(WITHIN)).map_err(text)?;
    stream.write_all(requests).map_err(text)?;
    let lines: Vec<String> =
        BufReader::new(stream).lines().take(replies).collect::<Result<_, _>>().map_err(text)?;
    match lines.len() == replies {
        true => Ok(lines),
        false => Err(format!("the connection was closed after {} replies", lines.len())),
    }
}

/// The client sends requests without reading replies until the contender stops reading. Then it reads
/// the replies, and none may be missing.
pub fn stops_reading_from_a_client_that_does_not_read(peers: Peers) {
    const REQUEST: &[u8] = b"1234567\n";
    const REPLY: &[u8] = b"2469134\n";
    /// Far more than the socket buffers of both ends can hold together.
    const TOO_MUCH: usize = 96 << 20;
    with_each("double", peers, |Served { addr, .. }| {
        let text = |error: io::Error| error.to_string();
        let mut stream = TcpStream::connect(addr).map_err(text)?;
        stream.set_write_timeout(Some(Duration::from_millis(500))).map_err(text)?;
        stream.set_read_timeout(Some(WITHIN)).map_err(text)?;
        let block = REQUEST.repeat(8192);
        let mut sent = 0;
        loop {
            match stream.write(&block[sent % REQUEST.len()..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(format!("expected the write to block, got {error}")),
            }
            if sent >= TOO_MUCH {
                return Err(format!("took {sent} bytes from a client that does not read"));
            }
        }
        let expected = REPLY.repeat(8192);
        let mut replies = vec![0; expected.len()];
        let mut left = sent / REQUEST.len() * REPLY.len();
        while left > 0 {
            let part = left.min(replies.len());
            let read = stream.read_exact(&mut replies[..part]);
            read.map_err(|error| format!("{left} bytes of replies are missing: {error}"))?;
            if replies[..part] != expected[..part] {
                return Err("a reply was wrong".into());
            }
            left -= part;
        }
        Ok(())
    });
}

/// The load checks every delivery. Some hubs need an adapter for their protocol.
pub fn delivers_every_message(peers: Peers) {
    with_each("hub", peers, |Served { manifest, addr, .. }| {
        let url = format!("ws://{addr}{}", manifest.path.as_deref().unwrap_or("/ws"));
        let mut load = regatta!("load {url} -c 8 -n 200 --timeout 30s");
        if let Some(Adapter::Speaks(name)) = manifest.adapter {
            load.args(["--adapter", name]);
        }
        let ended = run(load);
        if ended.status.success() {
            return Ok(());
        }
        Err(format!("{}: {}{}", ended.status, ended.stdout, ended.stderr))
    });
}
