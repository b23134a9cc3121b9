//! Contenders with several roles, on simulated races: the cost of each role, the busiest set of
//! CPUs, and remarks that void nothing.

use crate::simulated::{LOAD, QUIET, asked, rounds, truth};
use regatta_judge::judge;
use regatta_record::{Asked, Cell, Kind, RoleUsage, Round, Server};

/// Four contenders; `front` is a server and two backends; the server uses `share` of the CPU time.
fn race(share: f64, cpus: [&[u32]; 2]) -> (Asked, Vec<Round>) {
    let names = ["epoll", "epoll-twin", "null", "front"];
    let field =
        [("epoll", 5_000.0), ("epoll-twin", 5_000.0), ("null", 4_000.0), ("front", 9_000.0)]
            .map(|(name, cost)| truth(name, cost));
    let mut rounds = rounds(&field, &[LOAD], 7, QUIET, 3);
    for round in rounds.iter_mut().filter(|round| round.contender == "front") {
        let whole = round.server.as_mut().unwrap();
        whole.cpus = cpus.concat().iter().collect::<std::collections::BTreeSet<_>>().len() as u32;
        whole.threads = 2;
        let part = |share: f64, count: u32, cpus: &[u32]| Server {
            cpu_ns: (whole.cpu_ns as f64 * share) as u64,
            cpus: cpus.len() as u32,
            threads: count,
            memory_bytes: 1_000_000 * u64::from(count),
            ..whole.clone()
        };
        let role = |name: &str, count, share, cpus: &[u32]| RoleUsage {
            name: name.into(),
            count,
            cpus: cpus.to_vec(),
            used: Some(part(share, count, cpus)),
        };
        round.roles = vec![role("server", 1, share, cpus[0]), role("app", 2, 1.0 - share, cpus[1])];
    }
    (asked(&names, 7, &[LOAD]), rounds)
}

fn front((asked, rounds): &(Asked, Vec<Round>)) -> Cell {
    judge(asked, rounds).cells.into_iter().find(|cell| cell.contender == "front").unwrap()
}

#[test]
fn the_cost_covers_all_roles_and_each_has_its_part() {
    let cell = front(&race(0.25, [&[0], &[0]]));
    let whole = cell.cost_ns_per_request.unwrap().mean;
    assert!((whole / 9_000.0 - 1.0).abs() < 0.1, "{whole}");
    let [server, app] = &cell.roles[..] else { panic!("{:?}", cell.roles) };
    assert_eq!((server.name.as_str(), app.name.as_str(), app.count), ("server", "app", 2));
    for (role, share) in [(server, 0.25), (app, 0.75)] {
        let cost = role.cost_ns_per_request.unwrap();
        assert!((cost.mean / whole - share).abs() < 0.001, "{role:?} of {whole}");
        assert!(cost.low < cost.mean && cost.mean < cost.high);
        assert!((role.share.unwrap() - share).abs() < 0.001, "{role:?}");
    }
    assert_eq!(app.memory_bytes, Some(2_000_000));
    let epoll = race(0.25, [&[0], &[0]]);
    let summary = judge(&epoll.0, &epoll.1);
    assert!(summary.cells.iter().filter(|c| c.contender != "front").all(|c| c.roles.is_empty()));
}

#[test]
fn roles_on_one_cpu_add_up_and_on_separate_cpus_the_busiest_counts() {
    let together = front(&race(0.5, [&[0], &[0]]));
    let busy = together.server_busy.unwrap();
    let each: Vec<f64> = together.roles.iter().map(|role| role.busy.unwrap()).collect();
    assert!((each[0] + each[1] - busy).abs() < 1e-9, "{each:?}, {busy}");

    let apart = front(&race(0.9, [&[0], &[1]]));
    let busy = apart.server_busy.unwrap();
    assert!((busy - together.server_busy.unwrap() * 0.9).abs() < 0.01, "{busy}");
    assert_eq!(apart.roles[0].busy, Some(busy), "not the average over both CPUs");
}

#[test]
fn a_saturated_backend_makes_the_contender_server_bound() {
    let busiest = |cpus: [&[u32]; 2]| {
        let (asked, mut rounds) = race(0.1, cpus);
        for round in rounds.iter_mut().filter(|round| round.contender == "front") {
            let whole = round.server.as_mut().unwrap();
            let faster = 0.99 * round.window_ns as f64 / (whole.cpu_ns as f64 * 0.9);
            whole.cpu_ns = (whole.cpu_ns as f64 * faster) as u64;
            for role in &mut round.roles {
                let used = role.used.as_mut().unwrap();
                used.cpu_ns = (used.cpu_ns as f64 * faster) as u64;
            }
        }
        front(&(asked, rounds)).verdict
    };
    let verdict = busiest([&[0], &[1]]);
    assert_eq!(verdict.kind(), Kind::ServerBound, "{verdict:?}");
}

#[test]
fn a_remark_is_reported_once_for_all_contenders_and_voids_nothing() {
    let (asked, mut rounds) = race(0.5, [&[0], &[0]]);
    let before = front(&(asked.clone(), rounds.clone()));
    for round in &mut rounds {
        let name = &round.contender;
        round.remark = Some(format!("{name} ignored SIGTERM for 2 s and had to be killed"));
    }
    let summary = judge(&asked, &rounds);
    let remarks: Vec<_> = summary.doubts.iter().filter(|doubt| doubt.contains("SIGTERM")).collect();
    assert_eq!(remarks.len(), 1, "{:?}", summary.doubts);
    let names = asked.contenders.join(", ");
    let expected = format!("{names} in 7 of 7 starts: ignored SIGTERM for 2 s");
    assert!(asked.contenders.len() > 1 && remarks[0].starts_with(&expected), "{remarks:?}");
    assert_eq!(front(&(asked, rounds)), before);
}
