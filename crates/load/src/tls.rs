//! TLS for the load: whose certificates are believed, and under which name the server is asked. What
//! one connection does is in `tls/session.rs`, what is said of a failure in `tls/explain.rs`.

mod explain;
mod pinned;
mod session;
mod unchecked;

pub(crate) use explain::{explain, is_about_certificate};
pub(crate) use session::{Fault, Session};

use pinned::Pinned;
use regatta_record::{AskedRoots, AskedTls};
use rustls::{
    ClientConfig, RootCertStore,
    client::{Resumption, WebPkiServerVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};
use unchecked::Anybody;

/// Whose word for the server's certificate is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Those whom the system trusts.
    System,
    /// Those whose certificates stand in this PEM file, and nobody else. A server that shows one of
    /// these certificates itself is taken at once, whatever names and dates are in it.
    File(PathBuf),
    /// Nobody is asked: every certificate is taken.
    Unchecked,
}

/// How a load speaks TLS: version 1.2 or 1.3, with the protocol offered by ALPN where it has a name
/// there. Sessions are not resumed: every connection stands for a client of its own, and does a whole handshake.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// What it was made of: a load process makes its own.
    asked: Arc<AskedTls>,
}

/// Why TLS cannot be spoken, before anything is opened.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The host is neither a name nor an address.
    #[error("{0:?} is no host that a certificate could be for")]
    Host(String),
    /// The roots of one's own cannot be used.
    #[error("the roots in {path} cannot be used: {because}; expected certificates as PEM")]
    Roots {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        because: String,
    },
    /// The system has no roots.
    #[error(
        "this system has no certificates of roots to trust ({0}); give some with --cacert FILE"
    )]
    NoRoots(String),
    /// The cryptography does not fit together.
    #[error("TLS cannot be set up: {0}")]
    Setup(rustls::Error),
}

impl Tls {
    /// Asks for `host`, a name or an address, and believes `roots`.
    ///
    /// # Errors
    /// Where the host is none, or the roots cannot be read.
    pub fn new(host: &str, roots: &Roots) -> Result<Self, TlsError> {
        let (roots, origin) = match roots {
            Roots::System => (AskedRoots::System, Path::new("")),
            Roots::Unchecked => (AskedRoots::Unchecked, Path::new("")),
            Roots::File(path) => (AskedRoots::Pem(read(path)?), path.as_path()),
        };
        Self::of(AskedTls { host: host.to_owned(), roots }, origin)
    }

    /// Speaks TLS as a message asks for it.
    pub(crate) fn of_message(asked: AskedTls) -> Result<Self, TlsError> {
        Self::of(asked, Path::new("the message"))
    }

    /// The message that asks another process to speak TLS in the same way.
    pub(crate) fn to_message(&self) -> AskedTls {
        AskedTls::clone(&self.asked)
    }

    /// `origin` is where roots of one's own come from, for messages.
    fn of(asked: AskedTls, origin: &Path) -> Result<Self, TlsError> {
        let host = asked.host.as_str();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let name =
            ServerName::try_from(bare.to_owned()).map_err(|_| TlsError::Host(host.to_owned()))?;
        let config = Arc::new(config(&asked.roots, origin)?);
        Ok(Tls { config, name, asked: Arc::new(asked) })
    }

    /// The same, with a protocol offered inside.
    pub(crate) fn offering(&self, alpn: Option<&str>) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Tls { config: Arc::new(config), ..self.clone() }
    }

    /// Whether the server's certificate is checked.
    pub fn is_checked(&self) -> bool {
        self.asked.roots != AskedRoots::Unchecked
    }
}

fn config(roots: &AskedRoots, origin: &Path) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let believing = match roots {
        AskedRoots::System => config.with_root_certificates(of_system()?),
        AskedRoots::Pem(pem) => {
            let pinned = of_pem(pem, provider).map_err(|because| refuse(origin, because))?;
            let pinned = Arc::new(pinned);
            config.dangerous().with_custom_certificate_verifier(pinned)
        }
        AskedRoots::Unchecked => {
            let anybody = Arc::new(Anybody::new(&provider));
            config.dangerous().with_custom_certificate_verifier(anybody)
        }
    };
    let mut config = believing.with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn of_system() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    // Some systems keep a few that are malformed; the others are what is trusted.
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(TlsError::NoRoots(errors.join("; ")));
    }
    Ok(store)
}

/// Most bytes of a file of certificates: some times what all roots of a system take.
const MOST_BYTES: u64 = 4 << 20;

fn of_pem(pem: &str, provider: Arc<CryptoProvider>) -> Result<Pinned, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let certificates = certificates.map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("there is no certificate in it".into());
    }
    let mut store = RootCertStore::empty();
    for certificate in &certificates {
        store.add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    let vouched_for = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Pinned::new(certificates, vouched_for))
}

/// Reads a file of certificates: a byte more than is permitted at most, so that a file without an end
/// is noticed. What is between the certificates need not be text.
fn read(path: &Path) -> Result<String, TlsError> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut text))
        .map_err(|error| refuse(path, error.to_string()))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(refuse(path, format!("it has more than {} MiB", MOST_BYTES >> 20)));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn refuse(path: &Path, because: String) -> TlsError {
    TlsError::Roots { path: path.to_owned(), because }
}
