//! The URL of a server that already runs on this machine.

use regatta_script::{
    Workload,
    dialects::{ROWS, of_scheme},
};

/// The URL of a running server on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningUrl {
    /// Its protocol, by its name in workload files.
    pub protocol: &'static str,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// Its path and query; `None` if it has none. Only some protocols distinguish that from `/`.
    pub path: Option<String>,
}

/// Whether a word is a URL of a known scheme.
pub fn is_url(word: &str) -> bool {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| of_scheme(&scheme).is_some())
}

impl RunningUrl {
    /// Returns the URL that a server of the command line is: `URL` or `NAME=URL`. `None` if it is a
    /// command. The error is a sentence.
    pub fn of_word(word: &str) -> Option<Result<RunningUrl, String>> {
        let (_, url) = named_url(word)?;
        Some(RunningUrl::parse(url))
    }

    /// Parses a URL. The error is a sentence.
    pub fn parse(url: &str) -> Result<RunningUrl, String> {
        let forms = || ROWS.iter().map(|row| row.url).collect::<Vec<_>>().join(", ");
        let parts = url.split_once("://");
        let known = parts.and_then(|(scheme, _)| of_scheme(&scheme.to_ascii_lowercase()));
        let (Some((scheme_text, rest)), Some((row, scheme))) = (parts, known) else {
            return Err(format!("{url:?} is not the URL of a server; expected {}", forms()));
        };
        if scheme.tls {
            let plain = row.schemes[0].name;
            return Err(format!(
                "{url}: a race connects without TLS, so it cannot use {scheme_text}://; give a port \
                 without TLS, as {plain}://"
            ));
        }
        // The fragment after # is never sent to the server (RFC 3986, 3.5).
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
            _ => (authority, scheme.port),
        };
        if !["127.0.0.1", "localhost"].contains(&host.to_ascii_lowercase().as_str()) {
            return Err(format!(
                "{url}: a race reads the CPU time of the server's process, so the server must run on \
                 this machine and listen on 127.0.0.1; to load another server: `regatta load {url}`"
            ));
        }
        let Some(port) = port.filter(|port| *port > 0) else {
            return Err(format!("{url:?} has no port from 1 to 65535; expected {}", row.url));
        };
        if let Some(wrong) = target.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(format!(
                "{wrong:?} is not allowed in the path of a URL; percent-encode it"
            ));
        }
        if !row.paths && !matches!(target, "" | "/") {
            return Err(format!(
                "{target:?}: a {} server has no paths; expected {}",
                row.name, row.url
            ));
        }
        let path = match target {
            "" => None,
            "/" if !row.paths => None,
            query if query.starts_with('?') => Some(format!("/{query}")),
            path => Some(path.to_owned()),
        };
        Ok(RunningUrl { protocol: row.name, port, path })
    }

    /// Checks that servers of its protocol are asked by `workload`. The error is a sentence.
    pub fn check_asked(&self, url: &str, workload: &Workload) -> Result<(), String> {
        let own = workload.protocol();
        let usual = workload.version().map_or(own.name, |version| version.of);
        if usual == self.protocol {
            return Ok(());
        }
        Err(format!(
            "{url}: the workload {} needs a URL of the form {}; choose another workload, or none to use \
             that of the URL",
            workload.name(),
            own.url
        ))
    }
}

/// Splits `NAME=URL` or `URL`; `None` if it is no URL.
pub fn named_url(word: &str) -> Option<(Option<&str>, &str)> {
    if is_url(word) {
        return Some((None, word));
    }
    let (name, url) = word.split_once('=')?;
    // A command may have a URL in a variable or in an option.
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let is_name = !name.is_empty() && name.chars().all(is_good);
    let is_whole = !url.contains(char::is_whitespace);
    (is_name && is_whole && is_url(url)).then_some((Some(name), url))
}
