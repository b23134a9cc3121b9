//! Failures of TLS with a server, in words.

use rustls::{AlertDescription, CertificateError, Error};
use std::time::Duration;

/// Why TLS with a server has failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) why: String,
    /// The server has taken nothing that was sent.
    pub(super) is_unused: bool,
}

impl Failure {
    /// A failure of the handshake.
    pub(super) fn unused(why: impl Into<String>) -> Self {
        Failure { why: why.into(), is_unused: true }
    }

    /// The server has closed its side, or the connection, before the end of the handshake.
    pub(super) fn ended() -> Self {
        Failure::unused("the server closed the connection in the TLS handshake")
    }

    /// The handshake took too long.
    pub(super) fn late(limit: Duration) -> Self {
        Failure::unused(format!("no TLS handshake within {limit:?}; the server may not speak TLS"))
    }

    /// An error of rustls. `in_handshake`: before the end of the handshake; `was_heard`: the server
    /// has sent something after it.
    pub(super) fn of(error: &Error, in_handshake: bool, was_heard: bool) -> Self {
        // With TLS 1.3, a server checks the client's certificate after the client's handshake is over.
        let is_refused = !was_heard && is_refusal(error);
        Failure { why: words(error, in_handshake), is_unused: in_handshake || is_refused }
    }
}

/// Whether a server reports that it refuses the client, e.g. its certificate.
fn is_refusal(error: &Error) -> bool {
    use AlertDescription::*;
    matches!(
        error,
        Error::AlertReceived(
            NoCertificate
                | BadCertificate
                | UnsupportedCertificate
                | CertificateRevoked
                | CertificateExpired
                | CertificateUnknown
                | UnknownCA
                | AccessDenied
                | CertificateRequired
        )
    )
}

/// Says in words why TLS with a server has failed. `in_handshake`: before the end of the handshake.
pub fn words(error: &Error, in_handshake: bool) -> String {
    match error {
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server requires a client certificate".into()
        }
        _ if is_refusal(error) => format!("the server refuses the client certificate: {error}"),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the server's certificate is not signed by a trusted CA".into()
        }
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            "the server's certificate is not signed by a trusted CA, but by another one of the same name"
                .into()
        }
        // Without the time, which would make each failure a new one.
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the server's certificate has expired".into(),
        Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "the server's certificate is not valid yet, by the clock of this machine".into(),
        // Of webpki: such a certificate must not be that of a server.
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "the server's certificate is that of a CA (basicConstraints CA:TRUE); it must be one that \
             the CA has signed"
                .into()
        }
        Error::InvalidCertificate(why) => {
            format!("the server's certificate is not accepted: {why}")
        }
        Error::InvalidMessage(_) if in_handshake => {
            format!("the server does not speak TLS: {error}")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_before_the_first_answer_means_that_nothing_was_taken() {
        let refused = Error::AlertReceived(AlertDescription::CertificateRequired);
        let other = Error::AlertReceived(AlertDescription::BadRecordMac);
        for (error, in_handshake, was_heard, is_unused) in [
            (&refused, true, false, true),
            (&refused, false, false, true),
            (&refused, false, true, false),
            (&other, true, false, true),
            (&other, false, false, false),
        ] {
            let failure = Failure::of(error, in_handshake, was_heard);
            assert_eq!(failure.is_unused, is_unused, "{error}, {in_handshake}, {was_heard}");
        }
        assert_eq!(
            Failure::of(&refused, false, false).why,
            "the server requires a client certificate"
        );
    }
}
