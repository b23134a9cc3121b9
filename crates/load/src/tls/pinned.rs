//! The check for `--cacert`: a certificate of the file that the server shows as its own is taken as it
//! is. webpki refuses it as the end of a chain where it is also an authority, as those are that sign
//! themselves (`openssl req -x509`): rustls/webpki, issue 205.

use rustls::{
    DigitallySignedStruct, Error, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::sync::Arc;

/// Takes the very certificates of a file, and those that they vouch for.
#[derive(Debug)]
pub(super) struct Pinned {
    certificates: Vec<CertificateDer<'static>>,
    vouched_for: Arc<WebPkiServerVerifier>,
}

impl Pinned {
    /// `vouched_for` checks what is not among the certificates.
    pub fn new(
        certificates: Vec<CertificateDer<'static>>,
        vouched_for: Arc<WebPkiServerVerifier>,
    ) -> Self {
        Pinned { certificates, vouched_for }
    }
}

impl ServerCertVerifier for Pinned {
    /// Of a pinned certificate neither names nor dates are checked: whoever gave the file said that
    /// this is the server, and only the server holds its key.
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
