//! Settings of the machine that change what a request costs: a contender that may change them could do so
//! for its rivals. They are read before a contender starts, and compared after it stopped.

use std::{collections::BTreeMap, fs, path::Path};

/// Folders of settings, without those below them: network, memory, scheduler and other limits.
const FOLDERS: [&str; 5] = [
    "/proc/sys/net/core",
    "/proc/sys/net/ipv4",
    "/proc/sys/vm",
    "/proc/sys/kernel",
    "/sys/kernel/mm/transparent_hugepage",
];
/// Single settings: those of the loopback device, and one that applies to all devices.
const FILES: [&str; 3] = [
    "/sys/class/net/lo/mtu",
    "/sys/class/net/lo/tx_queue_len",
    "/proc/sys/net/ipv4/conf/all/rp_filter",
];
/// What the kernel itself changes.
const CHANGING: [&str; 5] = ["ns_last_pid", "pty", "random", "tcp_fastopen_key", "stat_refresh"];
/// Changes that a report names; more are counted.
const NAMED: usize = 3;

/// The settings at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Reads them, which takes a few milliseconds. Those that cannot be read are left out.
    pub fn read() -> Settings {
        let below = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
        let of_folders = FOLDERS.iter().flat_map(|folder| below(folder)).map(|entry| entry.path());
        let all = of_folders.chain(FILES.iter().map(|file| Path::new(file).to_owned()));
        let is_steady = |path: &Path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            path.is_file() && name.is_none_or(|name| !CHANGING.contains(&name.as_str()))
        };
        let value = |path: &Path| {
            let text = fs::read_to_string(path).ok()?;
            Some((path.to_string_lossy().into_owned(), text.trim().replace('\t', " ")))
        };
        Settings(all.filter(|path| is_steady(path)).filter_map(|path| value(&path)).collect())
    }

    /// Describes what has changed since `before`, as a part of a sentence; `None` if nothing has.
    pub fn changed_since(&self, before: &Settings) -> Option<String> {
        let changed: Vec<String> = before
            .0
            .iter()
            .filter_map(|(path, old)| {
                let new = self.0.get(path)?;
                (new != old).then(|| format!("{path} from {old} to {new}"))
            })
            .collect();
        let more = changed.len().saturating_sub(NAMED);
        let named = changed.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        match (changed.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(named),
            (false, more) => Some(format!("{named}, and {more} more")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(all: &[(&str, &str)]) -> Settings {
        Settings(all.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect())
    }

    #[test]
    fn the_kernel_does_not_change_what_is_read() {
        let first = Settings::read();
        assert!(first.0.len() > 50, "{first:?}");
        assert!(first.0.contains_key("/proc/sys/net/core/somaxconn"));
        assert_eq!(Settings::read().changed_since(&first), None);
    }

    #[test]
    fn names_what_has_changed_and_counts_the_rest() {
        let before = settings(&[("/a", "1"), ("/b", "2"), ("/c", "3"), ("/d", "4"), ("/e", "5")]);
        assert_eq!(before.changed_since(&before), None);
        let one = settings(&[("/a", "1"), ("/b", "20"), ("/new", "1")]);
        assert_eq!(one.changed_since(&before).unwrap(), "/b from 2 to 20");
        let many = settings(&[("/a", "x"), ("/b", "x"), ("/c", "x"), ("/d", "x"), ("/e", "x")]);
        let text = many.changed_since(&before).unwrap();
        assert_eq!(text, "/a from 1 to x, /b from 2 to x, /c from 3 to x, and 2 more");
    }
}
