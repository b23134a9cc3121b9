//! What all attackers share: their pace, the connections that they hold, and the thread of each.

use rustix::process::{getpriority_process, setpriority_process};
use std::{
    collections::VecDeque,
    env,
    io::{self, Read},
    net::{SocketAddr, TcpStream},
    sync::{Condvar, Mutex},
    thread::Scope,
    time::{Duration, Instant},
};

/// Limit of each read, write and connect of an attacker, so that it notices the end of the attack.
const PATIENCE: Duration = Duration::from_millis(300);

/// A kind of attacker: one thread, which repeats a step.
pub struct Kind {
    pub name: &'static str,
    /// Minimum interval between two steps. Without it, the attackers would simply use up the CPU of the
    /// machine that they share with the server.
    pub every: Duration,
    /// An error only means that the server has closed a connection, or does not read from it. A step
    /// panics if the server does what it must not do.
    pub step: Box<dyn FnMut() -> io::Result<()> + Send>,
}

pub fn kind(
    name: &'static str,
    every_ms: u64,
    step: impl FnMut() -> io::Result<()> + Send + 'static,
) -> Kind {
    Kind { name, every: Duration::from_millis(every_ms), step: Box::new(step) }
}

/// The number of steps that a kind has made, and how many of them ended with an error.
#[derive(Debug)]
pub struct Made {
    pub name: &'static str,
    /// The interval that it was to keep.
    pub every: Duration,
    pub steps: u32,
    pub errors: u32,
}

/// A variable of the environment: only attackers whose name contains its value run, or, after `!`, all others.
const ONLY: &str = "REGATTA_ATTACKERS";
/// How much nicer attackers are than the honest clients (setpriority(2)).
const NICER: i32 = 10;

/// Starts all attackers at once, at a lower priority: what is compared is the latency of others beside
/// them, not the latency of a machine that is too busy to run a load. Each adds to `made` when it ends.
pub fn start<'s>(
    scope: &'s Scope<'s, '_>,
    kinds: Vec<Kind>,
    over: &'s Over,
    made: &'s Mutex<Vec<Made>>,
) {
    // To find out which kind is the cause.
    let only = env::var(ONLY).unwrap_or_default();
    let attacks = |one: &Kind| match only.strip_prefix('!') {
        Some(without) => !one.name.contains(without),
        None => one.name.contains(&only),
    };
    let all = kinds.len() as u32;
    for (number, Kind { name, every, mut step }) in (0..).zip(kinds).filter(|(_, one)| attacks(one))
    {
        scope.spawn(move || {
            // On Linux this affects only the calling thread (setpriority(2), C library/kernel differences).
            let nice = getpriority_process(None).expect("a thread has a priority") + NICER;
            setpriority_process(None, nice).expect("a thread may lower its priority");
            let mut one = Made { name, every, steps: 0, errors: 0 };
            // Independent attackers are not in phase, so neither are these.
            let mut due = Instant::now() + every * number / all;
            while !over.by(due) {
                one.errors += u32::from(step().is_err());
                one.steps += 1;
                // Time that a step has taken too long is not made up for.
                due = (due + every).max(Instant::now());
            }
            made.lock().unwrap().push(one);
        });
    }
}

/// Whether an attack is over.
#[derive(Default)]
pub struct Over {
    is_over: Mutex<bool>,
    ended: Condvar,
}

impl Over {
    /// Ends the attack.
    pub fn set(&self) {
        *self.is_over.lock().unwrap() = true;
        self.ended.notify_all();
    }

    /// Waits until this moment, at most until the attack is over. Returns whether it is.
    pub fn by(&self, due: Instant) -> bool {
        let left = due.saturating_duration_since(Instant::now());
        let is_over = self.is_over.lock().unwrap();
        *self.ended.wait_timeout_while(is_over, left, |is_over| !*is_over).unwrap().0
    }
}

/// Connects, with [`PATIENCE`].
pub fn dial(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Makes the close of this connection a reset.
pub fn reset(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

/// Reads until the server closes the connection, or sends nothing for [`PATIENCE`], or `most` bytes came.
pub fn read_most(stream: &mut impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut came = Vec::new();
    match stream.take(most).read_to_end(&mut came) {
        Err(error) if came.is_empty() => Err(error),
        _ => Ok(came),
    }
}

/// Connections that stay open; beyond their maximum, the oldest is closed.
pub struct Held<T> {
    most: usize,
    open: VecDeque<T>,
}

impl<T> Held<T> {
    pub fn new(most: usize) -> Held<T> {
        Held { most, open: VecDeque::new() }
    }

    /// Holds what `open` returns.
    pub fn add(&mut self, open: io::Result<T>) -> io::Result<()> {
        self.open.push_back(open?);
        if self.open.len() > self.most {
            self.open.pop_front();
        }
        Ok(())
    }

    pub fn is_full(&self) -> bool {
        self.open.len() >= self.most
    }

    /// Calls `each` for all, and drops those for which it fails.
    pub fn retain(&mut self, mut each: impl FnMut(&mut T) -> io::Result<()>) {
        self.open.retain_mut(|one| each(one).is_ok());
    }
}
