//! The honest clients beside the attackers, the figures of the server, and what both must not exceed.

use super::attack::{self, Kind, Made, Over};
use crate::support::{Server, regatta, until};
use regatta_testkit::by_tier;
use std::{
    fs,
    net::SocketAddr,
    process::{Output, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// A difference of two p99 that the scheduler of a busy machine makes by itself.
const NOISE: Duration = Duration::from_millis(1);
/// How long a service may take to stop after its grace.
const AFTER_GRACE: Duration = Duration::from_secs(1);
/// The usual `--grace`.
const GRACE: Duration = Duration::from_secs(5);

/// A service under attack.
pub struct Attacked<'a> {
    /// Its name in messages.
    pub name: String,
    pub server: Server,
    /// A second process of the same service with the same options, and for a proxy with the same nodes.
    pub twin: Server,
    /// The load of the honest clients: URL and options of `regatta load`.
    pub honest: Vec<String>,
    /// Requests of the honest clients per second.
    pub rate: f64,
    /// The most memory that it may use, in bytes.
    pub budget: u64,
    /// Returns the attackers of the process at this address.
    pub kinds: &'a (dyn Fn(SocketAddr) -> Vec<Kind> + Sync),
    /// Returns what must not grow, e.g. the number of connections to nodes.
    pub left: &'a (dyn Fn() -> Vec<(&'static str, u64)> + Sync),
}

/// Figures of the honest clients and of the server during a load.
struct Seen {
    p99: Duration,
    /// CPU time of the server per second.
    cpu: f64,
}

impl Attacked<'_> {
    /// Attacks the service and checks all that it promises. Prints a line with the figures.
    pub fn withstands(mut self) {
        let (short, long) = (by_tier(5, 20), by_tier(10, 60));
        let quiet = self.seen(short);
        // The attackers use CPU time and nodes that the service under test also needs. So much the honest
        // clients notice even if the service separates its clients perfectly.
        let (beside, _, _) = self.attack(self.twin.addr, long);
        let before = self.left_behind();
        let (attacked, made, most) = self.attack(self.server.addr, long);
        let name = &self.name;
        until(&format!("{name}: nothing is left of the attackers: {before:?}"), || {
            let now = self.left_behind();
            now.iter().zip(&before).all(|((_, now), (_, before))| now <= before)
        });
        let after = self.seen(short);
        let (kinds, steps) = (made.len(), made.iter().map(|one| one.steps).sum::<u32>());
        println!(
            "{name}: {kinds} kinds of attackers, {steps} steps in {long} s: p99 {:?}, {:?} while they attack a \
             second process, quiet {:?} before and {:?} after ({:.2} CPUs instead of {:.2}); at most {} MiB \
             of {} MiB",
            attacked.p99,
            beside.p99,
            quiet.p99,
            after.p99,
            attacked.cpu,
            quiet.cpu,
            most >> 20,
            self.budget >> 20,
        );
        for Made { name, steps, errors, .. } in &made {
            println!("  {name}: {steps} steps, {errors} of them ended by the service");
        }
        // A step may wait for an answer that does not come.
        let is_idle = |one: &&Made| one.steps * one.every * 8 < Duration::from_secs(long);
        let idle: Vec<&Made> = made.iter().filter(is_idle).collect();
        assert!(idle.is_empty(), "{name}: these have not attacked: {idle:?}");
        assert!(most <= self.budget, "{name}: {most} bytes of {}", self.budget);
        self.stops_under_attack();
        let name = &self.name;
        for (what, seen, than) in
            [("beside attackers", attacked, beside), ("after them", after, quiet)]
        {
            let limit = (2 * than.p99).max(than.p99 + NOISE);
            assert!(seen.p99 <= limit, "{name}, {what}: p99 {:?} of {limit:?}", seen.p99);
        }
    }

    /// Returns the figures of the honest load while all attackers attack the process at this address, what
    /// these have made, and the most memory of the server, in bytes.
    fn attack(&self, at: SocketAddr, seconds: u64) -> (Seen, Vec<Made>, u64) {
        let (over, made, most) = (Over::default(), Mutex::default(), AtomicU64::new(0));
        let pid = self.server.child.id();
        let seen = thread::scope(|scope| {
            attack::start(scope, (self.kinds)(at), &over, &made);
            scope.spawn(|| {
                while !over.by(Instant::now() + Duration::from_millis(50)) {
                    most.fetch_max(resident(pid), Relaxed);
                }
            });
            let _over = Sets(&over);
            self.seen(seconds)
        });
        (seen, made.into_inner().unwrap(), most.into_inner())
    }

    /// SIGTERM ends the service in its grace, although the attackers go on.
    fn stops_under_attack(&mut self) {
        let (over, made) = (Over::default(), Mutex::default());
        let kinds = (self.kinds)(self.server.addr);
        let server = &mut self.server;
        thread::scope(|scope| {
            attack::start(scope, kinds, &over, &made);
            let _over = Sets(&over);
            // Every kind holds some connections by then.
            thread::sleep(Duration::from_secs(3));
            let began = Instant::now();
            server.signal("-TERM");
            let status = server.ended();
            let took = began.elapsed();
            println!("{}: SIGTERM beside the attackers ended it after {took:?}", self.name);
            assert!(status.success(), "{}: {status}", self.name);
            assert!(took < GRACE + AFTER_GRACE, "{}: it took {took:?} to stop", self.name);
        });
    }

    /// What must not grow: descriptors of the server, and what the service adds.
    fn left_behind(&self) -> Vec<(&'static str, u64)> {
        let folder = format!("/proc/{}/fd", self.server.child.id());
        let descriptors = fs::read_dir(folder).expect("the server runs").count() as u64;
        let mut left = vec![("descriptors", descriptors)];
        left.extend((self.left)());
        left
    }

    /// Runs the load of the honest clients. Every reply must be right.
    fn seen(&self, seconds: u64) -> Seen {
        let rate = format!("{:.0}", self.rate);
        let (began, cpu) = (Instant::now(), self.server.cpu());
        let mut load = regatta!("load --rate {rate} -d {seconds}s --warm-up 1s --json -");
        let output = load.args(&self.honest).stdin(Stdio::null()).output().unwrap();
        let cpu = (self.server.cpu() - cpu).as_secs_f64() / began.elapsed().as_secs_f64();
        let result = right(&self.name, &output);
        // Of a hub, that of all deliveries.
        let operations = result["operations"].as_array();
        let is_delivery = |one: &&serde_json::Value| one["operation"]["name"] == "deliveries";
        let counted = operations.and_then(|all| all.iter().find(is_delivery)).unwrap_or(&result);
        let p99 = counted["latency_ns"]["p99"].as_u64().unwrap_or_else(|| panic!("{result}"));
        Seen { p99: Duration::from_nanos(p99), cpu }
    }
}

/// Checks that no reply was wrong and none is missing.
fn right(name: &str, output: &Output) -> serde_json::Value {
    let said = String::from_utf8_lossy(&output.stderr);
    let result: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    let errors = result["errors"].as_object().expect("the errors by their kind");
    assert!(
        errors.values().all(|count| count == 0),
        "{name}: {errors:?} {:?} {said}",
        result["first_wrong"]
    );
    assert!(output.status.success(), "{name}: {}", result["verdict"]);
    result
}

/// Resident memory of a process, in bytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    let kib = line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok());
    kib.expect("a number of KiB") * 1024
}

/// Sets a flag when it is dropped, so that a failure ends the other threads, too.
struct Sets<'a>(&'a Over);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}
