//! How dear it is at this moment that two CPUs talk to each other: the time of a fixed piece of work.
//!
//! A virtual machine's CPUs are threads of the host, which moves them about: now they share a cache,
//! now they do not, for seconds at a time. Every message between server and load then costs both of
//! them more, whatever the contender. A single CPU at work by itself shows nothing of that. So the
//! work is messages to and fro over a loopback connection, between a thread on the server's CPU and
//! one on the load's, neither of which ever sleeps. It is done before a contender is started, and so
//! depends on none: `statistics::control` takes it off. It is done again after it is gone, which shows
//! what a contender leaves behind: `statistics::aftermath` tests for that.

use regatta_record::{CpuSets, LoadShape};
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

/// Nanoseconds of a message to and fro between the first CPU of the contender and the first of the
/// load. `None` where these are one, or cannot be had.
pub fn read(cpus: &CpuSets, load: &LoadShape) -> Option<u64> {
    let (server, load) = (*cpus.of_server(load).first()?, *cpus.of_load(load).first()?);
    (server != load).then(|| between(server, load).ok())?
}

fn between(server_cpu: u32, load_cpu: u32) -> io::Result<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_take_time_and_the_thread_may_be_where_it_might() {
        let may_be = || sched_getaffinity(None).unwrap();
        let before = may_be();
        let mut all = (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu)).map(|cpu| cpu as u32);
        let (Some(one), Some(other)) = (all.next(), all.next()) else {
            return eprintln!("skipped: a probe needs two CPUs");
        };
        let cpus = |server, load| CpuSets { server: vec![server], load: vec![load], spare: vec![] };
        let shape = LoadShape::closed(1, 1);
        // Two system calls on each side, none of them for nothing. A busy machine may give up.
        assert!(read(&cpus(one, other), &shape).is_none_or(|ns| ns > 500));
        assert_eq!(read(&cpus(one, one), &shape), None);
        assert_eq!(read(&cpus(one, u32::MAX), &shape), None);
        assert_eq!(may_be(), before);
    }
}
