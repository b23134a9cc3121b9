//! How dear it is at this moment that two CPUs talk to each other: the time of a fixed piece of work.
//!
//! A virtual machine's CPUs are threads of the host, which moves them about: now they share a cache,
//! now they do not, for seconds at a time. Every message between server and load then costs both of
//! them more, whatever the contender. A single CPU at work by itself shows nothing of that. So the
//! work is messages to and fro over a loopback connection, between a thread on the server's CPU and
//! one on the load's, neither of which ever sleeps. It is done right before and right after the
//! load, when nobody else of the round works, and so depends on no contender: `statistics::control`
//! takes it off.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    io::{self, ErrorKind::WouldBlock, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// Messages to and fro in a batch.
const EXCHANGES: usize = 50;
/// Batches of a reading. The median counts, so that an interrupt in one of them does not.
const BATCHES: usize = 15;
/// A reading takes some 10 ms; one that takes longer than this is given up.
const LONGEST: Duration = Duration::from_millis(500);

/// Nanoseconds of a message to and fro between two CPUs. Where both are the same CPU, or one cannot
/// be had, there is none.
pub(crate) fn read(server_cpu: u32, load_cpu: u32) -> io::Result<u64> {
    if server_cpu == load_cpu {
        return Err(io::Error::other("there is one CPU only"));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        end.set_nonblocking(true)?;
    }
    let deadline = Instant::now() + LONGEST;
    thread::scope(|scope| {
        scope.spawn(move || {
            on_cpu(load_cpu, || {
                for _ in 0..BATCHES * EXCHANGES {
                    let message = receive(&mut far, deadline)?;
                    far.write_all(&message)?;
                }
                Ok(())
            })
        });
        on_cpu(server_cpu, || {
            let mut batches = [0; BATCHES];
            for batch in &mut batches {
                let began = Instant::now();
                for _ in 0..EXCHANGES {
                    near.write_all(&[b'7'; 8])?;
                    receive(&mut near, deadline)?;
                }
                *batch = began.elapsed().as_nanos() as u64 / EXCHANGES as u64;
            }
            batches.sort_unstable();
            Ok(batches[BATCHES / 2])
        })
    })
}

/// Asks again and again until a message is there.
fn receive(from: &mut TcpStream, deadline: Instant) -> io::Result<[u8; 8]> {
    let mut message = [0; 8];
    loop {
        match from.read_exact(&mut message) {
            Err(error) if error.kind() == WouldBlock && Instant::now() < deadline => {}
            done => return done.map(|()| message),
        }
    }
}

/// Does something on a CPU; the thread may then be where it might be before.
fn on_cpu<T>(cpu: u32, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    sched_setaffinity(None, &only)?;
    let done = work();
    sched_setaffinity(None, &before)?;
    done
}
