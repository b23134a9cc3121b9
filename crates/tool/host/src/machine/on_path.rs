//! Finds programs on PATH, and in the directories of Debian's servers, such as nginx, which are not on
//! an ordinary user's PATH.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Returns the PATH for started programs.
pub fn search_path() -> String {
    with_sbin(&env::var("PATH").unwrap_or_default())
}

/// Returns the path of a program on [`search_path`]; `None` if it is not found.
pub fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = search_path();
    env::split_paths(&path).map(|dir| dir.join(program)).find(|path| is_executable(path))
}

/// Whether it is a file with an execute permission.
pub fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn with_sbin(path: &str) -> String {
    const SBIN: &str = "/usr/local/sbin:/usr/sbin";
    // An empty element would be the working directory.
    if path.is_empty() { SBIN.into() } else { format!("{path}:{SBIN}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_path_does_not_name_the_working_directory() {
        assert_eq!(with_sbin(""), "/usr/local/sbin:/usr/sbin");
        assert_eq!(with_sbin("/bin"), "/bin:/usr/local/sbin:/usr/sbin");
    }

    #[test]
    fn finds_a_program_on_the_path() {
        assert!(find_on_path("sh").unwrap().ends_with("sh"));
        assert_eq!(find_on_path("no-such-program"), None);
    }
}
