//! A contender for the tests of the referee. It speaks `double` and lets a daemon do its work, which is
//! not one of its own processes. `handed_over daemon SOCKET` is the daemon.
//! `handed_over PORT SOCKET all|beside|connections` is the contender. With `all` only the daemon
//! listens on the port; with `beside` both listen (SO_REUSEPORT); with `connections` the contender listens
//! and passes each connection to the daemon. The daemon closes the port when the contender exits.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use socket2::{Domain, Socket, Type};
use std::{
    env,
    io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::{
        fd::AsFd,
        unix::net::{UnixListener, UnixStream},
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["daemon", path] => daemon(&UnixListener::bind(path)?),
        [port, path, how] => contender(port.parse().expect("a port"), path, how),
        _ => panic!("usage: handed_over daemon SOCKET | PORT SOCKET all|beside|connections"),
    }
}

fn contender(port: u16, path: &str, how: &str) -> io::Result<()> {
    let daemon = UnixStream::connect(path)?;
    // Port 0: the daemon does not listen.
    writeln!(&daemon, "{}", if how == "connections" { 0 } else { port })?;
    // The daemon answers once it listens.
    (&daemon).read_exact(&mut [0])?;
    if how == "all" {
        return sleep_for_ever();
    }
    // After the daemon, so that nobody sees a port that only this process serves.
    let own = listen(port)?;
    for stream in own.incoming() {
        match how {
            "connections" => pass(&daemon, &stream?)?,
            _ => {
                let stream = stream?;
                thread::spawn(move || answer(&stream));
            }
        }
    }
    Ok(())
}

/// Sleeps for ten minutes, unless the process is killed before.
fn sleep_for_ever() -> io::Result<()> {
    thread::sleep(Duration::from_secs(600));
    Ok(())
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(128)?;
    Ok(socket.into())
}

fn pass(to: &UnixStream, stream: &TcpStream) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [stream.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(to, &[IoSlice::new(b"c")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Serves each contender on a thread.
fn daemon(asked: &UnixListener) -> io::Result<()> {
    for contender in asked.incoming() {
        let contender = contender?;
        thread::spawn(move || work_for(&contender).expect("a contender's work"));
    }
    Ok(())
}

fn work_for(contender: &UnixStream) -> io::Result<()> {
    let mut line = String::new();
    // Reads one byte at a time, because the next one may carry a descriptor.
    let mut byte = [0];
    while (&mut &*contender).read(&mut byte)? == 1 && byte != *b"\n" {
        line.push(byte[0].into());
    }
    let port: u16 = line.parse().expect("a port");
    let (is_over, mut listening) = (Arc::new(AtomicBool::new(false)), None);
    if port != 0 {
        let listener = listen(port)?;
        let is_over = Arc::clone(&is_over);
        listening = Some(thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(Relaxed) {
                    return;
                }
                thread::spawn(move || answer(&stream));
            }
        }));
    }
    (&mut &*contender).write_all(b"!")?;
    while let Some(stream) = passed(contender)? {
        thread::spawn(move || answer(&stream));
    }
    is_over.store(true, Relaxed);
    if let Some(listening) = listening {
        // Wakes the listener, which may have accepted a connection meanwhile and returned.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        listening.join().expect("a listener");
    }
    Ok(())
}

/// Returns the next connection that the contender passes on; `None` when the contender has exited.
fn passed(contender: &UnixStream) -> io::Result<Option<TcpStream>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let data = &mut [IoSliceMut::new(&mut byte)];
    // If the contender is killed, the socket closes without a reset.
    recvmsg(contender, data, &mut control, RecvFlags::empty())?;
    let rights = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(rights.map(TcpStream::from))
}

/// Doubles each line until the client disconnects.
fn answer(stream: &TcpStream) {
    let mut lines = BufReader::new(stream);
    let (mut line, mut answers) = (String::new(), Vec::new());
    while lines.read_line(&mut line).is_ok_and(|n| n > 0) {
        let asked: i128 = line.trim_end().parse().expect("an integer");
        writeln!(answers, "{}", asked * 2).expect("room for the answer");
        line.clear();
        // One write for all lines that arrived together.
        if !lines.buffer().contains(&b'\n') {
            if { stream }.write_all(&answers).is_err() {
                return;
            }
            answers.clear();
        }
    }
}
