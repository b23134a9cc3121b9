//! The manifest of an entry's contender.

use super::{checkout::Checkout, entry::Entry, profiles, text::quoted};
use crate::commands::import::files::Generated;
use anyhow::Context;
use regatta_race::{Manifest, Mount, Seccomp, Ulimit};
use serde::Serialize;
use std::{collections::BTreeMap, path::Path};

/// The port of HTTP/1.1 (`scripts/lib/common.sh`).
const PORT: u16 = 8080;

/// The keys of the manifest, in the order in which they are written: tables come last in TOML.
#[derive(Serialize)]
struct Keys {
    name: String,
    about: String,
    workloads: Vec<String>,
    image: String,
    setup: Vec<String>,
    port: u16,
    ready: String,
    seccomp: Seccomp,
    ulimits: BTreeMap<&'static str, Ulimit>,
    mounts: Vec<Mount>,
}

/// Returns the manifest of an entry.
///
/// # Errors
/// Only if this program is wrong: the manifest is not valid.
pub fn of(entry: &Entry, checkout: &Checkout) -> anyhow::Result<Generated> {
    let name = entry.contender();
    let image = format!("localhost/{name}");
    let context = quoted(&checkout.entry_text(&entry.name));
    // As regatta itself chooses an engine.
    let engine = "\"$(command -v podman || command -v docker)\"";
    let keys = Keys {
        about: entry.about.clone(),
        workloads: entry.tests.iter().map(|test| profiles::workload_name(test)).collect(),
        setup: vec![format!("{engine} build --tag {image} {context}")],
        port: PORT,
        ready: profiles::ready(&entry.tests).to_owned(),
        seccomp: Seccomp::Unconfined,
        ulimits: [("memlock", Ulimit(None))].into(),
        mounts: checkout
            .mounts()
            .map(|(from, to)| Mount { from: from.into(), to: to.into() })
            .collect(),
        name,
        image,
    };
    let toml = toml::to_string(&keys).context("cannot write a manifest")?;
    let text = format!(
        "# frameworks/{} of HttpArena, https://github.com/MDA2AV/HttpArena; its LICENSE: {}.\n{toml}",
        entry.name,
        checkout.licence()
    );
    let wrong = |why| anyhow::anyhow!("the manifest of {} is wrong: {why}", entry.name);
    Manifest::parse(&text).map_err(wrong)?;
    Ok(Generated { path: Path::new("peers").join(&keys.name).join("manifest.toml"), text })
}
