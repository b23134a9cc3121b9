//! TLS for the load: whose certificates are believed, and under which name the server is asked. What
//! one connection does is in `tls/session.rs`, what is said of a failure in `tls/explain.rs`.

mod explain;
mod pinned;
mod session;
mod unchecked;

pub(crate) use explain::{explain, is_about_certificate};
pub(crate) use session::{Fault, Session};

use pinned::Pinned;
use rustls::{
    ClientConfig, RootCertStore,
    client::{Resumption, WebPkiServerVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use std::{
    fs::File,
    io::{self, Read},
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
    checked: bool,
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
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let name =
            ServerName::try_from(bare.to_owned()).map_err(|_| TlsError::Host(host.to_owned()))?;
        let checked = *roots != Roots::Unchecked;
        Ok(Tls { config: Arc::new(config(roots)?), name, checked })
    }

    /// The same, with a protocol offered inside.
    pub(crate) fn offering(&self, alpn: Option<&str>) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Tls { config: Arc::new(config), ..self.clone() }
    }

    /// Whether the server's certificate is checked.
    pub fn is_checked(&self) -> bool {
        self.checked
    }
}

fn config(roots: &Roots) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let believing = match roots {
        Roots::System => config.with_root_certificates(of_system()?),
        Roots::File(path) => {
            let pinned = Arc::new(of_file(path, provider)?);
            config.dangerous().with_custom_certificate_verifier(pinned)
        }
        Roots::Unchecked => {
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

fn of_file(path: &Path, provider: Arc<CryptoProvider>) -> Result<Pinned, TlsError> {
    let refuse = |because: String| TlsError::Roots { path: path.to_owned(), because };
    let text = read(path).map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(refuse(format!("it has more than {} MiB", MOST_BYTES >> 20)));
    }
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| refuse(error.to_string()))?;
    if certificates.is_empty() {
        return Err(refuse("there is no certificate in it".into()));
    }
    let mut store = RootCertStore::empty();
    for certificate in &certificates {
        store.add(certificate.clone()).map_err(|error| refuse(error.to_string()))?;
    }
    let vouched_for = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
        .build()
        .map_err(|error| refuse(error.to_string()))?;
    Ok(Pinned::new(certificates, vouched_for))
}

/// A byte more than is permitted at most, so that a file without an end is noticed.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut text)?;
    Ok(text)
}
