//! A race as asked: `races/*.toml`, bundled or the user's own, and what the command line changes.

use regatta_record::LoadShape;
use serde::{Deserialize, Deserializer};
use std::{path::Path, time::Duration};

/// Of a shorter window nothing can be said: slices, and the ticks of CPU clocks, are too coarse.
pub(crate) const SHORTEST_WINDOW: Duration = Duration::from_millis(50);

/// A race file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contest {
    /// Name of the race.
    pub name: String,
    /// Workload of all its cells.
    pub workload: String,
    /// Contenders by name; `peers` stands for every one that is not built in and serves the
    /// workload. Absent: every one that is known and serves it.
    #[serde(default)]
    pub contenders: Vec<String>,
    /// The contender that ratios are taken to. Absent: the first one.
    pub baseline: Option<String>,
    /// The contender to enter twice, as the measure of noise. Absent: the baseline.
    pub twin_of: Option<String>,
    /// Passes over all cells.
    pub rounds: u32,
    /// The measured window.
    #[serde(deserialize_with = "duration")]
    pub window: Duration,
    /// The longest warm-up; it ends earlier once the rate is steady.
    #[serde(deserialize_with = "duration")]
    pub warm_up: Duration,
    /// The loads: every combination of each entry's values.
    #[serde(rename = "load")]
    pub loads: Vec<Loads>,
}

/// Loads of a race file; lists are multiplied out.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loads {
    connections: OneOrMany,
    #[serde(default = "OneOrMany::one")]
    pipeline: OneOrMany,
    #[serde(default)]
    churn: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

impl OneOrMany {
    fn one() -> Self {
        OneOrMany::One(1)
    }

    fn values(&self) -> &[u32] {
        match self {
            OneOrMany::One(value) => std::slice::from_ref(value),
            OneOrMany::Many(values) => values,
        }
    }
}

/// Why a race file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContestError {
    /// It cannot be read.
    #[error("cannot read the race {origin}: {error}")]
    Read {
        /// The path that was given.
        origin: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// It is not TOML of the right form.
    #[error("the race {origin} cannot be understood: {error}")]
    Syntax {
        /// Where it came from.
        origin: String,
        /// Line, column and what was expected.
        error: toml::de::Error,
    },
    /// It is well-formed but asks for something that cannot be.
    #[error("the race {origin} cannot be run: {because}")]
    Value {
        /// Where it came from.
        origin: String,
        /// What is wrong, and what is permitted.
        because: String,
    },
    /// Neither a file nor the name of a bundled race.
    #[error(
        "there is no race `{name}`: expected a path to a .toml file, or one of the bundled races: {}",
        bundled_names()
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
}

const BUNDLED: [(&str, &str); 3] = [
    ("quick", include_str!("../../../races/quick.toml")),
    ("double", include_str!("../../../races/double.toml")),
    ("dialogue", include_str!("../../../races/dialogue.toml")),
];

fn bundled_names() -> String {
    BUNDLED.map(|(name, _)| name).join(", ")
}

impl Contest {
    /// A bundled race by its name, or a file by its path.
    pub fn find(name: &str) -> Result<Self, ContestError> {
        if let Some((_, text)) = BUNDLED.iter().find(|(bundled, _)| *bundled == name) {
            return Contest::parse(text, name);
        }
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return Err(ContestError::Unknown { name: name.into() });
        }
        let text = std::fs::read_to_string(name)
            .map_err(|error| ContestError::Read { origin: name.into(), error })?;
        Contest::parse(&text, name)
    }

    /// Reads a race file; `origin` is named in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ContestError> {
        let contest: Contest = toml::from_str(text)
            .map_err(|error| ContestError::Syntax { origin: origin.into(), error })?;
        let wrong = |because: &str| {
            Err(ContestError::Value { origin: origin.into(), because: because.into() })
        };
        if contest.rounds == 0 {
            return wrong("`rounds` is 0; at least 1 is needed, at least 5 for a table to publish");
        }
        if contest.window < SHORTEST_WINDOW {
            return wrong("`window` is shorter than 50ms; nothing can be measured in that");
        }
        if contest.loads().is_empty() {
            return wrong("it has no load; add [[load]] with connections = 64");
        }
        if contest.loads().iter().any(|l| l.connections == 0 || l.pipeline == 0) {
            return wrong("`connections` and `pipeline` must be at least 1");
        }
        if contest.loads().iter().any(|l| l.churn && l.pipeline > 1) {
            return wrong("`churn` is a connection per request; it does not go with `pipeline`");
        }
        Ok(contest)
    }

    /// The loads, multiplied out, in the order of the file, without repetitions.
    pub fn loads(&self) -> Vec<LoadShape> {
        let mut loads = Vec::new();
        for entry in &self.loads {
            for &connections in entry.connections.values() {
                for &pipeline in entry.pipeline.values() {
                    let closed = LoadShape::closed(connections, pipeline);
                    let load = LoadShape { churn: entry.churn, ..closed };
                    if !loads.contains(&load) {
                        loads.push(load);
                    }
                }
            }
        }
        loads
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|error| {
        serde::de::Error::custom(format!("{error}; write a time with its unit, as \"500ms\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_races_can_be_run() {
        for (name, _) in BUNDLED {
            assert_eq!(Contest::find(name).unwrap().name, name);
        }
        let double = Contest::find("double").unwrap();
        assert_eq!(double.loads().len(), 6);
        assert!(double.rounds >= 5);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let valid = "name='x'\nworkload='double'\nrounds=1\nwindow='1s'\nwarm_up='0s'\n";
        let load = "[[load]]\nconnections=1\n";
        assert!(Contest::parse(&format!("{valid}{load}"), "x").is_ok());
        for (text, said) in [
            (format!("{valid}load=[]"), "no load"),
            (format!("{valid}{load}pipeline=0"), "at least 1"),
            (format!("{valid}{load}pipeline=2\nchurn=true"), "churn"),
            (format!("{valid}{load}conections=2"), "conections"),
            (format!("{valid}{load}").replace("1s", "1"), "unit"),
            (format!("{valid}{load}").replace("1s", "1ms"), "50ms"),
            (format!("{valid}{load}").replace("rounds=1", "rounds=0"), "at least 5"),
        ] {
            let error = Contest::parse(&text, "mine.toml").unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("mine.toml"), "{error}");
        }
        assert!(Contest::find("dubble").unwrap_err().to_string().contains("quick, double"));
        assert!(Contest::find("no/such.toml").unwrap_err().to_string().contains("no/such.toml"));
    }
}
