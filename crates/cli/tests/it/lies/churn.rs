//! Conversations of several steps, each on a new connection.

use crate::lies::{
    load,
    server::{Server, read_head, reply},
};
use std::{
    fs,
    io::{BufReader, Write},
    sync::{Arc, Mutex, atomic::Ordering::SeqCst},
};

#[test]
fn churn_sends_all_steps_of_a_conversation_of_lines() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let steps = seen.clone();
    let server = Server::lines(move |_, i, line| {
        steps.lock().unwrap().push(format!("{i} {line}"));
        Some(format!("{line}!\n"))
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("steps.toml");
    let text = "protocol = 'line'\n[[request]]\nsteps = [{send = 'a', exact = 'a!'}, \
                {send = 'b', exact = 'b!'}, {send = 'c', exact = 'c!'}]\n";
    fs::write(&file, text).unwrap();
    let more = ["-n", "300", "-c", "4", "--churn", "--workload", file.to_str().unwrap()];
    let ended = load(&server.line_url(), &more).with_status(0);
    assert!(ended.line("requests").starts_with("300 in "), "{}", ended.stdout);
    let seen = seen.lock().unwrap();
    for step in ["0 a", "1 b", "2 c"] {
        let times = seen.iter().filter(|one| *one == step).count();
        assert!((96..=104).contains(&times), "{step} {times} times of {}", seen.len());
    }
    assert_eq!(seen.len(), 300);
    // A connection's share of the requests may end inside a conversation.
    assert!((100..=104).contains(&server.accepted.load(SeqCst)), "{:?}", server.accepted);
}

#[test]
fn churn_sends_connection_close_only_with_the_last_step() {
    let heads: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let seen = heads.clone();
    let server = Server::start(move |_, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut own = Vec::new();
        while let Some(head) = read_head(&mut reader) {
            let closes = head.contains("Connection: close");
            let path = head.split(' ').nth(1).unwrap();
            own.push(format!("{path}{}", if closes { " last" } else { "" }));
            if (&stream).write_all(reply(200, "ok").as_bytes()).is_err() || closes {
                break;
            }
        }
        seen.lock().unwrap().push(own);
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("steps.toml");
    let text = "protocol = 'http'\n[[request]]\nsteps = [{path = '/a'}, {path = '/b'}]\n\
                [[request]]\npath = '/c'\n";
    fs::write(&file, text).unwrap();
    let more = ["-n", "300", "-c", "1", "--churn", "--workload", file.to_str().unwrap()];
    let url = server.http_url();
    load(url.trim_end_matches('/'), &more).with_status(0);
    let heads = heads.lock().unwrap();
    let whole = |own: &&Vec<String>| own[..] == ["/a", "/b last"] || own[..] == ["/c last"];
    let others: Vec<_> = heads.iter().filter(|own| !whole(own)).collect();
    // The last conversation may have no request left for its second step.
    assert!(others.len() <= 1 && others.iter().all(|own| own[..] == ["/a"]), "{others:?}");
    assert_eq!(heads.iter().map(Vec::len).sum::<usize>(), 300);
    assert!(heads.iter().any(|own| own.len() == 2));
}
