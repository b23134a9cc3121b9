//! The races that come with the program.

/// Their names and their files.
pub(crate) const RACES: [(&str, &str); 14] = [
    ("quick", include_str!("../../../races/quick.toml")),
    ("double", include_str!("../../../races/double.toml")),
    ("models", include_str!("../../../races/models.toml")),
    ("sweep", include_str!("../../../races/sweep.toml")),
    ("dialogue", include_str!("../../../races/dialogue.toml")),
    ("hello", include_str!("../../../races/hello.toml")),
    ("readiness", include_str!("../../../races/readiness.toml")),
    ("hash", include_str!("../../../races/hash.toml")),
    ("hash-quick", include_str!("../../../races/hash-quick.toml")),
    ("hub", include_str!("../../../races/hub.toml")),
    ("hub-echo", include_str!("../../../races/hub-echo.toml")),
    ("hub-slow", include_str!("../../../races/hub-slow.toml")),
    ("fairness", include_str!("../../../races/fairness.toml")),
    ("truth", include_str!("../../../races/truth.toml")),
];

/// The names of the bundled races, in words.
pub fn names() -> String {
    RACES.map(|(name, _)| name).join(", ")
}
