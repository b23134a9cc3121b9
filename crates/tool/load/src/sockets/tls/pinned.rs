//! The check for `--cacert`: if the server presents a certificate of the file as its own, it is
//! accepted. webpki rejects a CA certificate as the server's own, as `openssl req -x509` creates it by
//! default: rustls/webpki, issue 205.

use rustls::{
    DigitallySignedStruct, Error, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::sync::Arc;

/// Accepts the certificates of a file, and certificates signed by them.
#[derive(Debug)]
pub(super) struct Pinned {
    certificates: Vec<CertificateDer<'static>>,
    vouched_for: Arc<WebPkiServerVerifier>,
}

impl Pinned {
    /// `vouched_for` checks certificates that are not in the file.
    pub fn new(
        certificates: Vec<CertificateDer<'static>>,
        vouched_for: Arc<WebPkiServerVerifier>,
    ) -> Self {
        Pinned { certificates, vouched_for }
    }
}

impl ServerCertVerifier for Pinned {
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
        if self.certificates.contains(shown) {
            return Ok(ServerCertVerified::assertion());
        }
        self.vouched_for.verify_server_cert(shown, chain, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.vouched_for.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.vouched_for.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.vouched_for.supported_verify_schemes()
    }
}
