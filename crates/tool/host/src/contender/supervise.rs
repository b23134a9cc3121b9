//! The supervisor: a small process that starts one contender and, whatever happens, leaves none of
//! its processes behind. It is the subreaper of all of them. So an orphan becomes its child, and "no
//! children" (ECHILD) proves that nothing remains. It kills them all when the pipe from `race`
//! closes, or when a signal asks it to end. The other side of the pipe is [`crate::contender::running`].
//! The processes of a container that docker runs are not below it: `race` ends those (`container`), and
//! this process if `race` is gone.

use crate::{
    contender::{
        output::Output,
        start::{Started, start},
        stop_report::{Ending, Stopped},
        wire::{self, Command, Event, Exited, Inbox, Launch},
    },
    group::cgroup::Cgroup,
    process::{
        kill::{kill_all, pid_number, pids, reap},
        listed::Listed,
        status::Status,
        tree::{self, descendants, living_descendants},
    },
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, Signal, getpgid, getpid, kill_process, kill_process_group, set_child_subreaper,
    },
};
use signal_hook::{
    consts::{SIGCHLD, TERM_SIGNALS},
    flag,
    low_level::pipe,
};
use std::{
    fs::File,
    io::{self, Read},
    os::{fd::AsFd, unix::net::UnixStream},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Runs a supervisor, as `regatta supervise`: reads a launch from stdin, starts it, and stops it on
/// command or when stdin closes. Not for interactive use.
pub fn supervise() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("regatta supervise: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut race = Race::connect()?;
    let Some(launch) = race.launch()? else { return Ok(()) };
    set_child_subreaper(Some(getpid()))?;
    // Registered before the start, so that even a contender that exits at once is noticed.
    let (signals, signal) = UnixStream::pair()?;
    signals.set_nonblocking(true)?;
    // A signal to all processes of regatta (`pkill regatta`) must not end this one before the contender. Handlers,
    // because the contender would inherit that a signal is ignored.
    let asked_to_end = Arc::new(AtomicBool::new(false));
    for &end in TERM_SIGNALS {
        // In this order: when the pipe is readable, it is known.
        flag::register(end, Arc::clone(&asked_to_end))?;
        pipe::register(end, signal.try_clone()?)?;
    }
    pipe::register(SIGCHLD, signal)?;

    let Started { pid, cgroup, output } = match start(&launch) {
        Ok(started) => started,
        Err(because) => {
            race.send(&Event::NotStarted { because });
            return Ok(());
        }
    };
    race.send(&Event::Started { pid: pid_number(pid), cgroup: cgroup.clone() });
    let mut watch =
        Watch { race, contender: pid, cgroup, output, signals, asked_to_end, status: None };
    let stopped = watch.until_stopped();
    if stopped.is_err() {
        kill_all(watch.cgroup.as_ref(), |_, _| ());
    }
    // To `race`, one that another asked to end is a supervisor that failed.
    if let Ok(stopped) = &stopped
        && !watch.race.gone
    {
        watch.race.send(&Event::Stopped(stopped.clone()));
    }
    if let Some(container) = launch.container.filter(|_| watch.race.gone || stopped.is_err()) {
        container.remove();
    }
    stopped?;
    watch.cgroup.map_or(Ok(()), |cgroup| cgroup.remove())
}

/// The contender, and the sources of all events that concern it.
struct Watch {
    race: Race,
    contender: Pid,
    cgroup: Option<Cgroup>,
    output: Output,
    /// Readable when a child has ended, or this process was asked to end.
    signals: UnixStream,
    /// A signal asked this process to end. It is then as if `race` was gone.
    asked_to_end: Arc<AtomicBool>,
    /// Status of the contender, once it has ended.
    status: Option<Status>,
}

impl Watch {
    fn until_stopped(&mut self) -> io::Result<Stopped> {
        let grace = self.until_asked_to_stop()?;
        self.stop(grace)
    }

    /// Waits until `race` asks for a stop, and returns its grace period; zero if `race` is gone.
    fn until_asked_to_stop(&mut self) -> io::Result<Duration> {
        loop {
            if let Some(Command::Stop { grace_ms }) = self.race.inbox.take()? {
                return Ok(Duration::from_millis(grace_ms));
            }
            if self.race.gone {
                return Ok(Duration::ZERO);
            }
            self.wait(None)?;
        }
    }

    /// Sends SIGTERM, waits up to the grace period for all processes to end, then sends SIGKILL to the
    /// rest. Does not wait if `race` is gone.
    fn stop(&mut self, grace: Duration) -> io::Result<Stopped> {
        let left_before = !self.none_remains()?;
        let status_before = self.status;
        self.ask_to_end();
        let deadline = Instant::now() + grace;
        while !self.none_remains()? && !self.race.gone && Instant::now() < deadline {
            self.wait(Some(deadline.saturating_duration_since(Instant::now())))?;
        }
        let killed = Listed::from(living_descendants(pid_number(getpid())));
        let ending = match (status_before, self.status) {
            (Some(status), _) if status.is_success() && left_before => Ending::Background,
            (Some(_), _) => Ending::EndedBefore,
            (None, None) => Ending::IgnoredSigterm,
            (None, Some(_)) if killed.is_empty() => Ending::Obeyed,
            (None, Some(_)) => Ending::LeftDescendants,
        };
        let (contender, mut status) = (self.contender, self.status);
        let remaining = kill_all(self.cgroup.as_ref(), |pid, how| {
            if pid == contender {
                status = Some(how);
            }
        });
        self.output.drain()?;
        let last_words = self.output.last_words();
        let cpu_ns = self.cgroup.as_ref().and_then(|group| group.cpu_ns().ok());
        Ok(Stopped { ending, status, killed, remaining: remaining.into(), last_words, cpu_ns })
    }

    /// Sends SIGTERM to the contender's process group, as Ctrl-C would reach it, and to those
    /// children of ours outside that group: the contender, if it changed its group, and orphans.
    fn ask_to_end(&self) {
        let own = pid_number(getpid());
        let in_group = |pid: &Pid| getpgid(Some(*pid)) == Ok(self.contender);
        let group_lives = pids(descendants(own)).any(|pid| in_group(&pid));
        // Listed before the first signal, which may create orphans: a contender must stop its own
        // children on SIGTERM.
        let others: Vec<Pid> = pids(tree::children(own)).filter(|pid| !in_group(pid)).collect();
        // Processes that have ended meanwhile need no signal, so errors are ignored.
        if group_lives {
            let _ = kill_process_group(self.contender, Signal::TERM);
        }
        for other in others {
            let _ = kill_process(other, Signal::TERM);
        }
    }

    /// Waits until something happens or `limit` is over, and processes what happened.
    fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        });
        let readable = PollFlags::IN;
        let mut fds = vec![PollFd::new(&self.signals, readable)];
        if !self.race.gone {
            fds.push(PollFd::new(&self.race.commands, readable));
        }
        if let Some(pipe) = self.output.pipe() {
            fds.push(PollFd::new(pipe, readable));
        }
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.race.listen();
        self.output.drain()?;
        while self.signals.read(&mut [0; 64]).is_ok_and(|n| n > 0) {}
        self.race.gone |= self.asked_to_end.load(Ordering::Relaxed);
        self.none_remains().map(drop)
    }

    /// Reaps all children that have ended. Returns true if no child remains, and thus no descendant.
    fn none_remains(&mut self) -> io::Result<bool> {
        let (contender, mut ended) = (self.contender, None);
        let none_remains = reap(|pid, status| {
            if pid == contender {
                ended = Some(status);
            }
        })?;
        if let Some(status) = ended {
            self.status = Some(status);
            self.output.drain()?;
            let last_words = self.output.last_words();
            let left = living_descendants(pid_number(getpid())).into();
            self.race.send(&Event::Exited(Exited { status, last_words, left }));
        }
        Ok(none_remains)
    }
}

/// The connection to `race`: stdin and stdout.
struct Race {
    commands: File,
    events: File,
    inbox: Inbox,
    gone: bool,
}

impl Race {
    fn connect() -> io::Result<Race> {
        // Unbuffered: poll would not see bytes in a buffer.
        let own = |fd: std::os::fd::BorrowedFd| fd.try_clone_to_owned().map(File::from);
        let commands = own(io::stdin().as_fd())?;
        let events = own(io::stdout().as_fd())?;
        Ok(Race { commands, events, inbox: Inbox::default(), gone: false })
    }

    /// Reads the first message; `None` if `race` is already gone.
    fn launch(&mut self) -> io::Result<Option<Launch>> {
        loop {
            if let Some(launch) = self.inbox.take()? {
                return Ok(Some(launch));
            }
            if !self.inbox.fill(&mut self.commands)? {
                return Ok(None);
            }
        }
    }

    /// Reads pending commands without waiting. End of file means that `race` is gone.
    fn listen(&mut self) {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_readable = |commands: &File| {
            poll(&mut [PollFd::new(commands, PollFlags::IN)], Some(&now)).is_ok_and(|n| n > 0)
        };
        while !self.gone && is_readable(&self.commands) {
            self.gone = !self.inbox.fill(&mut self.commands).unwrap_or(false);
        }
    }

    fn send(&mut self, event: &Event) {
        if wire::send(&mut self.events, event).is_err() {
            self.gone = true;
        }
    }
}
