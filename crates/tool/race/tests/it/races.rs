//! The race files in `races/`, including those that are not bundled: they can be read, and each figure
//! of an article belongs to a load.

use regatta_race::Contest;
use regatta_record::CpuSets;
use std::{fs, path::Path};

#[test]
fn every_figure_of_an_article_belongs_to_a_load_of_its_race() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../races");
    let cpus = CpuSets { server: vec![0], load: vec![1], spare: vec![], ..CpuSets::default() };
    let mut read = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().is_some_and(|name| name == "contenders.toml") {
            continue;
        }
        let name = path.display().to_string();
        let contest = Contest::parse(&fs::read_to_string(&path).unwrap(), &name)
            .unwrap_or_else(|error| panic!("{error}"));
        let (loads, _) = contest.loads(&cpus);
        let shown = contest.then(&cpus, &loads);
        assert_eq!(shown.len(), contest.then.len(), "{name}: {shown:#?}");
        read += 1;
    }
    assert!(read >= 18, "{read} race files");
}
