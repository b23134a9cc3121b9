//! A race whose contenders run on another machine than the load: what it does not allow yet, and its CPUs.

use crate::{ask::duels::is_raced_in_duels, contenders::find_contenders::Contender};
use regatta_record::{Asked, Core, CpuSets, Schedule, ServerMachine};

/// Why a contender cannot run on another machine, as a sentence. `is_peer`: it is one of the folder of peers.
pub(crate) fn why_not(contender: &Contender, is_peer: bool) -> Option<String> {
    let manifest = &contender.manifest;
    let reasons = [
        (is_peer, "it is a peer, and peers are installed on this machine only"),
        (manifest.url.is_some(), "it is already running, so it cannot be frozen"),
        (manifest.image.is_some(), "it runs in a container"),
        (!manifest.backends.is_empty(), "it has backends"),
    ];
    let because = reasons.into_iter().find(|(is_so, _)| *is_so).map(|(_, because)| because)?;
    Some(format!("with --server, contenders are commands and built-in servers: {because}"))
}

/// Checks that all loads can be raced on another machine. The error is a sentence.
pub(crate) fn check(asked: &Asked) -> Result<(), String> {
    if asked.schedule == Schedule::Rounds {
        return Err("--schedule rounds does not work with --server yet; use duels".into());
    }
    let in_rounds = asked.loads.iter().find(|load| !is_raced_in_duels(asked, load));
    in_rounds.map_or(Ok(()), |load| {
        Err(format!(
            "the load {load} is raced in rounds, and with --server only duels work yet: a closed loop, a rate, \
             or a limit of requests in flight, with at most a third of the connections that this machine can open"
        ))
    })
}

/// Returns the CPUs of the server machine and of this one, which has `cores`. The error is a sentence.
pub(crate) fn cpu_sets(
    machine: &ServerMachine,
    server: Option<Vec<u32>>,
    (cores, load): (&[Core], Option<Vec<u32>>),
) -> Result<CpuSets, String> {
    available(&machine.name, &machine.setup.cores, server.as_deref())?;
    available("this machine", cores, load.as_deref())?;
    Ok(CpuSets::of_two_machines((&machine.setup.cores, server), (cores, load)))
}

/// Checks that a machine has the requested CPUs.
fn available(name: &str, cores: &[Core], requested: Option<&[u32]>) -> Result<(), String> {
    let mut all: Vec<u32> = cores.iter().flat_map(|core| core.cpus.iter().copied()).collect();
    all.sort_unstable();
    if all.is_empty() {
        return Err(format!("cannot determine the CPUs of {name}"));
    }
    match requested.unwrap_or_default().iter().find(|cpu| !all.contains(cpu)) {
        Some(cpu) => Err(format!("CPU {cpu} of {name} is not available; regatta may use {all:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{contenders::manifest::Manifest, fixtures};
    use regatta_record::{Fingerprint, LoadShape, Setup};

    fn machine(cpus: &[u32]) -> ServerMachine {
        let core = |cpu: &u32| Core { cpus: vec![*cpu], ..Core::default() };
        ServerMachine {
            name: "sut".into(),
            address: [10, 0, 0, 5].into(),
            dir: "/".into(),
            setup: Setup { cores: cpus.iter().map(core).collect(), ..Setup::default() },
            one_machine: false,
            fingerprint: Some(Fingerprint::default()),
        }
    }

    #[test]
    fn each_machine_gives_all_of_its_cpus_unless_some_are_requested() {
        let here = machine(&[0, 1]).setup.cores;
        let of = |server, load| cpu_sets(&machine(&[0, 1, 2]), server, (&here, load));
        let all = of(None, None).unwrap();
        assert_eq!((all.server, all.load, all.apart), (vec![0, 1, 2], vec![0, 1], true));
        let some = of(Some(vec![2]), Some(vec![1])).unwrap();
        assert_eq!((some.server, some.load), (vec![2], vec![1]));
        let error = of(None, Some(vec![2])).unwrap_err();
        assert_eq!(error, "CPU 2 of this machine is not available; regatta may use [0, 1]");
        let error = of(Some(vec![7]), None).unwrap_err();
        assert!(error.starts_with("CPU 7 of sut is not available"), "{error}");
    }

    #[test]
    fn only_commands_and_built_in_servers_run_elsewhere() {
        let contender = |text: &str| {
            let manifest = Manifest::from_argument(text, "double").unwrap();
            Contender { manifest, dir: "/".into() }
        };
        let command = contender("x=./x {host}:{port}");
        assert_eq!(why_not(&command, false), None);
        assert!(why_not(&command, true).unwrap().contains("it is a peer"));
        let image = contender("x=image:i ./x {host}:{port}");
        assert!(why_not(&image, false).unwrap().ends_with("it runs in a container"));
        let running = contender("x=http://127.0.0.1:80/");
        assert!(why_not(&running, false).unwrap().contains("already running"));
    }

    #[test]
    fn loads_that_are_raced_in_rounds_are_refused() {
        let duels = Asked { schedule: Schedule::Duels, ..fixtures::asked() };
        let with = |load| Asked { loads: vec![load], ..duels.clone() };
        assert_eq!(check(&with(LoadShape::closed(8, 1))), Ok(()));
        let counted = LoadShape { requests: Some(9), ..LoadShape::closed(8, 1) };
        assert!(check(&with(counted)).unwrap_err().contains("is raced in rounds"));
        assert!(check(&fixtures::asked()).unwrap_err().contains("--schedule rounds"));
    }
}
