//! Checks of the server's certificate that differ from those of rustls. `--insecure`: every certificate is
//! accepted. `--cacert`: if the server presents a certificate of the file as its own, it is accepted. webpki
//! rejects a CA certificate as the server's own, as `openssl req -x509` creates it by default: rustls/webpki,
//! issue 205.
//!
//! With both, the server must have the key of its certificate, so that a handshake costs both sides the same
//! as with a full check.

use rustls::{
    DigitallySignedStruct, Error, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::sync::Arc;

/// Which certificates are accepted.
#[derive(Debug)]
pub(super) enum Accepted {
    /// All.
    Any,
    /// Those of a file, and those signed by them.
    Trusted {
        /// Those of the file.
        pinned: Vec<CertificateDer<'static>>,
        /// Checks all others.
        signed: Arc<WebPkiServerVerifier>,
    },
}

/// Checks certificates, and the signatures of the handshake.
#[derive(Debug)]
pub(super) struct Verifier {
    accepted: Accepted,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub fn new(accepted: Accepted, provider: &CryptoProvider) -> Self {
        Verifier { accepted, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Verifier {
    /// Does not check the names and dates of a pinned certificate: the user's file identifies the
    /// server, and only the server has the key.
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.accepted {
            Accepted::Trusted { pinned, signed } if !pinned.contains(shown) => {
                signed.verify_server_cert(shown, chain, name, ocsp, now)
            }
            Accepted::Trusted { .. } | Accepted::Any => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
