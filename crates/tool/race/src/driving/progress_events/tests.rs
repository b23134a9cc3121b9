use super::*;
use regatta_load::{Plan, Tally, Until, WarmUp};
use regatta_record::Event;
use regatta_script::Workload;
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::atomic::AtomicBool,
    thread,
};

/// Starts a server of `double`.
fn server() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || answer(&stream.unwrap()));
        }
    });
    addr
}

fn answer(mut stream: &TcpStream) {
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let number: i128 = line.trim_start_matches('+').parse().unwrap();
        // The load may have closed the connection.
        let _ = stream.write_all(format!("{}\n", 2 * number).as_bytes());
    }
}

fn plan(target: SocketAddr, warm_up: Duration, until: Until) -> Plan {
    Plan {
        connections: 4,
        timeout: Duration::from_secs(20),
        patience: Duration::from_secs(20),
        warm_up: WarmUp::Fixed(warm_up),
        until,
        ..Plan::closed(target, Workload::parse("double").unwrap())
    }
}

/// When the edges of the window were called.
#[derive(Default)]
struct EdgesSeen {
    opened: Option<Instant>,
    closed: Option<Instant>,
}

impl LoadObserver for EdgesSeen {
    fn at(&mut self, moment: Moment) {
        match moment {
            Moment::WindowOpens => self.opened = Some(Instant::now()),
            Moment::WindowCloses => self.closed = Some(Instant::now()),
            _ => {}
        }
    }
}

/// An event, with the time at which it was emitted.
type Seen = (Instant, Event);

fn run(plan: &Plan, stop: &AtomicBool) -> (Tally, EdgesSeen, Vec<Seen>) {
    let mut seen = Vec::new();
    let mut show = |event: &Event| seen.push((Instant::now(), event.clone()));
    let mut events = Events::shown(&mut show);
    let (window, mut edges) = (Window::default(), EdgesSeen::default());
    let mut progress_events = ProgressEvents::new(&mut events, &window);
    let tally = regatta_load::run(
        plan,
        &mut window.around(&mut edges),
        &mut |progress| progress_events.progress(progress),
        stop,
    );
    progress_events.ended();
    (tally.unwrap(), edges, seen)
}

fn phases(seen: &[Seen]) -> Vec<Phase> {
    let phase = |(_, event): &Seen| match event.happened {
        Happened::PhaseStarted { phase } => Some(phase),
        _ => None,
    };
    seen.iter().filter_map(phase).collect()
}

#[test]
fn nothing_is_emitted_inside_the_window() {
    let (warm_up, window) = (Duration::from_millis(1_500), Duration::from_secs(1));
    let plan = plan(server(), warm_up, Until::Elapsed(window));
    let (tally, edges, seen) = run(&plan, &AtomicBool::new(false));
    assert!(tally.requests > 0);
    let (opened, closed) = (edges.opened.unwrap(), edges.closed.unwrap());
    assert!(closed - opened >= window);
    let inside: Vec<_> = seen.iter().filter(|(at, _)| (opened..=closed).contains(at)).collect();
    assert!(inside.is_empty(), "{inside:?}");

    use Phase::{Connecting, Stopping, WarmUp};
    assert_eq!(phases(&seen), [Connecting, WarmUp, Phase::Window, Stopping]);
    let open: Vec<u64> = seen
        .iter()
        .filter_map(|(_, event)| match event.happened {
            Happened::LoadSampled { open } => Some(open),
            _ => None,
        })
        .collect();
    assert!(open.len() >= 2, "of the warm-up: {open:?}");
    // On a busy machine the first sample can be taken before they are connected.
    assert!(open.is_sorted() && open.ends_with(&[4]), "{open:?}");
}

#[test]
fn the_edges_of_the_window_are_emitted_with_their_own_times() {
    let length = Duration::from_millis(400);
    let (_, edges, seen) =
        run(&plan(server(), Duration::ZERO, Until::Elapsed(length)), &AtomicBool::new(false));
    let at = |wanted: Phase| {
        let found = seen
            .iter()
            .find(|(_, event)| event.happened == Happened::PhaseStarted { phase: wanted });
        found.unwrap().1.ns
    };
    let window = Duration::from_nanos(at(Phase::Stopping) - at(Phase::Window));
    let measured = edges.closed.unwrap() - edges.opened.unwrap();
    let apart = window.abs_diff(measured);
    assert!(apart < Duration::from_millis(50), "{window:?} is not {measured:?}");
    assert!(seen.windows(2).all(|two| two[0].1.ns <= two[1].1.ns), "times fall: {seen:?}");
}

#[test]
fn a_counted_load_is_silent_from_its_first_request_to_its_last() {
    let plan = plan(server(), Duration::ZERO, Until::Requests(20_000));
    let (tally, edges, seen) = run(&plan, &AtomicBool::new(false));
    assert_eq!(tally.requests, 20_000);
    let (opened, closed) = (edges.opened.unwrap(), edges.closed.unwrap());
    assert!(!seen.iter().any(|(at, _)| (opened..=closed).contains(at)), "{seen:?}");
    assert_eq!(phases(&seen), [Phase::Connecting, Phase::Window, Phase::Stopping]);
}

#[test]
fn a_load_that_is_stopped_early_ends_its_phases() {
    let stop = AtomicBool::new(true);
    let long = Duration::from_secs(600);
    let (tally, _, seen) = run(&plan(server(), long, Until::Elapsed(long)), &stop);
    assert!(tally.interrupted);
    assert_eq!(phases(&seen), [Phase::Connecting, Phase::Stopping]);
}
