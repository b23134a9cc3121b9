//! The start of a contender, inside its supervisor: control group, CPUs, process group, output.

use crate::{
    contender::{output::Output, wire::Launch},
    group::cgroup::Cgroup,
    process::{
        kill::{kill_all, pid_number},
        tree,
    },
};
use rustix::{
    process::{Pid, getpid},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

/// A started contender.
pub(crate) struct Started {
    pub pid: Pid,
    pub cgroup: Option<Cgroup>,
    pub output: Output,
}

/// Starts the contender in a control group, on its CPUs, in its own process group.
///
/// The supervisor itself enters the group and the CPUs, starts the child, which inherits them, and goes
/// back. So the child is inside from its first moment, and the supervisor's own work is not counted.
/// The error is a sentence; after an error, nothing is left behind.
pub(crate) fn start(launch: &Launch) -> Result<Started, String> {
    let name = &launch.name;
    check(launch)?;
    let failed = |error: io::Error| format!("{name} cannot be started: {error}");
    let cgroup = Cgroup::enter(launch.containment, pid_number(getpid())).map_err(failed)?;
    let spawned = spawn(launch);
    let Some(cgroup) = cgroup else {
        if spawned.is_err() {
            // The child may run: the error may have come after its start.
            kill_all(None, |_, _| ());
        }
        return spawned.map(|(pid, output)| Started { pid, cgroup: None, output });
    };
    let left = cgroup.leave().map_err(failed);
    match (spawned, left) {
        (Ok((pid, output)), Ok(())) => Ok(Started { pid, cgroup: Some(cgroup), output }),
        (Err(because), _) | (_, Err(because)) => {
            kill_all(None, |_, _| ());
            // The first error is reported.
            let _ = cgroup.remove();
            Err(because)
        }
    }
}

fn check(launch: &Launch) -> Result<(), String> {
    let Launch { name, command, dir, .. } = launch;
    if command.is_empty() {
        return Err(format!("{name} cannot be started: its start command is empty"));
    }
    if !dir.is_dir() {
        return Err(format!("{name} cannot be started: there is no directory {}", dir.display()));
    }
    if !tree::can_list_children() {
        return Err("this kernel has no /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN); \
                    without it, not all processes of a contender can be found"
            .to_string());
    }
    Ok(())
}

fn spawn(launch: &Launch) -> Result<(Pid, Output), String> {
    let Launch { name, command, dir, cpus, .. } = launch;
    let failed = |error: io::Error| format!("{name} cannot be started: {error}");
    let (reader, writer) = io::pipe().map_err(failed)?;
    let output = Output::new(reader).map_err(failed)?;
    let mut process = Command::new(&command[0]);
    process
        .args(&command[1..])
        .current_dir(dir)
        .envs(&launch.env)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(failed)?)
        .stderr(writer);
    let before = move_to_cpus(cpus)
        .map_err(|error| format!("{name} cannot run on CPUs {cpus:?} of this machine: {error}"))?;
    let child = process.spawn();
    // The supervisor itself goes back to its own CPUs.
    sched_setaffinity(None, &before).map_err(|error| failed(error.into()))?;
    let child = child.map_err(|error| {
        let (program, dir) = (&command[0], dir.display());
        format!("{name} cannot be started: `{program}` in {dir}: {error}")
    })?;
    Ok((Pid::from_child(&child), output))
}

/// Binds the calling thread to `cpus`, unless that is empty. Returns its previous CPUs.
fn move_to_cpus(cpus: &[u32]) -> io::Result<CpuSet> {
    let before = sched_getaffinity(None)?;
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            let most = CpuSet::MAX_CPU - 1;
            return Err(io::Error::other(format!("the highest possible CPU number is {most}")));
        }
        wanted.set(cpu as usize);
    }
    if !cpus.is_empty() {
        sched_setaffinity(None, &wanted)?;
    }
    Ok(before)
}
