//! The shape of a load in files: a flat set of keys, including those of its drive.
//!
//! Files had `rate`, `arrivals`, `churn` and `burst` before drives had names. They still have them,
//! so that existing readers of these keys continue to work; `drive` was added. Without it, the
//! other keys determine the drive. Contradictory keys are refused.

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
    /// Absent in files written before drives had names.
    pub drive: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
    pub churn: Option<bool>,
    pub rate: Option<u32>,
    /// Without a rate it has no meaning.
    pub arrivals: Option<Arrivals>,
    pub cores: Option<u32>,
    pub burst: Option<Burst>,
    pub requests: Option<u32>,
    pub n: Option<u32>,
    pub beside: Option<Beside>,
}

/// The name of a drive.
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
    /// The name in files.
    fn text(self) -> &'static str {
        match self {
            Name::Closed => "closed",
            Name::Bounded => "bounded",
            Name::Open => "open",
            Name::Churn => "churn",
            Name::Burst => "burst",
        }
    }

    /// The key that only this drive has; closed loops have none.
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

/// Why the keys of a load do not determine a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Contradiction {
    /// Keys of two drives.
    #[error(
        "a load has one drive, but this one has `{}` ({}) and `{}` ({}); keep one of them",
        .0.key(), .0.text(), .1.key(), .1.text()
    )]
    Two(Name, Name),
    /// The key of one drive, but the name of another.
    #[error(
        "`drive` is \"{}\", but `{}` is set, which only \"{}\" has; remove it or name that drive",
        .named.text(), .given.key(), .given.text()
    )]
    Other { named: Name, given: Name },
    /// A name without its key.
    #[error("`drive` is \"{}\", which needs `{}`, but it is missing", .0.text(), .0.key())]
    Lacking(Name),
    /// A number that must not be 0.
    #[error("`{0}` must be at least 1, but is 0; remove it for none")]
    Zero(&'static str),
}

impl Stored {
    /// Returns the drive that the keys determine.
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
            // The key `churn` adds nothing.
            (Some(Name::Churn), None, _) if self.churn.is_none() => Ok(Drive::Churn),
            (Some(named), None, _) => Err(Contradiction::Lacking(named)),
        }
    }

    /// Returns `self` with the keys of `drive`. In JSON, the keys that files always had are present.
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
