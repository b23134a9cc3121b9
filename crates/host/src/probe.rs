//! The machine probe: measures the current cost of communication between two CPUs, as the time of a
//! fixed piece of work.
//!
//! A virtual machine's CPUs are threads of the host, which moves them between physical CPUs. For seconds
//! at a time they share a cache, or do not. Without a shared cache, every message between server and
//! load costs both of them more, for every contender. Work on a single CPU does not show this. So the
//! work is a ping-pong over a loopback connection, between a thread on the server's CPU and one on the
//! load's CPU, neither of which ever sleeps. The readings are stored beside a round, before the contender
//! is started and after it is gone. No figure is adjusted for them.

use regatta_record::{CpuSets, LoadShape};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    io::{self, ErrorKind::WouldBlock, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// Round trips in a batch.
const EXCHANGES: usize = 50;
/// Batches in a reading. The median counts, so that an interrupt in one batch does not matter.
const BATCHES: usize = 15;
/// Timeout of a reading, which usually takes some 10 ms.
const LONGEST: Duration = Duration::from_millis(500);

/// Returns the time of a round trip, in nanoseconds, between the first CPU of the contender and the
/// first of the load; `None` if they are the same, or if the reading fails.
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

/// Polls without sleeping until a message has arrived.
fn receive(from: &mut TcpStream, deadline: Instant) -> io::Result<[u8; 8]> {
    let mut message = [0; 8];
    loop {
        match from.read_exact(&mut message) {
            Err(error) if error.kind() == WouldBlock && Instant::now() < deadline => {}
            done => return done.map(|()| message),
        }
    }
}

/// Runs `work` on a CPU, then restores the thread's CPUs.
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
    fn a_round_trip_takes_time_and_the_threads_cpus_are_restored() {
        let may_be = || sched_getaffinity(None).unwrap();
        let before = may_be();
        let mut all = (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu)).map(|cpu| cpu as u32);
        let (Some(one), Some(other)) = (all.next(), all.next()) else {
            return eprintln!("skipped: a probe needs two CPUs");
        };
        let cpus = |server, load| CpuSets { server: vec![server], load: vec![load], spare: vec![] };
        let shape = LoadShape::closed(1, 1);
        // A round trip is at least four system calls. On a busy machine the reading may time out.
        assert!(read(&cpus(one, other), &shape).is_none_or(|ns| ns > 500));
        assert_eq!(read(&cpus(one, one), &shape), None);
        assert_eq!(read(&cpus(one, u32::MAX), &shape), None);
        assert_eq!(may_be(), before);
    }
}
