//! What an agent of a standing fleet carries out (pure). The agent checks it itself, whatever the leader asks for.

use super::targets::Targets;
use crate::{agent::MOST_PROCESSES, message::Request};
use regatta_load::{Plan, Until, WarmUp};
use regatta_record::{Drive, Part};
use std::{num::NonZeroU32, time::Duration};

/// The limits of an agent.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What it may load.
    pub targets: Vec<Targets>,
    /// Most load threads: the number of CPUs.
    pub cores: u32,
    /// Most requests per second of its share of a load.
    pub max_rate: Option<NonZeroU32>,
    /// Most connections of its share of a load.
    pub max_connections: Option<u64>,
    /// Longest lease: how long a leader may be silent.
    pub max_lease: Duration,
    /// Longest session.
    pub max_session: Option<Duration>,
}

impl Policy {
    /// Checks a request of the leader. The session has this time left, if it is limited.
    ///
    /// # Errors
    /// Why the agent refuses it, as a sentence.
    pub fn check(&self, request: &Request, left: Option<Duration>) -> Result<(), String> {
        // Each request of a load is listed, so that one that is added later is not permitted.
        let (plan, parts) = match request {
            Request::Prepare { plan, parts } => (plan, parts),
            Request::Lease { ms } => return self.check_lease(*ms),
            Request::Renew | Request::Clock | Request::Order(_) | Request::Abort => return Ok(()),
            _ => return Err("it carries out nothing but loads".into()),
        };
        self.check_parts(parts)?;
        plan.check().map_err(|error| error.to_string())?;
        self.check_target(plan)?;
        self.check_connections(plan, parts)?;
        self.check_rate(plan, parts)?;
        self.check_length(plan, left)
    }

    fn check_lease(&self, lease_ms: u64) -> Result<(), String> {
        match Duration::from_millis(lease_ms) {
            lease if lease > self.max_lease => Err(format!(
                "a leader may be silent for at most {:?}, and this one asks for a lease of {lease:?}",
                self.max_lease
            )),
            _ => Ok(()),
        }
    }

    /// Comes first: the other checks take as long as there are threads in the parts.
    fn check_parts(&self, parts: &[Part]) -> Result<(), String> {
        if parts.len() > MOST_PROCESSES {
            let count = parts.len();
            return Err(format!("expected at most {MOST_PROCESSES} parts of a load, got {count}"));
        }
        if let Some(part) = parts.iter().find(|part| !part.is_possible()) {
            return Err(format!("the part {} of the load is impossible", part.process));
        }
        let threads: u64 = parts.iter().map(|part| u64::from(part.own)).sum();
        match threads > self.cores.into() {
            true => Err(format!(
                "its share is {threads} load threads, more than its {} CPUs",
                self.cores
            )),
            false => Ok(()),
        }
    }

    fn check_target(&self, plan: &Plan) -> Result<(), String> {
        if plan.unix.is_some() {
            return Err("a Unix socket is no target of this agent: it loads only --targets".into());
        }
        if !plan.nodes.is_empty() {
            return Err("a server with several nodes cannot be loaded by agents".into());
        }
        match self.targets.iter().any(|targets| targets.contain(plan.target)) {
            true => Ok(()),
            false => {
                let all: Vec<String> = self.targets.iter().map(Targets::to_string).collect();
                let (target, all) = (plan.target, all.join(","));
                Err(format!("{target} is not among its targets (--targets {all})"))
            }
        }
    }

    fn check_connections(&self, plan: &Plan, parts: &[Part]) -> Result<(), String> {
        let connections = share_of_connections(plan, parts);
        match self.max_connections {
            Some(most) if connections > most => Err(format!(
                "its share is {connections} connections, more than {most} (--max-connections)"
            )),
            _ => Ok(()),
        }
    }

    fn check_rate(&self, plan: &Plan, parts: &[Part]) -> Result<(), String> {
        let Some(most) = self.max_rate else { return Ok(()) };
        if plan.passing > 0 {
            return Err(format!(
                "its rate is limited to {most}/s (--max-rate), and members that join and leave have none"
            ));
        }
        let opened = share_of_connections(plan, parts);
        if opened > most.get().into() {
            return Err(format!(
                "its share is {opened} connections, and each begins with a request: more than {most} at once \
                 (--max-rate)"
            ));
        }
        let Drive::Open { rate, .. } = plan.drive else {
            return Err(format!(
                "its rate is limited to {most}/s (--max-rate), so the load needs a rate: use --rate or --stages"
            ));
        };
        let rates = plan.stages.iter().map(|stage| stage.rate).chain([rate]);
        let share = |rate: NonZeroU32| -> u64 {
            parts.iter().map(|part| part.of_process(rate.get().into())).sum()
        };
        match rates.map(share).max() {
            Some(rate) if rate > most.get().into() => Err(format!(
                "its share is {rate} requests per second, more than {most} (--max-rate)"
            )),
            _ => Ok(()),
        }
    }

    fn check_length(&self, plan: &Plan, left: Option<Duration>) -> Result<(), String> {
        let (Some(left), Some(most)) = (left, self.max_session) else { return Ok(()) };
        let Until::Elapsed(window) = plan.until else {
            return Err(format!(
                "its sessions are limited to {most:?} (--max-session), so the load needs a duration: use -d"
            ));
        };
        let warm_up = match plan.warm_up {
            WarmUp::Fixed(length) => length,
            // They end earlier if the rate is steady.
            WarmUp::Steady { least, .. } => least,
            WarmUp::Judged { .. } => Duration::ZERO,
        };
        match warm_up.saturating_add(window) {
            needed if needed > left => Err(format!(
                "the load takes at least {needed:?}, and its session has {left:.1?} left of {most:?} (--max-session)"
            )),
            _ => Ok(()),
        }
    }
}

/// Number of connections of these parts of a load, idle ones included.
pub(super) fn share_of_connections(plan: &Plan, parts: &[Part]) -> u64 {
    let shares = parts.iter().map(|part| plan.connections_of(*part) as u64);
    shares.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_load::{Arrivals, Burst, Stage};
    use regatta_record::LeaderCommand;
    use regatta_script::Workload;

    const MINUTE: Duration = Duration::from_secs(60);

    fn policy() -> Policy {
        Policy {
            targets: vec!["10.0.0.0/24:8000-8999".parse().unwrap(), "8.8.8.8:80".parse().unwrap()],
            cores: 4,
            max_rate: NonZeroU32::new(1_000),
            max_connections: Some(100),
            max_lease: Duration::from_secs(10),
            max_session: Some(MINUTE),
        }
    }

    fn open(rate: u32) -> Drive {
        Drive::Open { rate: NonZeroU32::new(rate).unwrap(), arrivals: Arrivals::Constant }
    }

    /// A load that the policy permits, of two agents with two threads each.
    fn plan() -> Plan {
        let workload = Workload::parse("double").unwrap();
        Plan {
            connections: 200,
            drive: open(2_000),
            threads: 4,
            until: Until::Elapsed(Duration::from_secs(10)),
            ..Plan::closed("10.0.0.5:8080".parse().unwrap(), workload)
        }
    }

    fn parts() -> Vec<Part> {
        (0..2)
            .map(|nth| Part { process: nth, processes: 4, threads: 4, first: nth, step: 2, own: 1 })
            .collect()
    }

    fn with_parts(plan: Plan, parts: Vec<Part>, left: Duration) -> Result<(), String> {
        policy().check(&Request::Prepare { plan: Box::new(plan), parts }, Some(left))
    }

    fn checked(plan: Plan) -> Result<(), String> {
        with_parts(plan, parts(), MINUTE)
    }

    #[track_caller]
    fn refused(plan: Plan, because: &str) {
        assert_eq!(checked(plan), Err(because.to_owned()));
    }

    #[test]
    fn what_is_within_the_limits_is_permitted() {
        assert_eq!(checked(plan()), Ok(()));
        assert_eq!(checked(Plan { target: "8.8.8.8:80".parse().unwrap(), ..plan() }), Ok(()));
        let none = Policy { max_rate: None, max_connections: None, max_session: None, ..policy() };
        let closed = Plan { connections: 1_000_000, drive: Drive::Closed, ..plan() };
        let request = Request::Prepare { plan: Box::new(closed), parts: parts() };
        assert_eq!(none.check(&request, None), Ok(()));
        let lease = Request::Lease { ms: 10_000 };
        let order = regatta_load::Order { order: LeaderCommand::Connect, at_ns: None };
        for request in
            [lease, Request::Clock, Request::Renew, Request::Order(order), Request::Abort]
        {
            assert_eq!(policy().check(&request, Some(Duration::ZERO)), Ok(()));
        }
    }

    #[test]
    fn other_targets_are_refused() {
        let to = |target: &str| Plan { target: target.parse().unwrap(), ..plan() };
        let sentence = |target: &str| {
            format!(
                "{target} is not among its targets (--targets 10.0.0.0/24:8000-8999,8.8.8.8:80)"
            )
        };
        // 1 another network, 2 another port, 3 a public address, 4 one beside a listed one, 5 one in the form of
        // IPv6, 6 this machine, 7 any address.
        for target in [
            "10.0.1.5:8080",
            "10.0.0.5:22",
            "93.184.215.14:80",
            "8.8.8.9:80",
            "[::ffff:93.184.215.14]:8080",
            "127.0.0.1:8080",
            "0.0.0.0:8080",
        ] {
            refused(to(target), &sentence(target));
        }
        // 8
        let unix = Plan { unix: Some("/run/app.sock".into()), ..plan() };
        refused(unix, "a Unix socket is no target of this agent: it loads only --targets");
    }

    #[test]
    fn more_connections_than_the_limit_are_refused() {
        // 9 active ones, 10 idle ones count, too.
        let more = "its share is 101 connections, more than 100 (--max-connections)";
        refused(Plan { connections: 201, ..plan() }, more);
        refused(Plan { idle: 1, ..plan() }, more);
    }

    #[test]
    fn more_connections_at_once_than_requests_per_second_are_refused() {
        let plan = Plan { connections: 20, drive: open(10), ..plan() };
        let policy = |most| Policy { max_rate: NonZeroU32::new(most), ..policy() };
        let check = |most: u32, idle: usize| {
            let plan = Box::new(Plan { idle, ..plan.clone() });
            policy(most).check(&Request::Prepare { plan, parts: parts() }, Some(MINUTE))
        };
        assert_eq!(check(10, 0), Ok(()), "two agents share 20 connections");
        assert_eq!(
            check(9, 0).unwrap_err(),
            "its share is 10 connections, and each begins with a request: more than 9 at once (--max-rate)"
        );
        let error = check(10, 1).unwrap_err();
        assert!(error.starts_with("its share is 11 connections, "), "idle ones, too: {error}");
    }

    #[test]
    fn a_longer_lease_than_the_limit_is_refused() {
        let check = |ms| policy().check(&Request::Lease { ms }, Some(MINUTE));
        assert_eq!(check(10_000), Ok(()));
        let expected =
            "a leader may be silent for at most 10s, and this one asks for a lease of 10.001s";
        assert_eq!(check(10_001).unwrap_err(), expected);
        assert!(check(u64::MAX).is_err());
    }

    #[test]
    fn a_higher_rate_than_the_limit_is_refused() {
        // 11 a rate, 12 one of a stage, 13 a load without a rate.
        let more = "its share is 1001 requests per second, more than 1000 (--max-rate)";
        refused(Plan { drive: open(2_001), ..plan() }, more);
        let stage = |rate| Stage { ns: 1_000_000_000, rate: NonZeroU32::new(rate).unwrap() };
        refused(plan().in_stages(vec![stage(10), stage(2_001)], Arrivals::Constant), more);
        let without = "its rate is limited to 1000/s (--max-rate), so the load needs a rate: use --rate or --stages";
        refused(Plan { drive: Drive::Closed, ..plan() }, without);
        let burst = Drive::Burst(Burst { instances: 1, requests: 1 });
        refused(Plan { drive: burst, until: Until::Done, connections: 100, ..plan() }, without);
    }

    #[test]
    fn a_longer_load_than_the_session_is_refused() {
        // 14 the session has too little time left, 15 nobody knows how long the load takes.
        let warm_up = WarmUp::Fixed(Duration::from_secs(3));
        let left = Duration::from_millis(12_900);
        let error = with_parts(Plan { warm_up, ..plan() }, parts(), left).unwrap_err();
        assert_eq!(
            error,
            "the load takes at least 13s, and its session has 12.9s left of 60s (--max-session)"
        );
        let policy = Policy { max_rate: None, ..policy() };
        let plan = Plan { drive: Drive::Closed, until: Until::Requests(10), ..plan() };
        let request = Request::Prepare { plan: Box::new(plan), parts: parts() };
        assert_eq!(
            policy.check(&request, Some(MINUTE)).unwrap_err(),
            "its sessions are limited to 60s (--max-session), so the load needs a duration: use -d"
        );
    }

    #[test]
    fn what_is_no_load_is_refused() {
        // 19 a request for the server's side of a race, which names commands.
        let site = Request::Site(serde_json::json!({ "start": "touch /tmp/x" }));
        let error = policy().check(&site, None).unwrap_err();
        assert_eq!(error, "it carries out nothing but loads");
    }

    #[test]
    fn impossible_loads_are_refused() {
        // 16 a plan that contradicts itself, 17 a part that is none.
        let error = checked(Plan { connections: 0, ..plan() }).unwrap_err();
        assert!(
            error.contains("connections, threads and pipeline must each be at least 1"),
            "{error}"
        );
        let part = Part { process: 1, processes: 2, threads: 4, first: 4, step: 1, own: 1 };
        let error = with_parts(plan(), vec![part], MINUTE).unwrap_err();
        assert_eq!(error, "the part 1 of the load is impossible");
    }

    #[test]
    fn connections_whose_sum_overflows_are_refused() {
        let half = 1_usize << 63;
        let members = Workload::parse("hub").unwrap();
        let plan = Plan { workload: members, idle: half, passing: half, ..plan() };
        let policy = Policy { max_rate: None, ..policy() };
        let request = Request::Prepare { plan: Box::new(plan), parts: parts() };
        let error = policy.check(&request, Some(MINUTE)).unwrap_err();
        assert!(error.contains("outstanding requests"), "{error}");
    }

    #[test]
    fn more_parts_than_an_agent_starts_are_refused_before_they_are_looked_at() {
        let impossible = Part { process: 1, processes: 1, threads: 1, first: 0, step: 1, own: 1 };
        let error = with_parts(plan(), vec![impossible; 65], MINUTE).unwrap_err();
        assert_eq!(error, "expected at most 64 parts of a load, got 65");
    }

    #[test]
    fn more_load_threads_than_cpus_are_refused() {
        let part =
            |process, own| Part { process, processes: 2, threads: 5, first: 0, step: 1, own };
        let error = with_parts(plan(), vec![part(0, 2), part(1, 3)], MINUTE).unwrap_err();
        assert_eq!(error, "its share is 5 load threads, more than its 4 CPUs");
    }

    #[test]
    fn members_that_join_and_leave_are_refused_with_a_limited_rate() {
        let workload = Workload::parse("hub").unwrap();
        let error = checked(Plan { workload, connections: 100, passing: 1, ..plan() }).unwrap_err();
        assert!(
            error.ends_with("(--max-rate), and members that join and leave have none"),
            "{error}"
        );
    }

    #[test]
    fn the_members_of_a_hub_have_the_same_limits() {
        let hub = Plan { workload: Workload::parse("hub").unwrap(), ..plan() };
        assert_eq!(checked(hub.clone()), Ok(()));
        let more = "its share is 101 connections, more than 100 (--max-connections)";
        refused(Plan { idle: 1, ..hub.clone() }, more);
        let more = "its share is 1001 requests per second, more than 1000 (--max-rate)";
        refused(Plan { drive: open(2_001), ..hub.clone() }, more);
        let in_flight = Drive::Bounded { in_flight: NonZeroU32::new(4).unwrap() };
        let error = checked(Plan { drive: in_flight, ..hub }).unwrap_err();
        assert!(error.ends_with("so the load needs a rate: use --rate or --stages"), "{error}");
    }

    #[test]
    fn a_workload_in_a_message_names_no_files_of_the_agent() {
        let text = "protocol = \"http\"\n[[request]]\npath = \"/\"\nbody = \"x\"\n";
        let workload = Workload::from_text(text, "mine").unwrap();
        let sent = serde_json::to_string(&workload).unwrap();
        let sent = sent.replace("body = \\\"x\\\"", "body_file = \\\"/etc/hostname\\\"");
        let error = serde_json::from_str::<Workload>(&sent).unwrap_err().to_string();
        assert!(error.contains("is not in [files]"), "{error}");
    }
}
