//! Keeps the thread that watches a load off the CPUs of the server.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::marker::PhantomData;

/// Until it is dropped, the thread that created it runs on CPUs of neither the server nor the load, or
/// on those of the load if there are no others. While a load runs, the load itself keeps that thread on
/// its own CPUs. The thread wakes ten times a second, and once a second inside the window, to read the
/// progress of the load, and must not take time from the server.
///
/// The thread is not moved if the server has all CPUs or the system refuses. It is not moved either
/// if the load is not pinned, because the threads of the load would inherit the move.
pub struct Aside {
    before: Option<CpuSet>,
    /// Affinity belongs to a thread.
    not_send: PhantomData<*const ()>,
}

impl Aside {
    /// Moves the calling thread away from the CPUs of `server`, and if possible from those of `load`.
    pub fn of(server: &[u32], load: &[u32]) -> Aside {
        let before = sched_getaffinity(None).ok().filter(|now| move_to(now, server, load));
        Aside { before, not_send: PhantomData }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // If this fails, the thread is only a little slower between rounds.
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// Moves the calling thread. Returns whether it was moved.
fn move_to(now: &CpuSet, server: &[u32], load: &[u32]) -> bool {
    cpus_aside(now, server, load).is_some_and(|set| sched_setaffinity(None, &set).is_ok())
}

/// The CPUs to move to, of those that the thread may use `now`.
fn cpus_aside(now: &CpuSet, server: &[u32], load: &[u32]) -> Option<CpuSet> {
    if load.is_empty() {
        return None;
    }
    let of_nobody = without(now, &[server, load].concat());
    let not_of_server = without(now, server);
    [of_nobody, not_of_server].into_iter().find(|set| set.count() > 0)
}

fn without(now: &CpuSet, cpus: &[u32]) -> CpuSet {
    let mut set = *now;
    cpus.iter()
        .map(|cpu| *cpu as usize)
        .filter(|cpu| *cpu < CpuSet::MAX_CPU)
        .for_each(|cpu| set.unset(cpu));
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        set
    }

    #[test]
    fn the_servers_cpus_are_left_out() {
        assert_eq!(without(&set(&[0, 1, 2, 3]), &[0, 2, 9_999]), set(&[1, 3]));
        assert_eq!(without(&set(&[0]), &[0]).count(), 0);
    }

    #[test]
    fn cpus_of_nobody_come_before_those_of_the_load() {
        let all = set(&[0, 1, 2, 3]);
        let of = |server: &[u32], load: &[u32]| cpus_aside(&all, server, load);
        assert_eq!(of(&[0], &[1, 2]), Some(set(&[3])));
        assert_eq!(of(&[0, 3], &[1, 2]), Some(set(&[1, 2])));
        assert_eq!(of(&[0, 1, 2, 3], &[1, 2]), None);
        assert_eq!(of(&[0], &[]), None, "the load is not pinned");
    }

    #[test]
    fn moves_a_thread_aside_and_back() {
        let before = sched_getaffinity(None).unwrap();
        let cpus: Vec<u32> =
            (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu)).map(|cpu| cpu as u32).collect();
        if cpus.len() < 2 {
            eprintln!("skipped: there is one CPU");
            return;
        }
        let aside = Aside::of(&cpus[..1], &cpus[1..]);
        let now = sched_getaffinity(None).unwrap();
        assert!(!now.is_set(cpus[0] as usize), "on the server's CPU");
        assert!(cpus[1..].iter().all(|cpu| now.is_set(*cpu as usize)));
        drop(aside);
        assert_eq!(sched_getaffinity(None).unwrap(), before);

        for (server, load) in [(&cpus[..], &cpus[..]), (&cpus[..1], &[])] {
            let aside = Aside::of(server, load);
            assert_eq!(sched_getaffinity(None).unwrap(), before, "there is no other CPU");
            drop(aside);
            assert_eq!(sched_getaffinity(None).unwrap(), before);
        }
    }
}
