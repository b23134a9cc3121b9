//! Every contender answers the transcripts alike: our models, shared and by hand, and every peer
//! found here. Each is started as a race starts it, and must stop as a race wants it.

mod transcript;

use regatta_race::{
    Containment, Contender, Manifest, Running, Values, built_in, free_port, peers_folder,
};
use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    thread,
    time::Duration,
};

/// The contenders that serve `workload` and can be started here; the others are told as skipped.
fn contenders(workload: &str) -> Vec<Contender> {
    let mut all = built_in();
    all.retain(|contender| contender.manifest.adapter.is_none()); // the null server answers nothing
    let folder = peers_folder().expect("this checkout has peers");
    all.extend(Contender::find_all(&folder).expect("the manifests are right"));
    all.retain(|contender| contender.manifest.workloads.iter().any(|w| w == workload));
    // Exhibits are kept for what they do wrong.
    all.retain(|contender| !contender.manifest.about.starts_with("exhibit:"));
    all.retain(|contender| match contender.missing() {
        Some(why) => {
            eprintln!("skipped: {}: {why}", contender.manifest.name);
            false
        }
        None => true,
    });
    all
}

/// Starts every contender of `workload`, gives its manifest and address to `test`, stops it. All at
/// once; the failures are told together.
fn with_each(workload: &str, test: impl Fn(&Manifest, SocketAddr) -> Result<(), String> + Sync) {
    let contenders = contenders(workload);
    assert!(contenders.len() >= 4, "our four models at least");
    let failures: Vec<String> = thread::scope(|scope| {
        let running: Vec<_> = contenders
            .iter()
            .map(|contender| {
                let test = &test;
                scope.spawn(move || {
                    with(contender, workload, test)
                        .map_err(|why| format!("{}: {why}", contender.manifest.name))
                })
            })
            .collect();
        running.into_iter().filter_map(|thread| thread.join().unwrap().err()).collect()
    });
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn with(
    contender: &Contender,
    workload: &str,
    test: &impl Fn(&Manifest, SocketAddr) -> Result<(), String>,
) -> Result<(), String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_regatta"));
    let run = tempfile::tempdir().map_err(|error| error.to_string())?;
    let values = Values {
        port: free_port().map_err(|error| error.to_string())?,
        workload,
        cores: 2,
        dir: &contender.dir,
        run: run.path(),
        regatta: binary,
        nodes: &[],
    };
    let launch =
        contender.launch(&values, &[], Containment::Best).map_err(|error| error.to_string())?;
    let mut running = Running::start(binary, &launch).map_err(|error| error.to_string())?;
    running
        .wait_ready(&contender.manifest.ready, Duration::from_secs(20))
        .map_err(|error| error.to_string())?;
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, values.port));
    let tested = test(&contender.manifest, addr);
    let stopped = running.stop(Duration::from_secs(10)).map_err(|error| error.to_string())?;
    match (tested, stopped.fault()) {
        (Ok(()), None) => Ok(()),
        (Err(wrong), None) => Err(wrong),
        (Ok(()), Some(fault)) => Err(fault),
        (Err(wrong), Some(fault)) => Err(format!("{wrong}; and {fault}")),
    }
}

fn answers_the_transcripts(workload: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(workload);
    let transcripts = transcript::load_dir(&folder);
    let ours: Vec<String> = built_in().into_iter().map(|c| c.manifest.name).collect();
    with_each(workload, |manifest, addr| {
        let strict = ours.contains(&manifest.name);
        let deepest = manifest.limits.pipeline.unwrap_or(u32::MAX);
        let asked = transcripts.iter().filter(|t| (strict || !t.strict) && t.pipeline <= deepest);
        let wrong: Vec<String> = asked.filter_map(|t| transcript::play(t, addr).err()).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    });
}

#[test]
fn every_contender_answers_the_transcripts_of_double() {
    answers_the_transcripts("double");
}

#[test]
fn every_contender_answers_the_transcripts_of_the_dialogue() {
    answers_the_transcripts("dialogue");
}

#[test]
fn every_contender_answers_the_transcripts_of_hello() {
    answers_the_transcripts("hello");
}

/// Requests are sent and no reply is read, until the contender stops reading; then all replies are
/// read and must be there.
#[test]
fn every_contender_holds_back_a_client_that_does_not_read() {
    const REQUEST: &[u8] = b"1234567\n";
    const REPLY: &[u8] = b"2469134\n";
    /// Far above what the two ends' socket buffers may hold together.
    const TOO_MUCH: usize = 96 << 20;
    with_each("double", |_, addr| {
        let told = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(addr).map_err(told)?;
        stream.set_write_timeout(Some(Duration::from_millis(500))).map_err(told)?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(told)?;
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
