use super::*;
use crate::fixtures;
use std::fs;

#[test]
fn drops_an_incomplete_last_line_before_appending() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(ROUNDS);
    drop_partial_line(&path).unwrap(); // there may be none
    assert!(!path.exists());
    for (there, stays) in [("", ""), ("1\n", "1\n"), ("1\n2", "1\n"), ("12", "")] {
        fs::write(&path, there).unwrap();
        drop_partial_line(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), stays, "{there:?}");
        append_line(&mut open_lines(&path).unwrap(), &path, &3).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{stays}3\n"), "{there:?}");
    }
}

#[test]
fn a_resumed_race_appends_to_whole_lines_only() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::create(folder.path(), &fixtures::asked()).unwrap());
    let files = [ROUNDS, SETTLING].map(|name| folder.path().join(name));
    files.iter().for_each(|file| fs::write(file, "{\"format\":1,\"cont").unwrap());
    let (store, ..) = Store::resume(folder.path()).unwrap();
    assert_eq!(files.map(|file| fs::read_to_string(file).unwrap()), ["", ""]);
    drop(store);
}

#[test]
fn only_the_first_rounds_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path(), &fixtures::asked()).unwrap();
    let path = folder.path().join(ROUNDS);
    for (keep, stays) in [(4, "1\n22\n333\n"), (3, "1\n22\n333\n"), (2, "1\n22\n"), (0, "")] {
        fs::write(&path, "1\n22\n333\n").unwrap();
        store.keep(keep).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), stays, "{keep}");
        append_line(&mut store.file, &path, &4).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{stays}4\n"), "{keep}");
    }
}
