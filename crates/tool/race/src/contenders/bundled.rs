//! The races that come with the program.

/// Their names and their files.
pub(crate) const RACES: [(&str, &str); 20] = [
    ("quick", include_str!("../../../../../races/quick.toml")),
    ("double", include_str!("../../../../../races/double.toml")),
    ("models", include_str!("../../../../../races/models.toml")),
    ("sweep", include_str!("../../../../../races/sweep.toml")),
    ("dialogue", include_str!("../../../../../races/dialogue.toml")),
    ("hello", include_str!("../../../../../races/hello.toml")),
    ("readiness", include_str!("../../../../../races/readiness.toml")),
    ("grpc", include_str!("../../../../../races/grpc.toml")),
    ("hash", include_str!("../../../../../races/hash.toml")),
    ("hash-quick", include_str!("../../../../../races/hash-quick.toml")),
    ("hub", include_str!("../../../../../races/hub.toml")),
    ("hub-echo", include_str!("../../../../../races/hub-echo.toml")),
    ("hub-slow", include_str!("../../../../../races/hub-slow.toml")),
    ("hub-nodes", include_str!("../../../../../races/hub-nodes.toml")),
    ("shard", include_str!("../../../../../races/shard.toml")),
    ("shard-mset-10", include_str!("../../../../../races/shard-mset-10.toml")),
    ("shard-mset-100", include_str!("../../../../../races/shard-mset-100.toml")),
    ("shard-one-by-one", include_str!("../../../../../races/shard-one-by-one.toml")),
    ("fairness", include_str!("../../../../../races/fairness.toml")),
    ("truth", include_str!("../../../../../races/truth.toml")),
];

/// The workload files that they name: the name of each without `.toml`, and its text.
pub(crate) const WORKLOADS: [(&str, &str); 5] = [
    ("grpc", include_str!("../../../../../workloads/grpc.toml")),
    ("shard-set-get", include_str!("../../../../../workloads/shard-set-get.toml")),
    ("shard-mset-10", include_str!("../../../../../workloads/shard-mset-10.toml")),
    ("shard-mset-100", include_str!("../../../../../workloads/shard-mset-100.toml")),
    ("shard-one-by-one", include_str!("../../../../../workloads/shard-one-by-one.toml")),
];

/// Returns the names of the bundled races, separated by commas.
pub fn names() -> String {
    RACES.map(|(name, _)| name).join(", ")
}
