//! The manifests of the peers: a date of release is that of the version that is installed.

use regatta_race::Contender;
use std::{fs, path::Path};

/// The text of the files that fix versions, in a peer's folder and in those that its sources are in.
fn pinned(peer: &Contender) -> String {
    let sources = peer.manifest.source.iter().map(|file| peer.dir.join(file));
    let of_sources = sources.filter_map(|file| file.parent().map(Path::to_path_buf));
    let folders = of_sources.chain([peer.dir.clone()]);
    let files = folders.flat_map(|folder| {
        ["pom.xml", "requirements.txt", "Cargo.lock", "go.mod", "package-lock.json"]
            .map(|name| folder.join(name))
    });
    files.filter_map(|file| fs::read_to_string(file).ok()).collect()
}

#[test]
fn a_date_of_release_names_the_version_that_is_pinned_and_where_the_date_is_from() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
    let mut dated = 0;
    for peer in Contender::find_all(&folder).unwrap() {
        let name = &peer.manifest.name;
        let Some(date) = &peer.manifest.released else { continue };
        let text = fs::read_to_string(peer.dir.join("manifest.toml")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.starts_with("released")).unwrap();
        let said = lines[at - 1].strip_prefix("# ").and_then(|said| said.split_once(": "));
        let (version, from) = said.unwrap_or_else(|| panic!("{name}: no version above {date}"));
        let pinned = pinned(&peer);
        let is_pinned =
            [format!(">{version}<"), format!("=={version}\n"), format!("\"{version}\"")]
                .iter()
                .any(|form| pinned.contains(form))
                || pinned.split_whitespace().any(|word| word == version);
        assert!(is_pinned, "{name}: {date} is of {version}, and another one is pinned");
        assert!(from.len() > 10, "{name}: {from}");
        dated += 1;
    }
    assert!(dated >= 17, "{dated} dated");
}
