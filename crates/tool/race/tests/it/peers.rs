//! The manifests of the peers: a release date belongs to the version that is installed.

use regatta_race::Contender;
use std::{fs, path::Path};

/// Returns the text of the files that pin versions, in a peer's folder and the folders of its sources.
fn pinned(peer: &Contender) -> String {
    let sources = peer.manifest.source.iter().map(|file| peer.dir.join(file));
    let of_sources = sources.filter_map(|file| file.parent().map(Path::to_path_buf));
    let of_setup = peer.manifest.setup.iter().filter_map(|command| command.split(' ').next());
    let of_setup =
        of_setup.filter_map(|program| Some(peer.dir.join(program).parent()?.to_path_buf()));
    let folders = of_sources.chain(of_setup).chain([peer.dir.clone()]);
    let files = folders.flat_map(|folder| {
        ["pom.xml", "requirements.txt", "Cargo.lock", "go.mod", "package-lock.json"]
            .map(|name| folder.join(name))
    });
    files.filter_map(|file| fs::read_to_string(file).ok()).collect()
}

#[test]
fn a_release_date_names_the_pinned_version_and_its_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../peers");
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
