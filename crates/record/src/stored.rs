//! The shape of a load as it stands in files: all keys on one level, those of its drive among them.
//!
//! Files had `rate`, `arrivals`, `churn` and `burst` before drives had names. They still have them, so
//! that whoever reads files by these keys goes on doing so; `drive` came in addition. Without it the
//! other keys tell the drive. Keys that contradict each other are refused.

use crate::{Arrivals, Beside, Burst, Drive};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// A [`crate::LoadShape`] in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub connections: u32,
    #[serde(default)]
    pub idle: u32,
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub stalled: u32,
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passing: u32,
    pub pipeline: u32,
    /// Absent in what was written before drives had names.
    #[serde(default)]
    pub drive: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
    #[serde(default)]
    pub churn: Option<bool>,
    #[serde(default)]
    pub rate: Option<u32>,
    /// Without a rate it says nothing.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
    #[serde(default)]
    pub cores: Option<u32>,
    #[serde(default)]
    pub burst: Option<Burst>,
    #[serde(default)]
    pub requests: Option<u32>,
    #[serde(default)]
    pub n: Option<u32>,
    #[serde(default)]
    pub beside: Option<Beside>,
}

/// Which drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Name {
    Closed,
    Bounded,
    Open,
    Churn,
    Burst,
}

impl Name {
    /// As it stands in files.
    fn text(self) -> &'static str {
        match self {
            Name::Closed => "closed",
            Name::Bounded => "bounded",
            Name::Open => "open",
            Name::Churn => "churn",
            Name::Burst => "burst",
        }
    }

    /// The key that this drive has, and no other; closed loops have none.
    fn key(self) -> &'static str {
        match self {
            Name::Closed => "",
            Name::Bounded => "in_flight",
            Name::Open => "rate",
            Name::Churn => "churn",
            Name::Burst => "burst",
        }
    }
}

/// Why the keys of a load tell no drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Contradiction {
    /// Keys of two drives.
    #[error(
        "a load has one drive, and this one has `{}` ({}) and `{}` ({}); keep one of them",
        .0.key(), .0.text(), .1.key(), .1.text()
    )]
    Two(Name, Name),
    /// The key of one drive, and the name of another.
    #[error(
        "`drive` is \"{}\", but there is `{}`, which only \"{}\" has; leave it out or name that drive",
        .named.text(), .given.key(), .given.text()
    )]
    Other { named: Name, given: Name },
    /// A name alone.
    #[error("`drive` is \"{}\", which needs `{}`, and there is none", .0.text(), .0.key())]
    Lacking(Name),
    /// A number that must not be 0.
    #[error("`{0}` must be at least 1, and it is 0; leave it out for none")]
    Zero(&'static str),
}

impl Stored {
    /// The drive that the keys tell.
    pub fn drive(&self) -> Result<Drive, Contradiction> {
        let at_least_1 = |n, key| NonZeroU32::new(n).ok_or(Contradiction::Zero(key));
        let bounded = |n| Ok(Drive::Bounded { in_flight: at_least_1(n, "in_flight")? });
        let arrivals = self.arrivals.unwrap_or_default();
        let open = |n| Ok(Drive::Open { rate: at_least_1(n, "rate")?, arrivals });
        let churn = self.churn.filter(|churn| *churn).map(|_| Ok(Drive::Churn));
        let given = [
            (Name::Bounded, self.in_flight.map(bounded)),
            (Name::Open, self.rate.map(open)),
            (Name::Churn, churn),
            (Name::Burst, self.burst.map(|burst| Ok(Drive::Burst(burst)))),
        ];
        let mut given = given.into_iter().filter_map(|(name, drive)| Some((name, drive?)));
        let (first, second) = (given.next(), given.next());
        match (self.drive, first, second) {
            (_, Some((first, _)), Some((second, _))) => Err(Contradiction::Two(first, second)),
            (None | Some(Name::Closed), None, _) => Ok(Drive::Closed),
            (None, Some((_, drive)), _) => drive,
            (Some(named), Some((given, drive)), _) if named == given => drive,
            (Some(named), Some((given, _)), _) => Err(Contradiction::Other { named, given }),
            // Its key has nothing to add.
            (Some(Name::Churn), None, _) if self.churn.is_none() => Ok(Drive::Churn),
            (Some(named), None, _) => Err(Contradiction::Lacking(named)),
        }
    }

    /// The same with the keys of `drive`. Of those that a file always had, all are there.
    pub fn with_drive(self, drive: Drive) -> Self {
        let none = Stored {
            in_flight: None,
            churn: Some(false),
            rate: None,
            arrivals: Some(Arrivals::default()),
            burst: None,
            ..self
        };
        match drive {
            Drive::Closed => Stored { drive: Some(Name::Closed), ..none },
            Drive::Bounded { in_flight } => {
                Stored { drive: Some(Name::Bounded), in_flight: Some(in_flight.get()), ..none }
            }
            Drive::Open { rate, arrivals } => {
                let (rate, arrivals) = (Some(rate.get()), Some(arrivals));
                Stored { drive: Some(Name::Open), rate, arrivals, ..none }
            }
            Drive::Churn => Stored { drive: Some(Name::Churn), churn: Some(true), ..none },
            Drive::Burst(burst) => Stored { drive: Some(Name::Burst), burst: Some(burst), ..none },
        }
    }
}
