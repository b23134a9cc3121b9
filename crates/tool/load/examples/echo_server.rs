//! A plain epoll echo server, as a reference for the load's own cost: one thread, level-triggered, one
//! read and one write per event. `echo_server [CPU]` prints its address, and at the end of stdin the CPU
//! time that it has used.

use rustix::{
    buffer::spare_capacity,
    event::epoll::{self, CreateFlags, Event, EventData, EventFlags},
    net::{RecvFlags, SendFlags, recv, send},
    thread::{CpuSet, sched_setaffinity},
    time::{ClockId, clock_gettime},
};
use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd,
};

fn main() -> io::Result<()> {
    if let Some(cpu) = std::env::args().nth(1) {
        let mut cpus = CpuSet::new();
        cpus.set(cpu.parse().expect("a CPU number"));
        sched_setaffinity(None, &cpus)?;
    }
    std::thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let _ = writeln!(io::stdout(), "cpu_ns {}", cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec);
        std::process::exit(0);
    });
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    serve(&listener)
}

fn serve(listener: &TcpListener) -> io::Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let token = |fd: i32| EventData::new_u64(fd as u64);
    epoll::add(&epoll, listener, token(listener.as_raw_fd()), EventFlags::IN)?;
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut events: Vec<Event> = Vec::with_capacity(256);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in &events {
            let fd = { event.data }.u64() as usize;
            if fd == listener.as_raw_fd() as usize {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                let fd = stream.as_raw_fd() as usize;
                epoll::add(&epoll, &stream, token(fd as i32), EventFlags::IN)?;
                connections.resize_with(connections.len().max(fd + 1), || None);
                connections[fd] = Some(stream);
            } else if let Some(stream) = &connections[fd] {
                let echoed = match recv(stream, &mut buffer, RecvFlags::empty()) {
                    Ok((n @ 1.., _)) => send(stream, &buffer[..n], SendFlags::NOSIGNAL) == Ok(n),
                    _ => false,
                };
                if !echoed {
                    connections[fd] = None;
                }
            }
        }
    }
}
