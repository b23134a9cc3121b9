//! The ring on connections: running out of buffers, sends that wait for buffer space, cancels.

use regatta_sys::uring::{Buffer, Completion, Received, Ring};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::OwnedFd,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

const TOKEN: u32 = 7;

/// Both sockets of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

fn shared(stream: TcpStream) -> Rc<OwnedFd> {
    Rc::new(stream.into())
}

/// Returns the next completion, which must arrive in time.
fn next(ring: &mut Ring) -> Completion {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(completion) = ring.completion() {
            return completion;
        }
        assert!(Instant::now() < end, "nothing is completed");
        ring.wait(Some(Duration::from_secs(1))).unwrap();
    }
}

#[test]
fn a_receive_without_free_buffers_is_reported_and_loses_nothing() {
    let mut ring = Ring::new().expect("io_uring is permitted");
    let (mut near, far) = pair();
    let far = shared(far);
    let said: Vec<u8> = (0..1000 * 1024u32).map(|i| (i % 251) as u8).collect();
    let saying = said.clone();
    let writing = thread::spawn(move || near.write_all(&saying));
    let (mut heard, mut starved) = (Vec::new(), 0);
    let mut lent: Vec<Buffer> = Vec::new();
    ring.receive(&far, TOKEN, true).unwrap();
    loop {
        let Completion::Received { token: TOKEN, result, more } = next(&mut ring) else {
            panic!("only a receive is in flight");
        };
        match result {
            Received::Bytes(mut buffer) => {
                heard.extend_from_slice(ring.bytes(&mut buffer));
                lent.push(buffer);
            }
            Received::Starved => {
                assert!(!lent.is_empty());
                starved += 1;
                lent.drain(..).for_each(|buffer| ring.give_back(buffer));
            }
            Received::End => break,
            other => panic!("{other:?}"),
        }
        if !more {
            ring.receive(&far, TOKEN, true).unwrap();
        }
    }
    writing.join().unwrap().unwrap();
    assert!(heard == said, "received {} of {} bytes, or wrong bytes", heard.len(), said.len());
    assert!(starved >= 2, "starved {starved} times");
}

#[test]
fn a_single_receive_completes_once_and_loses_nothing() {
    let mut ring = Ring::new().expect("io_uring is permitted");
    let (mut near, far) = pair();
    let far = shared(far);
    // More than the kernel puts into one buffer.
    let said: Vec<u8> = (0..60 * 1024u32).map(|i| (i % 251) as u8).collect();
    near.write_all(&said).unwrap();
    drop(near);
    let mut heard = Vec::new();
    loop {
        ring.receive(&far, TOKEN, false).unwrap();
        match next(&mut ring) {
            Completion::Received { token: TOKEN, result: Received::Bytes(mut buffer), more } => {
                assert!(!more, "the rest waits for the next receive");
                heard.extend_from_slice(ring.bytes(&mut buffer));
                ring.give_back(buffer);
                ring.wait(Some(Duration::from_millis(10))).unwrap();
                assert!(ring.completion().is_none(), "a single receive completed twice");
            }
            Completion::Received { result: Received::End, .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(heard == said, "received {} of {} bytes, or wrong bytes", heard.len(), said.len());
}

#[test]
fn a_send_continues_when_there_is_room_and_returns_its_buffer() {
    let mut ring = Ring::new().expect("io_uring is permitted");
    let (near, mut far) = pair();
    let near = shared(near);
    let reading = thread::spawn(move || {
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).map(|_| heard)
    });
    let said: Vec<u8> = (0..4 << 20).map(|i| (i % 251) as u8).collect();
    let (mut bytes, mut sent) = (said.clone(), 0);
    while sent < said.len() {
        ring.send(&near, TOKEN, bytes, sent, false).unwrap();
        match next(&mut ring) {
            Completion::Sent { token: TOKEN, result, bytes: back } => {
                sent += result.unwrap();
                bytes = back;
            }
            other => panic!("{other:?}"),
        }
    }
    drop(near);
    assert!(reading.join().unwrap().unwrap() == said);
}

#[test]
fn a_cancel_completes_a_waiting_operation() {
    let mut ring = Ring::new().expect("io_uring is permitted");
    let (near, _far) = pair();
    let near = shared(near);
    // More than a socket buffers, so that a send must wait.
    let (mut bytes, mut key) = (vec![0; 8 << 20], None);
    for _ in 0..1000 {
        key = Some(ring.send(&near, TOKEN, bytes, 0, false).unwrap());
        ring.wait(Some(Duration::from_millis(50))).unwrap();
        match ring.completion() {
            Some(Completion::Sent { bytes: back, .. }) => bytes = back,
            Some(other) => panic!("{other:?}"),
            None => break,
        }
        key = None;
    }
    ring.cancel_send(key.expect("a full socket makes a send wait")).unwrap();
    let Completion::Sent { result, .. } = next(&mut ring) else { panic!("the send is completed") };
    assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::ECANCELED));

    ring.receive(&near, TOKEN, true).unwrap();
    ring.cancel_receive(TOKEN).unwrap();
    let completion = next(&mut ring);
    let Completion::Received { result: Received::Cancelled, more: false, .. } = completion else {
        panic!("{completion:?}");
    };
}
