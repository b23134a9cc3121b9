//! `regatta import httparena`: makes contenders from the entries of a checkout of HttpArena
//! (<https://github.com/MDA2AV/HttpArena>), and a workload file and a race for each profile that the load speaks.
//!
//! An entry is a folder `frameworks/NAME` with a `meta.json` and a `Dockerfile`. Its container runs on the host's
//! network and serves HTTP/1.1 on port 8080. It sees `/data/dataset.json`, `/data/static` and `/certs`
//! (`scripts/lib/framework.sh`).
//!
//! Entries are written by others. Nothing of them is run here, their names become parts of paths and commands only in
//! a safe form, and symbolic links are not followed.

mod checkout;
mod dataset;
mod entry;
mod manifest;
mod profiles;
mod text;

use super::files::{Generated, Written};
use crate::{exit::Outcome, output};
use checkout::{Checkout, LeftOut};
use entry::Entry;
use profiles::{Profile, Requested};
use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

/// Make contenders in containers from a checkout of HttpArena
#[derive(Debug, clap::Args)]
#[command(after_help = "Writes peers/arena-NAME/manifest.toml, workloads/arena-PROFILE.toml and
races/arena-PROFILE.toml in this folder. A file that you have changed is kept.
Nothing of the checkout is run; `regatta peers install` builds the images.

Profiles: baseline, pipelined, limited-conn, json.

Examples:
  git clone https://github.com/MDA2AV/HttpArena
  regatta import httparena HttpArena --only actix,nginx
  regatta peers install arena-actix arena-nginx
  regatta race races/arena-baseline.toml

Exit status: 0 imported; 1 no entry could be imported; 2 an error.")]
pub struct ArenaArgs {
    /// The folder of the checkout
    dir: PathBuf,
    /// Import only these entries
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    only: Vec<String>,
    /// Import only these profiles
    #[arg(long, value_delimiter = ',', value_name = "PROFILE,…")]
    profiles: Vec<String>,
}

/// Imports.
pub fn run(args: &ArenaArgs) -> anyhow::Result<Outcome> {
    let checkout = Checkout::open(&args.dir)?;
    let requested = Requested::parse(&args.profiles)?;
    let mut left_out: Vec<LeftOut> = checkout.left_out();
    let usable = requested.usable(&checkout, &mut left_out);
    let mut entries = Vec::new();
    for name in checkout.names(&args.only)? {
        match Entry::read(&checkout, &name) {
            Ok(entry) => entries.extend(selected(entry, &requested, &usable, &mut left_out)),
            Err(because) => left_out.push((text::shown(&name, 60), because)),
        }
    }
    let profiles: Vec<&Profile> = usable
        .iter()
        .filter(|profile| entries.iter().any(|entry| entry.has(profile.name)))
        .collect();
    let mut files = Vec::new();
    for entry in &entries {
        files.push(manifest::of(entry, &checkout)?);
    }
    for profile in &profiles {
        files.extend(profile.files()?);
    }
    let report = write(&files)?;
    output::print(&format!("{report}{}{}", listed(&left_out), next(&entries, &profiles)))?;
    Ok(if entries.is_empty() { Outcome::Failure } else { Outcome::Success })
}

/// Returns the entry with the profiles that are imported; `None` if there are none.
fn selected(
    entry: Entry,
    requested: &Requested,
    usable: &[Profile],
    left_out: &mut Vec<LeftOut>,
) -> Option<Entry> {
    let mut tests = Vec::new();
    // In the order of the entry, one line for each reason.
    let mut others: Vec<(&str, Vec<String>)> = Vec::new();
    for test in &entry.tests {
        if usable.iter().any(|profile| profile.name == test) {
            tests.push(test.clone());
        } else if requested.wants(test) && !requested.is_known(test) {
            let (why, test) = (profiles::why_not(test), text::shown(test, 60));
            match others.iter_mut().find(|(known, _)| *known == why) {
                Some((_, tests)) => tests.push(test),
                None => others.push((why, vec![test])),
            }
        }
    }
    for (why, tests) in others {
        left_out.push((format!("{}: {}", entry.name, tests.join(", ")), why.to_owned()));
    }
    if tests.is_empty() {
        left_out.push((entry.name, "it has none of the profiles that are imported".into()));
        return None;
    }
    Some(Entry { tests, ..entry })
}

/// Writes the files into the working directory. Returns a line for each.
fn write(files: &[Generated]) -> anyhow::Result<String> {
    let mut report = String::new();
    for file in files {
        let said = match file.write(Path::new(""))? {
            Written::New => "written",
            Written::Updated => "updated",
            Written::Same => "unchanged",
            Written::Kept => "kept, because you have changed it; to have it made again, remove it",
        };
        let _ = writeln!(report, "{}: {said}", file.path.display());
    }
    Ok(report)
}

/// Lists what was left out, one line for each entry and reason.
fn listed(left_out: &[LeftOut]) -> String {
    let mut list = String::new();
    for (what, because) in left_out {
        let _ = writeln!(list, "left out: {what}: {because}");
    }
    list
}

/// Says what to do next.
fn next(entries: &[Entry], profiles: &[&Profile]) -> String {
    let (Some(entry), Some(profile)) = (entries.first(), profiles.first()) else {
        return "nothing was imported\n".into();
    };
    let more = if entries.len() > 1 { " …" } else { "" };
    format!(
        "next: regatta peers install {}{more}\n      regatta race {}\n",
        entry.contender(),
        profile.race_path().display()
    )
}
