//! The certificate of a server, read again when its files change: a renewed one is used without a restart.

use crate::output;
use anyhow::{Context, bail};
use rustls::{
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Minimum time between two checks of the files: the maximum delay with which new connections get a renewed
/// certificate.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A certificate with its key in two PEM files. At a TLS handshake the files are checked, at most once per
/// [`CHECK_EVERY`], and read again if one of them has changed. A pair that cannot be used is reported once, and the
/// previous one is kept: both files are rarely replaced at the same moment.
#[derive(Debug)]
pub struct RenewedCertificate {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    checked: Instant,
    /// Of the files when they were last read.
    stamps: [Option<Stamp>; 2],
    current: Arc<CertifiedKey>,
}

/// Inode, length, and time of the last change (seconds, nanoseconds) of a file.
type Stamp = (u64, u64, i64, i64);

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
        let stamps = [stamp(certificate), stamp(key)];
        let current = certified_key(certificate, key, provider)?;
        Ok(RenewedCertificate {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            provider: Arc::clone(provider),
            state: Mutex::new(State { checked: Instant::now(), stamps, current }),
        })
    }

    /// Reads the files again if one of them has changed.
    fn renew(&self, state: &mut State) {
        // Before they are read: a change meanwhile is seen the next time.
        let stamps = [stamp(&self.certificate), stamp(&self.key)];
        if stamps == state.stamps {
            return;
        }
        state.stamps = stamps;
        let path = self.certificate.display();
        match certified_key(&self.certificate, &self.key, &self.provider) {
            Ok(renewed) => {
                state.current = renewed;
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
    }
}

impl ResolvesServerCert for RenewedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.checked.elapsed() >= CHECK_EVERY {
            state.checked = Instant::now();
            self.renew(&mut state);
        }
        Some(Arc::clone(&state.current))
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

fn certified_key(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> anyhow::Result<Arc<CertifiedKey>> {
    let read =
        |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let none =
        |path: &Path, what: &str| format!("{} contains no {what} in PEM format", path.display());
    let chain = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| none(certificate, "certificate"))?;
    if chain.is_empty() {
        bail!(none(certificate, "certificate"));
    }
    let private =
        PrivateKeyDer::from_pem_slice(&read(key)?).with_context(|| none(key, "private key"))?;
    let pair = CertifiedKey::from_der(chain, private, provider).with_context(|| {
        format!(
            "the certificate in {} does not match the key in {}",
            certificate.display(),
            key.display()
        )
    });
    Ok(Arc::new(pair?))
}
