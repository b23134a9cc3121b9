//! Certificates, keys and CAs for TLS, read again when their files change: renewed ones are used without a restart.

use crate::output;
use anyhow::{Context, bail};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
};
use std::{
    fmt, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Minimum time between two checks of the files: the maximum delay with which new connections get a renewed
/// certificate.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What is made from PEM files. When it is asked for, the files are checked, at most once per [`CHECK_EVERY`], and read
/// again if one of them has changed. Files that cannot be used are reported once, and what was made before is kept: a
/// certificate and its key are rarely replaced at the same moment.
pub struct Renewed<T> {
    files: Vec<PathBuf>,
    make: Box<dyn Fn() -> anyhow::Result<T> + Send + Sync>,
    state: Mutex<State<T>>,
}

struct State<T> {
    checked: Instant,
    /// Of the files when they were last read.
    stamps: Vec<Option<Stamp>>,
    current: Arc<T>,
}

/// Inode, length, and time of the last change (seconds, nanoseconds) of a file.
type Stamp = (u64, u64, i64, i64);

impl<T> Renewed<T> {
    /// Reads the files with `make`.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn read(
        files: Vec<PathBuf>,
        make: impl Fn() -> anyhow::Result<T> + Send + Sync + 'static,
    ) -> anyhow::Result<Renewed<T>> {
        let stamps = stamps(&files);
        let current = Arc::new(make()?);
        let state = Mutex::new(State { checked: Instant::now(), stamps, current });
        Ok(Renewed { files, make: Box::new(make), state })
    }

    /// What the files contain.
    pub fn current(&self) -> Arc<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.checked.elapsed() >= CHECK_EVERY {
            state.checked = Instant::now();
            self.renew(&mut state);
        }
        Arc::clone(&state.current)
    }

    /// Reads the files again if one of them has changed.
    fn renew(&self, state: &mut State<T>) {
        // Before they are read: a change meanwhile is seen the next time.
        let stamps = stamps(&self.files);
        let changed = stamps.iter().zip(&state.stamps).position(|(now, before)| now != before);
        let Some(path) = changed.map(|place| self.files[place].display()) else { return };
        match (self.make)() {
            Ok(renewed) => {
                state.current = Arc::new(renewed);
                output::message(&format!(
                    "regatta: new connections get the new certificate in {path}"
                ));
            }
            Err(error) => {
                output::message(&format!(
                    "regatta: {error:#}; the previous certificate stays in use"
                ));
            }
        }
        state.stamps = stamps;
    }
}

impl<T> fmt::Debug for Renewed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewed").field("files", &self.files).finish_non_exhaustive()
    }
}

/// The certificate of a server with its key in two PEM files.
#[derive(Debug)]
pub struct RenewedCertificate(Renewed<CertifiedKey>);

impl RenewedCertificate {
    /// Reads both files.
    ///
    /// # Errors
    /// Says which file cannot be read or contains no PEM, or that the two do not match.
    pub fn read(
        certificate: &Path,
        key: &Path,
        provider: &Arc<CryptoProvider>,
    ) -> anyhow::Result<RenewedCertificate> {
        let pair = Pair { certificate: certificate.to_owned(), key: key.to_owned() };
        let provider = Arc::clone(provider);
        let renewed = Renewed::read(pair.files(), move || {
            let (chain, key) = pair.read()?;
            CertifiedKey::from_der(chain, key, &provider).with_context(|| pair.differs())
        });
        Ok(RenewedCertificate(renewed?))
    }
}

impl ResolvesServerCert for RenewedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current())
    }
}

/// A certificate and its key, each in a PEM file.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate and those that lead to its CA; it comes first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Pair {
    /// Both files.
    pub fn files(&self) -> Vec<PathBuf> {
        vec![self.certificate.clone(), self.key.clone()]
    }

    fn read(&self) -> anyhow::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?)
            .with_context(|| none(&self.key, "private key"))?;
        Ok((chain, key))
    }

    fn differs(&self) -> String {
        format!(
            "the certificate in {} does not match the key in {}",
            self.certificate.display(),
            self.key.display()
        )
    }
}

/// Reads the configuration of a server. `clients`: the file with the CAs that sign the certificates which its clients
/// must have; `None`: they need none.
///
/// # Errors
/// Says which file cannot be read or used.
pub fn server_config(own: &Pair, clients: Option<&Path>) -> anyhow::Result<ServerConfig> {
    let builder = ServerConfig::builder();
    let builder = match clients {
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots(path)?)).build();
            builder.with_client_cert_verifier(verifier.with_context(|| unusable(path))?)
        }
        None => builder.with_no_client_auth(),
    };
    let (chain, key) = own.read()?;
    let mut config = builder.with_single_cert(chain, key).with_context(|| own.differs())?;
    if clients.is_some() {
        // A session that is resumed would not show the client's certificate again, which may have expired.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// Reads the configuration of a client that trusts the CAs in this file. `own`: its own certificate, if it has one.
///
/// # Errors
/// Says which file cannot be read or used.
pub fn client_config(servers: &Path, own: Option<&Pair>) -> anyhow::Result<ClientConfig> {
    let builder = ClientConfig::builder().with_root_certificates(roots(servers)?);
    let Some(own) = own else { return Ok(builder.with_no_client_auth()) };
    let (chain, key) = own.read()?;
    builder.with_client_auth_cert(chain, key).with_context(|| own.differs())
}

fn roots(path: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).with_context(|| unusable(path))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let chain = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| none(path, "certificate"))?;
    if chain.is_empty() {
        bail!(none(path, "certificate"));
    }
    Ok(chain)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn none(path: &Path, what: &str) -> String {
    format!("{} contains no {what} in PEM format", path.display())
}

fn unusable(path: &Path) -> String {
    format!("a CA certificate in {} cannot be used", path.display())
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
    };
    files.iter().map(stamp).collect()
}
