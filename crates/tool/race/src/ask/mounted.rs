//! The files that the containers of a contender see. They decide what it serves, so they are part of the fingerprint.

use crate::contenders::find_contenders::Contender;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Maximum number of files of a folder that are part of the fingerprint, so that a huge folder does not delay every
/// round.
const MOST: usize = 10_000;

/// Returns the mounted files, and those of mounted folders, sorted. Symbolic links inside a folder are not followed: they
/// mean something else in a container.
///
/// # Errors
/// If one cannot be read, or a folder has too many files.
pub(crate) fn files(contender: &Contender) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut files = Vec::new();
    for mount in &contender.manifest.mounts {
        let path = contender.dir.join(&mount.from);
        let found = below(&path).map_err(|error| (path, error))?;
        files.extend(found);
    }
    files.sort();
    Ok(files)
}

fn below(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut folders, mut files) = (vec![path.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
            if files.len() + folders.len() > MOST {
                return Err(io::Error::other(format!(
                    "it has more than {MOST} files, and is mounted into a container; mount a smaller folder"
                )));
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::manifest::Manifest;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    #[test]
    fn files_of_mounted_folders_are_found_without_following_links() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("static/css")).unwrap();
        for name in ["data.json", "static/b", "static/css/a", "other"] {
            fs::write(at(name), name).unwrap();
        }
        symlink("/etc", at("static/link")).unwrap();
        let text = "name = \"x\"\nabout = \"x\"\nworkloads = [\"double\"]\nimage = \"i\"\nport = 80\n\
                    mounts = [{ from = \"static\", to = \"/s\" }, { from = \"data.json\", to = \"/d\" }]\n";
        let manifest = Manifest::parse(text).unwrap();
        let contender = Contender { manifest, dir: folder.path().to_owned() };
        let found = files(&contender).unwrap();
        assert_eq!(found, ["data.json", "static/b", "static/css/a"].map(at));
        fs::remove_file(at("data.json")).unwrap();
        assert_eq!(files(&contender).unwrap_err().0, at("data.json"));
    }
}
