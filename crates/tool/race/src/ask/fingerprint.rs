//! The fingerprint of a race: reads it and checks that it is unchanged.

use crate::ask::{entrant::Entrant, entrant::EntrantError, mounted};
use regatta_fleet::sha256;
use regatta_host::{allowed_cpus, change_of, engine_trouble, find_on_path, image_id};
use regatta_record::{Asked, Fingerprint, ServerMachine, Setup};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
};

/// Why a race cannot continue with the current programs and machine.
#[derive(Debug, thiserror::Error)]
pub enum ChangedError {
    /// Something has changed.
    #[error(
        "the race cannot continue: since its rounds were run, {}; rounds from before and after the \
         change cannot be compared: start a new race, or undo the change", .0.join("; ")
    )]
    Changed(Vec<String>),
    /// The race has no fingerprint.
    #[error(
        "the race cannot continue: an earlier regatta started it and did not store which programs \
         it ran; start a new race"
    )]
    Unknown,
    /// A container image cannot be run.
    #[error("the image {image} cannot be run: {because}")]
    Image {
        /// The image.
        image: String,
        /// Why, with what to do.
        because: String,
    },
    /// Something cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Io {
        /// The file, or another thing that was read.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// An error in the stored manifest of a contender.
    #[error(transparent)]
    Entrant(#[from] EntrantError),
}

/// Returns the fingerprint of a race that is run by `binary` now, of this machine. It reads whole programs, which
/// takes about 0.1 s for each 100 MB.
pub fn fingerprint(asked: &Asked, binary: &Path) -> Result<Fingerprint, ChangedError> {
    match asked.server {
        Some(_) => of_machine(Vec::new(), binary),
        None => fingerprint_of_contenders(asked, binary),
    }
}

/// Returns the fingerprint of the machine of the contenders, which is this one.
pub(crate) fn fingerprint_of_contenders(
    asked: &Asked,
    binary: &Path,
) -> Result<Fingerprint, ChangedError> {
    of_machine(Entrant::of_race(asked)?, binary)
}

fn of_machine(entrants: Vec<Entrant>, binary: &Path) -> Result<Fingerprint, ChangedError> {
    // Each version command starts a program, which may take a while.
    let versions = thread::scope(|scope| {
        let ask = |entrant: &'_ Entrant| (entrant.name.clone(), entrant.contender.version());
        let asked: Vec<_> =
            entrants.iter().map(|entrant| scope.spawn(move || ask(entrant))).collect();
        let answered = asked.into_iter().filter_map(|thread| thread.join().ok());
        answered.filter_map(|(name, version)| Some((name, version?))).collect()
    });
    let mut files = BTreeMap::new();
    let mut paths: BTreeSet<PathBuf> = entrants.iter().flat_map(files_of).collect();
    for entrant in &entrants {
        let mounted = mounted::files(&entrant.contender);
        paths.extend(mounted.map_err(|(path, error)| ChangedError::Io { path, error })?);
    }
    for path in paths {
        let hash = hash(&path)?;
        files.insert(path.display().to_string(), hash);
    }
    let cpus = allowed_cpus()
        .map_err(|error| ChangedError::Io { path: PathBuf::from("the allowed CPUs"), error })?;
    let images = images_of(&entrants, image_id);
    for image in entrants.iter().filter_map(|entrant| entrant.contender.manifest.image.as_ref()) {
        if !images.contains_key(image) {
            let trouble = engine_trouble();
            let because = trouble.unwrap_or_else(|| {
                "it is not on this machine and cannot be pulled; build it, or correct its name"
                    .into()
            });
            return Err(ChangedError::Image { image: image.clone(), because });
        }
    }
    Ok(Fingerprint { regatta: hash(binary)?, cpus, versions, files, images })
}

/// Returns the identifiers of the contenders' container images. Each image is queried once; those that
/// are unknown are left out.
fn images_of(
    entrants: &[Entrant],
    id_of: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let images = entrants.iter().filter_map(|entrant| entrant.contender.manifest.image.as_ref());
    let images: BTreeSet<&String> = images.collect();
    images.into_iter().filter_map(|image| Some((image.clone(), id_of(image)?))).collect()
}

/// Checks that a stored race may continue under `setup` with `binary`, and with this machine of the contenders, if it
/// is another one.
///
/// # Errors
/// If anything differs from when its rounds were run, or if the race stored no fingerprint.
pub fn check_can_resume(
    asked: &Asked,
    setup: &Setup,
    binary: &Path,
    server: Option<&ServerMachine>,
) -> Result<(), ChangedError> {
    let stored = asked.fingerprint.as_ref().ok_or(ChangedError::Unknown)?;
    let mut found = stored.differences(&fingerprint(asked, binary)?);
    // Differences of the fingerprint come first: they are more specific than those of the setup.
    found.extend(asked.setup.differences(setup));
    let servers = asked.server.as_ref().zip(server);
    found.extend(servers.into_iter().flat_map(|(then, now)| then.differences(now)));
    let running = Entrant::of_race(asked)?.into_iter().filter_map(|entrant| entrant.running);
    found.extend(running.filter_map(|server| change_of(&server)));
    if found.is_empty() { Ok(()) } else { Err(ChangedError::Changed(found)) }
}

/// The files and images of a running race. A program that is rebuilt during the race is found before
/// the next round runs it.
pub(crate) struct Unchanged {
    files: BTreeMap<PathBuf, (Identity, String)>,
    images: BTreeMap<String, String>,
}

/// Identity of a file: device, inode, length, and modification time in seconds and nanoseconds.
type Identity = (u64, u64, u64, i64, i64);

impl Unchanged {
    /// Returns the files of `asked` and `binary`, with their contents when the fingerprint was taken. A
    /// race without a fingerprint has no files to watch.
    pub fn of(asked: &Asked, binary: &Path) -> Result<Unchanged, ChangedError> {
        match &asked.fingerprint {
            Some(fingerprint) => Unchanged::since(fingerprint, binary),
            None => Ok(Unchanged { files: BTreeMap::new(), images: BTreeMap::new() }),
        }
    }

    /// Returns the files of a fingerprint and `binary`, with their contents when it was taken.
    pub fn since(fingerprint: &Fingerprint, binary: &Path) -> Result<Unchanged, ChangedError> {
        let files = fingerprint.files.iter().map(|(path, hash)| (PathBuf::from(path), hash));
        let all = files.chain([(binary.to_owned(), &fingerprint.regatta)]);
        let each = all.map(|(path, hash)| {
            let identity = identity(&path)?;
            Ok((path, (identity, hash.clone())))
        });
        let files = each.collect::<Result<_, ChangedError>>()?;
        Ok(Unchanged { files, images: fingerprint.images.clone() })
    }

    /// Checks that they are unchanged. Reads the contents of a file only if its identity has changed.
    pub fn look(&mut self) -> Result<(), ChangedError> {
        for (image, id) in &self.images {
            if image_id(image).as_ref() != Some(id) {
                let what = format!("the image {image} was rebuilt or removed");
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

/// Returns the programs of a contender and its backends, except regatta itself, and the files among
/// their arguments.
fn files_of(entrant: &Entrant) -> Vec<PathBuf> {
    let manifest = &entrant.contender.manifest;
    let dir = &entrant.contender.dir;
    // A program that runs in a container is in its image.
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
            // A path with another placeholder is made for each start. Devices, such as /dev/stderr, may
            // refer to files that change.
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
    sha256(path).map_err(|error| ChangedError::Io { path: path.into(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::{find_contenders::Contender, manifest::Manifest};
    use regatta_script::Workload;
    use std::cell::RefCell;
    use tempfile::TempDir;

    #[test]
    fn finds_a_program_that_was_rebuilt_but_not_one_that_was_only_touched() {
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
        assert!(error.contains("program was changed; rounds from before and after"), "{error}");
        fs::remove_file(&path).unwrap();
        assert!(files.look().unwrap_err().to_string().starts_with("cannot read "));
    }

    #[test]
    fn fingerprints_files_among_the_arguments_but_not_devices() {
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("config");
        fs::write(&config, "abc").unwrap();
        let argument = format!("x=cat {} /proc/self/status {{port}}", config.display());
        let manifest = Manifest::from_argument(&argument, "double").unwrap();
        let contender = Contender { manifest, dir: PathBuf::new() };
        let speaks = Workload::parse("double").unwrap();
        let files = files_of(&Entrant { name: "x".into(), speaks, contender, running: None });
        assert!(files.contains(&config), "{files:?}");
        assert!(!files.iter().any(|path| path.starts_with("/proc")), "{files:?}");
    }

    #[test]
    fn images_are_identified_by_the_engines_id_and_queried_once() {
        let entrant = |name: &str, image: Option<&str>| {
            let mut manifest = Manifest::from_argument(&format!("{name}=x {{port}}"), "double");
            manifest.as_mut().unwrap().image = image.map(str::to_owned);
            let contender = Contender { manifest: manifest.unwrap(), dir: PathBuf::new() };
            let speaks = Workload::parse("double").unwrap();
            Entrant { name: name.to_owned(), speaks, contender, running: None }
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
