//! The machine of the contenders, if it is another one than the load's.

use crate::{Fingerprint, Setup};
use serde::{Deserialize, Serialize};
use std::{net::IpAddr, path::PathBuf};

/// The machine of the contenders, if the load has another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerMachine {
    /// Its name, as given: a destination of `ssh`.
    pub name: String,
    /// The address at which the load reaches the contenders, and that `{host}` stands for.
    pub address: IpAddr,
    /// The folder in which the contenders are started.
    pub dir: PathBuf,
    /// The machine and its regatta.
    pub setup: Setup,
    /// Whether it is the machine of the load, too: an agent there has the same kernel. Absent: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_machine: bool,
    /// The programs and files there. Absent until the race begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

impl ServerMachine {
    /// Lists the differences between two states of it, a few words each, with its name.
    pub fn differences(&self, now: &ServerMachine) -> Vec<String> {
        let mut found = Vec::new();
        if let (Some(then), Some(now)) = (&self.fingerprint, &now.fingerprint) {
            found.extend(then.differences(now));
        }
        found.extend(self.setup.differences(&now.setup));
        if (self.address, &self.dir) != (now.address, &now.dir) {
            let place = |of: &ServerMachine| format!("{} in {}", of.address, of.dir.display());
            found.push(format!("contenders were at {}, now at {}", place(self), place(now)));
        }
        if self.one_machine != now.one_machine {
            let which =
                |one| if one { "the machine of the load" } else { "another than the load's" };
            found.push(format!(
                "the machine was {}, now {}",
                which(self.one_machine),
                which(now.one_machine)
            ));
        }
        found.into_iter().map(|what| format!("on {}, {what}", self.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_the_machine() {
        let then = ServerMachine {
            name: "sut".into(),
            address: IpAddr::from([10, 0, 0, 5]),
            dir: "/home/bench".into(),
            setup: Setup { kernel: "Linux 6.1".into(), ..Setup::default() },
            one_machine: false,
            fingerprint: Some(Fingerprint { cpus: vec![0], ..Fingerprint::default() }),
        };
        assert!(then.differences(&then.clone()).is_empty());
        let now = ServerMachine {
            dir: "/root".into(),
            setup: Setup { kernel: "Linux 6.2".into(), ..Setup::default() },
            one_machine: true,
            fingerprint: Some(Fingerprint { cpus: vec![1], ..Fingerprint::default() }),
            ..then.clone()
        };
        assert_eq!(
            then.differences(&now),
            [
                "on sut, it could use CPUs [0], now [1]",
                "on sut, the kernel was Linux 6.1, now Linux 6.2",
                "on sut, contenders were at 10.0.0.5 in /home/bench, now at 10.0.0.5 in /root",
                "on sut, the machine was another than the load's, now the machine of the load",
            ]
        );
    }
}
