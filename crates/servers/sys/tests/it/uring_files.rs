//! The ring on files: whole files of several lengths, and files that cannot be read.

use regatta_sys::uring::{Completion, Ring};
use rustix::fs::{Advice, CWD, FileType, Mode, fadvise, mknodat};
use std::{
    ffi::{CStr, CString},
    fs,
    io::{self, Write},
    os::unix::{ffi::OsStrExt, net::UnixListener},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

const MOST: usize = 1 << 20;

fn name(path: &Path) -> Arc<CStr> {
    CString::new(path.as_os_str().as_bytes()).unwrap().into()
}

/// Returns the next finished read, which must arrive in time.
fn next(ring: &mut Ring) -> (u32, io::Result<Vec<u8>>) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match ring.completion() {
            Some(Completion::FileRead { token, result, content }) => {
                let read = result.map(|()| content.clone());
                ring.give_back_content(content);
                return (token, read);
            }
            Some(other) => panic!("only files are read: {other:?}"),
            None => {
                assert!(Instant::now() < end, "nothing is completed");
                ring.wait(Some(Duration::from_secs(1))).unwrap();
            }
        }
    }
}

fn read(ring: &mut Ring, path: &Path) -> io::Result<Vec<u8>> {
    ring.read_file(name(path), 5, MOST);
    let (token, read) = next(ring);
    assert_eq!(token, 5);
    read
}

fn random(length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// One folder in the default temporary directory, and one in memory.
fn folders() -> [tempfile::TempDir; 2] {
    [tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()]
}

#[test]
fn files_of_several_lengths_are_read_completely() {
    for folder in folders() {
        let mut ring = Ring::new().expect("io_uring is permitted");
        let path = folder.path().join("file");
        for length in [65_536, 65_536, 0, 1, 65_535, 65_537, 4096, 300_000, MOST, 17, MOST - 1] {
            fs::write(&path, random(length)).unwrap();
            assert!(read(&mut ring, &path).unwrap() == random(length), "{length} bytes");
        }
    }
}

#[test]
fn more_files_than_the_ring_opens_at_once_are_all_read() {
    let [folder, _] = folders();
    let mut ring = Ring::new().expect("io_uring is permitted");
    for i in 0..100 {
        let path = folder.path().join(i.to_string());
        fs::write(&path, random(60_000 + 10 * i)).unwrap();
        ring.read_file(name(&path), i as u32, MOST);
    }
    let mut seen = [false; 100];
    for _ in 0..100 {
        let (token, read) = next(&mut ring);
        assert!(read.unwrap() == random(60_000 + 10 * token as usize), "file {token}");
        assert!(
            !std::mem::replace(&mut seen[token as usize], true),
            "file {token} is reported once"
        );
    }
}

#[test]
fn an_unreadable_file_is_an_error_and_the_next_is_still_read() {
    for folder in folders() {
        let mut ring = Ring::new().expect("io_uring is permitted");
        let file = folder.path().join("file");
        fs::write(&file, b"abc").unwrap();
        let long = folder.path().join("long");
        fs::write(&long, random(MOST + 1)).unwrap();
        for _ in 0..20 {
            let error = |path: &Path, ring: &mut Ring| read(ring, path).unwrap_err().kind();
            let missing = folder.path().join("missing");
            assert_eq!(error(&missing, &mut ring), io::ErrorKind::NotFound);
            assert_eq!(error(folder.path(), &mut ring), io::ErrorKind::IsADirectory);
            assert_eq!(error(&file.join("below"), &mut ring), io::ErrorKind::NotADirectory);
            assert_eq!(error(&long, &mut ring), io::ErrorKind::FileTooLarge);
            let no_name = folder.path().join("x".repeat(300));
            assert_eq!(error(&no_name, &mut ring), io::ErrorKind::InvalidFilename);
            let no_path = folder.path().join("x/".repeat(3000));
            assert_eq!(error(&no_path, &mut ring), io::ErrorKind::InvalidFilename);
            assert_eq!(read(&mut ring, &file).unwrap(), b"abc");
        }
    }
}

#[test]
fn special_files_are_refused_without_waiting() {
    for folder in folders() {
        let mut ring = Ring::new().expect("io_uring is permitted");
        let file = folder.path().join("file");
        fs::write(&file, random(65_536)).unwrap();
        let fifos = ["no writer", "a silent writer", "a writer with data"];
        let [nobody, silent, written] = fifos.map(|name| {
            let path = folder.path().join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            path
        });
        let open = |path: &Path| fs::File::options().read(true).write(true).open(path).unwrap();
        let (_silent, mut writer) = (open(&silent), open(&written));
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        // Before a file was read, and after.
        for _ in 0..2 {
            for path in [&nobody, &silent, &written, Path::new("/dev/zero"), Path::new("/dev/null")]
            {
                writer.write_all(&random(1000)).unwrap();
                let error = read(&mut ring, path).unwrap_err();
                assert_eq!(error.to_string(), "not a regular file", "{}", path.display());
            }
            assert!(read(&mut ring, &socket).is_err());
            for _ in 0..20 {
                assert!(read(&mut ring, &file).unwrap() == random(65_536));
            }
        }
    }
}

/// A file whose bytes must be fetched from the disk.
#[test]
fn a_file_that_is_not_cached_is_read_from_disk() {
    let [folder, _] = folders();
    let mut ring = Ring::new().expect("io_uring is permitted");
    let path = folder.path().join("file");
    fs::write(&path, random(65_536)).unwrap();
    let file = fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    for _ in 0..10 {
        // If this is refused or has no effect, they stay in memory.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        assert!(read(&mut ring, &path).unwrap() == random(65_536));
    }
}
