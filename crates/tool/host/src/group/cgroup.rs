//! A control group around one contender. It counts the CPU time of all its processes, including those
//! that are not waited for, and in version 2 kills them all in one step. It is optional: without the
//! right to create one, only the process tree is used.

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Version of a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    /// The unified hierarchy; `cpu.stat` exists even without a controller.
    V2,
    /// The `cpuacct` hierarchy.
    V1,
}

/// Which control group to create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Containment {
    /// Version 2 if it can be created, otherwise version 1, otherwise none.
    #[default]
    Best,
    /// This version; an error if it cannot be created.
    Only(Version),
    /// No control group.
    Without,
}

/// A control group, usually one that regatta created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    version: Version,
    path: PathBuf,
    /// The group that its creator came from and returns to.
    home: PathBuf,
    /// The group of the same processes in the freezer's hierarchy, and the group to return to: only in
    /// version 1, where each controller has a hierarchy of its own, and only if one could be created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    freezer: Option<(PathBuf, PathBuf)>,
}

impl Cgroup {
    /// Creates the group of `supervisor` below the caller's own and moves the caller into it.
    ///
    /// Returns `Ok(None)` if no group is wanted, or if none can be created with [`Containment::Best`].
    pub(crate) fn enter(containment: Containment, supervisor: u32) -> io::Result<Option<Cgroup>> {
        let name = &name_for(supervisor);
        match containment {
            Containment::Without => Ok(None),
            Containment::Only(version) => Cgroup::make_and_enter(version, name).map(Some),
            Containment::Best => Ok(Cgroup::make_and_enter(Version::V2, name)
                .or_else(|_| Cgroup::make_and_enter(Version::V1, name))
                .ok()),
        }
    }

    /// Finds the group that `supervisor` created, if it exists: for a supervisor that died before it
    /// reported the group. The caller must be in the group that the supervisor was started in.
    pub(crate) fn find(supervisor: u32) -> Option<Cgroup> {
        [Version::V2, Version::V1].into_iter().find_map(|version| {
            let home = own_cgroup(version).ok()?;
            let path = home.join(name_for(supervisor));
            let freezer = freezer_group(version, &name_for(supervisor)).filter(|(p, _)| p.is_dir());
            path.is_dir().then_some(Cgroup { version, path, home, freezer })
        })
    }

    /// Returns the group that a process is in. It is not ours to remove.
    pub(crate) fn of_process(version: Version, pid: u32) -> Option<Cgroup> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let membership = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let path = locate(version, "cpuacct", &mounts, &membership)?;
        Some(Cgroup { version, home: path.clone(), path, freezer: None })
    }

    /// Returns the living processes in it and in the groups below it.
    pub(crate) fn all_pids(&self) -> Vec<u32> {
        let mut pids = self.pids();
        let below = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for folder in below.map(|entry| entry.path()).filter(|path| path.is_dir()) {
            pids.extend(Cgroup { path: folder, ..self.clone() }.all_pids());
        }
        pids
    }

    /// Returns the version that [`Containment::Best`] would use here.
    pub fn best_version() -> Option<Version> {
        [Version::V2, Version::V1].into_iter().find(|&version| Cgroup::is_available(version))
    }

    /// Whether a group of this version can be created here. Creates one and removes it.
    pub fn is_available(version: Version) -> bool {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("regatta-probe-{}-{count}", std::process::id());
        let Ok(group) = Cgroup::make(version, &name) else { return false };
        let may_move = fs::OpenOptions::new().write(true).open(group.home.join("cgroup.procs"));
        group.remove().is_ok() && may_move.is_ok()
    }

    fn make_and_enter(version: Version, name: &str) -> io::Result<Cgroup> {
        let mut group = Cgroup::make(version, name)?;
        if let Err(error) = move_self_to(&group.path) {
            group.remove()?;
            return Err(error);
        }
        // Without a freezer, its processes are stopped by signals instead.
        if let Some((path, home)) = freezer_group(version, name) {
            let made = make_folder(&path).and_then(|()| move_self_to(&path));
            group.freezer = made.is_ok().then_some((path, home));
        }
        Ok(group)
    }

    fn make(version: Version, name: &str) -> io::Result<Cgroup> {
        let home = own_cgroup(version)?;
        let group = Cgroup { version, path: home.join(name), home, freezer: None };
        make_folder(&group.path).map_err(|error| {
            let path = group.path.display();
            io::Error::new(error.kind(), format!("cannot create the control group {path}: {error}"))
        })?;
        if let Err(error) = group.cpu_ns() {
            group.remove()?;
            return Err(error);
        }
        Ok(group)
    }

    /// Moves the calling process back to the group it came from; its children stay.
    pub(crate) fn leave(&self) -> io::Result<()> {
        move_self_to(&self.home)?;
        self.freezer.as_ref().map_or(Ok(()), |(_, home)| move_self_to(home))
    }

    /// Whether [`Cgroup::freeze`] can work.
    pub(crate) fn can_freeze(&self) -> bool {
        match self.version {
            Version::V2 => self.path.join("cgroup.freeze").exists(),
            Version::V1 => self.freezer.is_some(),
        }
    }

    /// Freezes all of its processes, and returns when all are frozen: after some 20 µs if they sleep.
    /// Fails after `limit`; call [`Cgroup::thaw`] then.
    pub(crate) fn freeze(&self, limit: Duration) -> io::Result<()> {
        let (order, value, state, frozen) = match (self.version, &self.freezer) {
            (Version::V1, Some((path, _))) => {
                let state = path.join("freezer.state");
                (state.clone(), "FROZEN", state, "FROZEN")
            }
            _ => {
                (self.path.join("cgroup.freeze"), "1", self.path.join("cgroup.events"), "frozen 1")
            }
        };
        fs::write(order, value)?;
        let deadline = Instant::now() + limit;
        while !fs::read_to_string(&state)?.lines().any(|line| line == frozen) {
            if Instant::now() > deadline {
                let what = format!("{} is not frozen after {limit:?}", self.path.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }

    /// Thaws its processes; no error if they are not frozen.
    pub(crate) fn thaw(&self) -> io::Result<()> {
        match (self.version, &self.freezer) {
            (Version::V1, None) => Ok(()),
            (Version::V1, Some((path, _))) => fs::write(path.join("freezer.state"), "THAWED"),
            (Version::V2, _) => fs::write(self.path.join("cgroup.freeze"), "0"),
        }
    }

    /// Returns its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the CPU time used by all processes that ever ran in it, in nanoseconds. The time of a
    /// running thread since the last timer tick (1 to 10 ms) may be missing.
    pub fn cpu_ns(&self) -> io::Result<u64> {
        let (file, scale) = match self.version {
            Version::V2 => ("cpu.stat", 1_000),
            Version::V1 => ("cpuacct.usage", 1),
        };
        let path = self.path.join(file);
        let text = fs::read_to_string(&path)?;
        let number = match self.version {
            Version::V2 => text.lines().find_map(|line| line.strip_prefix("usage_usec ")),
            Version::V1 => Some(text.as_str()),
        };
        let number = number.and_then(|number| number.trim().parse::<u64>().ok());
        number.map(|number| number * scale).ok_or_else(|| {
            io::Error::other(format!("{} has no CPU time in it: {text:?}", path.display()))
        })
    }

    /// Returns the living processes in it.
    pub fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Sends SIGKILL to all processes in it: in one step if the kernel can (version 2, Linux 5.14),
    /// otherwise one after the other. In the latter case, repeat it until [`Cgroup::pids`] is empty.
    pub(crate) fn kill(&self) {
        if self.version == Version::V2 && fs::write(self.path.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        // A frozen process of version 1 dies only when it is thawed.
        let _ = self.thaw();
        for pid in self.pids().into_iter().filter_map(|pid| Pid::from_raw(pid as i32)) {
            // An error means that it has already ended.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Removes it. The kernel may need a moment after the last of its processes was reaped; after 1 s
    /// the kernel's error is returned. It is not an error if the group is already gone.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let freezer = self.freezer.as_ref().map_or(Ok(()), |(path, _)| remove_folder(path));
        remove_folder(&self.path).and(freezer)
    }
}

/// Creates the folder of a group, in place of an empty one that a dead supervisor with the same pid left.
/// The kernel removes only an empty group.
fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_dir(path).and_then(|()| fs::create_dir(path))
        }
        made => made,
    }
}

/// See [`Cgroup::remove`].
fn remove_folder(path: &Path) -> io::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// The folder of a group called `name` in the freezer's own hierarchy, and the caller's group there; `None`
/// in version 2, whose groups have a freezer themselves, and without that hierarchy.
fn freezer_group(version: Version, name: &str) -> Option<(PathBuf, PathBuf)> {
    let (Version::V1, Ok(home)) = (version, own_group(version, "freezer")) else { return None };
    Some((home.join(name), home))
}

fn name_for(supervisor: u32) -> String {
    format!("regatta-{supervisor}")
}

fn move_self_to(group: &Path) -> io::Result<()> {
    // "0" is the writer, with all its threads.
    fs::write(group.join("cgroup.procs"), "0")
}

/// Returns the folder of the group that this process is in, by which CPU time is counted.
fn own_cgroup(version: Version) -> io::Result<PathBuf> {
    own_group(version, "cpuacct")
}

fn own_group(version: Version, controller: &str) -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let membership = fs::read_to_string("/proc/self/cgroup")?;
    locate(version, controller, &mounts, &membership).ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("no usable cgroup {version:?} mount"))
    })
}

/// Returns the folder of a process's group: the hierarchy from mountinfo (proc_pid_mountinfo(5)), the
/// group in it from `membership` (cgroups(7)). In version 1 it is the hierarchy of `controller`.
pub(crate) fn locate(
    version: Version,
    controller: &str,
    mounts: &str,
    membership: &str,
) -> Option<PathBuf> {
    let is_listed = |list: &str| list.split(',').any(|name| name == controller);
    let (root, mount_point) = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let before: Vec<&str> = before.split(' ').collect();
        let after: Vec<&str> = after.split(' ').collect();
        let wanted = match version {
            Version::V2 => after.first() == Some(&"cgroup2"),
            Version::V1 => {
                after.first() == Some(&"cgroup") && after.get(2).is_some_and(|o| is_listed(o))
            }
        };
        wanted.then_some((*before.get(3)?, *before.get(4)?))
    })?;
    let own = membership.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let wanted = match version {
            Version::V2 => id == "0" && controllers.is_empty(),
            Version::V1 => is_listed(controllers),
        };
        wanted.then_some(path)
    })?;
    // In a container the mount may show only part of the hierarchy. Groups outside are not ours.
    let below = Path::new(own).strip_prefix(root).ok()?;
    below
        .components()
        .all(|part| part.as_os_str() != "..")
        .then(|| Path::new(mount_point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate
";

    #[test]
    fn finds_both_hierarchies_of_a_hybrid_machine() {
        let membership = "3:cpu,cpuacct:/jobs/7\n0::/user.slice\n";
        let v2 = locate(Version::V2, "cpuacct", HYBRID, membership).unwrap();
        let v1 = locate(Version::V1, "cpuacct", HYBRID, membership).unwrap();
        assert_eq!(v2, Path::new("/sys/fs/cgroup/unified/user.slice"));
        assert_eq!(v1, Path::new("/sys/fs/cgroup/cpu,cpuacct/jobs/7"));
    }

    #[test]
    fn replaces_an_empty_leftover_group_but_not_one_in_use() {
        let name = format!("regatta-test-{}", std::process::id());
        for version in [Version::V2, Version::V1] {
            if !Cgroup::is_available(version) {
                continue;
            }
            let left = Cgroup::make(version, &name).unwrap();
            let anew = Cgroup::make(version, &name).unwrap();
            assert_eq!(left, anew);
            assert!(anew.pids().is_empty());
            let inner = anew.path().join("inner");
            fs::create_dir(&inner).unwrap();
            let error = Cgroup::make(version, &name).unwrap_err().to_string();
            assert!(error.contains("cannot create the control group"), "{error}");
            fs::remove_dir(inner).unwrap();
            anew.remove().unwrap();
            assert!(!anew.path().exists());
        }
    }

    #[test]
    fn a_container_sees_its_part_of_the_hierarchy() {
        let mounts = "41 31 0:38 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let inside = locate(Version::V2, "cpuacct", mounts, "0::/docker/ab/x\n").unwrap();
        assert_eq!(inside, Path::new("/sys/fs/cgroup/x"));
        assert_eq!(locate(Version::V2, "cpuacct", mounts, "0::/elsewhere\n"), None);
        assert_eq!(locate(Version::V2, "cpuacct", mounts, "0::/docker/ab/../c\n"), None);
        assert_eq!(locate(Version::V1, "cpuacct", mounts, "0::/docker/ab\n"), None);
    }
}
