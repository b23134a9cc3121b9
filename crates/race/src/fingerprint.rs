//! Reads the fingerprint of a race, and whether it is still the same.

use crate::{entrant::Entrant, entrant::EntrantError};
use regatta_host::{allowed_cpus, find_on_path, image_id};
use regatta_record::{Asked, Fingerprint, Setup};
use ring::digest::{Context, SHA256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
};

/// Why a race cannot go on with what there is.
#[derive(Debug, thiserror::Error)]
pub enum ChangedError {
    /// Something is another than it was.
    #[error(
        "the race cannot go on: since its rounds were run, {}; rounds before and after that cannot be \
         compared: start a new race, or restore what was there", .0.join("; ")
    )]
    Changed(Vec<String>),
    /// It stored none.
    #[error(
        "the race cannot go on: an earlier regatta made it, which did not store with what it was run; \
         start a new race"
    )]
    Unknown,
    /// Something cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Io {
        /// The file, or what was asked.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Of a contender as it was stored.
    #[error(transparent)]
    Entrant(#[from] EntrantError),
}

/// The fingerprint of a race that is run by `binary` now. Reads whole programs: a tenth of a second for
/// each 100 MB.
pub fn fingerprint(asked: &Asked, binary: &Path) -> Result<Fingerprint, ChangedError> {
    let entrants = Entrant::of_race(asked)?;
    // Each asks a program, which may take a while to start.
    let versions = thread::scope(|scope| {
        let ask = |entrant: &'_ Entrant| (entrant.name.clone(), entrant.contender.version());
        let asked: Vec<_> =
            entrants.iter().map(|entrant| scope.spawn(move || ask(entrant))).collect();
        let answered = asked.into_iter().filter_map(|thread| thread.join().ok());
        answered.filter_map(|(name, version)| Some((name, version?))).collect()
    });
    let mut files = BTreeMap::new();
    for path in entrants.iter().flat_map(files_of) {
        let hash = hash(&path)?;
        files.insert(path.display().to_string(), hash);
    }
    let cpus = allowed_cpus()
        .map_err(|error| ChangedError::Io { path: PathBuf::from("the allowed CPUs"), error })?;
    let images = images_of(&entrants, image_id);
    Ok(Fingerprint { regatta: hash(binary)?, cpus, versions, files, images })
}

/// The identifiers of the images that contenders run in, as far as they can be had, each asked for once.
fn images_of(
    entrants: &[Entrant],
    id_of: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let images = entrants.iter().filter_map(|entrant| entrant.contender.manifest.image.as_ref());
    let images: BTreeSet<&String> = images.collect();
    images.into_iter().filter_map(|image| Some((image.clone(), id_of(image)?))).collect()
}

/// Whether a stored race may go on under `setup` with `binary`.
///
/// # Errors
/// If anything differs from what its rounds were run with, or that is not known.
pub fn may_go_on(asked: &Asked, setup: &Setup, binary: &Path) -> Result<(), ChangedError> {
    let stored = asked.fingerprint.as_ref().ok_or(ChangedError::Unknown)?;
    let mut found = stored.differences(&fingerprint(asked, binary)?);
    // What it is made of tells more than its version.
    found.extend(asked.setup.differences(setup));
    if found.is_empty() { Ok(()) } else { Err(ChangedError::Changed(found)) }
}

/// The files and images of a race while it runs: a program that is built anew meanwhile is found before
/// the next round is run with it.
pub(crate) struct Unchanged {
    files: BTreeMap<PathBuf, (Identity, String)>,
    images: BTreeMap<String, String>,
}

/// Of a file: device, inode, length, and time of its last change in seconds and nanoseconds.
type Identity = (u64, u64, u64, i64, i64);

impl Unchanged {
    /// The files of `asked` and `binary`, as they were when the fingerprint was taken. A race without
    /// one has no files to watch.
    pub fn of(asked: &Asked, binary: &Path) -> Result<Unchanged, ChangedError> {
        let Some(fingerprint) = &asked.fingerprint else {
            return Ok(Unchanged { files: BTreeMap::new(), images: BTreeMap::new() });
        };
        let files = fingerprint.files.iter().map(|(path, hash)| (PathBuf::from(path), hash));
        let all = files.chain([(binary.to_owned(), &fingerprint.regatta)]);
        let each = all.map(|(path, hash)| {
            let identity = identity(&path)?;
            Ok((path, (identity, hash.clone())))
        });
        let files = each.collect::<Result<_, ChangedError>>()?;
        Ok(Unchanged { files, images: fingerprint.images.clone() })
    }

    /// Looks whether they are as they were: at their contents only where something else has changed.
    pub fn look(&mut self) -> Result<(), ChangedError> {
        for (image, id) in &self.images {
            if image_id(image).as_ref() != Some(id) {
                let what = format!("the image {image} was built anew or removed");
                return Err(ChangedError::Changed(vec![what]));
            }
        }
        for (path, (known, content)) in &mut self.files {
            let now = identity(path)?;
            if now == *known {
                continue;
            }
            if hash(path)? != *content {
                let what = format!("{} was changed", path.display());
                return Err(ChangedError::Changed(vec![what]));
            }
            *known = now;
        }
        Ok(())
    }
}

/// The program of a contender and of its backends, where it is none of ours, and the files among their
/// arguments.
fn files_of(entrant: &Entrant) -> Vec<PathBuf> {
    let manifest = &entrant.contender.manifest;
    let dir = &entrant.contender.dir;
    // What is started in a container is in its image.
    let own = manifest.image.is_none().then_some(&manifest.start);
    let starts = own.into_iter().chain(manifest.backends.iter().map(|b| &b.start));
    let mut files = Vec::new();
    for start in starts {
        for (nth, word) in start.iter().enumerate() {
            let word = word.replace("{dir}", &dir.display().to_string());
            let path = match nth {
                0 if !word.contains('/') => find_on_path(&word),
                _ => Some(dir.join(&word)),
            };
            // What has another placeholder in it is made for each start. Devices, such as /dev/stderr, lead
            // to files that change.
            let is_fixed =
                |path: &PathBuf| !word.contains('{') && !is_of_the_kernel(path) && path.is_file();
            files.extend(path.filter(is_fixed));
        }
    }
    files
}

fn is_of_the_kernel(path: &Path) -> bool {
    ["/dev", "/proc", "/sys"].iter().any(|folder| path.starts_with(folder))
}

fn identity(path: &Path) -> Result<Identity, ChangedError> {
    let file = fs::metadata(path).map_err(|error| ChangedError::Io { path: path.into(), error })?;
    Ok((file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

/// SHA-256 of a file, hexadecimal.
fn hash(path: &Path) -> Result<String, ChangedError> {
    let read = || -> io::Result<String> {
        let (mut file, mut context) = (File::open(path)?, Context::new(&SHA256));
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                n => context.update(&buffer[..n]),
            }
        }
        Ok(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    };
    read().map_err(|error| ChangedError::Io { path: path.into(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{contender::Contender, manifest::Manifest};
    use regatta_script::Workload;
    use std::cell::RefCell;
    use tempfile::TempDir;

    #[test]
    fn a_file_has_its_well_known_digest() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(&path).unwrap(), abc);
    }

    #[test]
    fn a_program_that_is_built_anew_in_a_race_is_found_and_one_that_is_only_touched_is_not() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "abc").unwrap();
        let content = hash(&path).unwrap();
        let files = [(path.clone(), (identity(&path).unwrap(), content))].into();
        let mut files = Unchanged { files, images: BTreeMap::new() };
        files.look().unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "abc").unwrap();
        files.look().unwrap();
        fs::write(&path, "abd").unwrap();
        let error = files.look().unwrap_err().to_string();
        assert!(error.contains("program was changed; rounds before and after"), "{error}");
        fs::remove_file(&path).unwrap();
        assert!(files.look().unwrap_err().to_string().starts_with("cannot read "));
    }

    #[test]
    fn files_among_the_arguments_are_looked_at_and_devices_are_not() {
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("config");
        fs::write(&config, "abc").unwrap();
        let argument = format!("x=cat {} /proc/self/status {{port}}", config.display());
        let manifest = Manifest::from_argument(&argument, "double").unwrap();
        let contender = Contender { manifest, dir: PathBuf::new() };
        let speaks = Workload::parse("double").unwrap();
        let files = files_of(&Entrant { name: "x".into(), speaks, contender });
        assert!(files.contains(&config), "{files:?}");
        assert!(!files.iter().any(|path| path.starts_with("/proc")), "{files:?}");
    }

    #[test]
    fn images_are_known_by_what_the_engine_calls_them_and_asked_for_once() {
        let entrant = |name: &str, image: Option<&str>| {
            let mut manifest = Manifest::from_argument(&format!("{name}=x {{port}}"), "double");
            manifest.as_mut().unwrap().image = image.map(str::to_owned);
            let contender = Contender { manifest: manifest.unwrap(), dir: PathBuf::new() };
            let speaks = Workload::parse("double").unwrap();
            Entrant { name: name.to_owned(), speaks, contender }
        };
        let (here, gone) = (Some("localhost/here:1"), Some("localhost/gone:1"));
        let entrants =
            [entrant("a", here), entrant("a-twin", here), entrant("b", gone), entrant("c", None)];
        let asked = RefCell::new(Vec::new());
        let images = images_of(&entrants, |image| {
            asked.borrow_mut().push(image.to_owned());
            (Some(image) == here).then(|| "sha256:7".to_owned())
        });
        assert_eq!(images, [("localhost/here:1".to_owned(), "sha256:7".to_owned())].into());
        assert_eq!(asked.into_inner(), ["localhost/gone:1", "localhost/here:1"]);
    }
}
