//! A core that fails during a drain: the others do not serve their clients until the end of it.

use crate::{
    DEADLINE,
    client::Client,
    models::tests_of,
    server::{Server, Setting},
};
use regatta_engine::{Conn, Effects, Engine, Flow, Never};
use regatta_serve::Model;
use regatta_testkit::deadline::until_within;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

// The models with several cores.
tests_of!(a_core_that_fails_during_a_drain_ends_it: percore Percore, uring Uring);

/// An engine that answers `who` with the number of its core, and panics on request.
struct Failing {
    core: usize,
    draining: Arc<AtomicUsize>,
}

impl Engine for Failing {
    type Job = Never;
    type Letter = Never;

    fn opened(&mut self, _: Conn, _: &mut Effects<Self>) {}
    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>) {
        assert!(bytes.starts_with(b"who"), "a core fails, as requested");
        let reply = format!("{}\n", self.core);
        effects.out(conn).expect("it is open").extend_from_slice(reply.as_bytes());
    }
    fn room(&mut self, _: Conn, _: &mut Effects<Self>) {}
    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        effects.close(conn, Flow::Close);
    }
    fn closed(&mut self, _: Conn, _: &mut Effects<Self>) {}
    fn drain_begins(&mut self, _: Duration, _: &mut Effects<Self>) {
        self.draining.fetch_add(1, SeqCst);
    }
    fn retire(&mut self, _: Conn, _: u32, _: &mut Effects<Self>) {}
}

fn a_core_that_fails_during_a_drain_ends_it(model: Model) {
    let drain = Duration::from_secs(3600);
    let setting = Setting { cores: 2, drain, ..Setting::default() };
    let (cores, draining) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&draining);
    let server = Server::of_engines(model, &setting, move || Failing {
        core: cores.fetch_add(1, SeqCst),
        draining: Arc::clone(&counts),
    });
    // The kernel chooses the core of each client.
    let mut of_cores: [Option<Client>; 2] = [None, None];
    until_within(DEADLINE, "both cores have a client", || {
        let mut client = server.client();
        client.send("who\n");
        let core: usize = client.line().parse().expect("a number");
        of_cores[core] = Some(client);
        of_cores.iter().all(Option::is_some)
    });
    let [Some(mut fails), Some(mut other)] = of_cores else { unreachable!("both have one") };
    server.stop();
    until_within(DEADLINE, "both cores drain", || draining.load(SeqCst) == 2);
    other.send("who\n");
    other.line();
    fails.send("fail\n");
    // Its own connection lasts until the process ends, on `uring`.
    other.expect_gone();
    server.fails();
}
