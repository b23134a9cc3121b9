//! Describes TLS failures: what was expected, what was received, and what to do.

use rustls::{AlertDescription, CertificateError, Error, OtherError};

/// Whether the error is about the server's certificate.
pub(crate) fn is_about_certificate(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(_) | Error::NoCertificatesPresented)
}

/// Describes a failure as text. `from_file` says whether the trusted certificates come from a file that
/// the user named.
pub(crate) fn explain(error: &Error, from_file: bool) -> String {
    match error {
        Error::InvalidCertificate(error) => {
            format!(
                "the server's certificate is not accepted: {}; --insecure skips the check",
                misfit(error, from_file)
            )
        }
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
            format!("expected TLS, but the server does not seem to speak it ({error})")
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server speaks TLS, but does not support the protocol offered by ALPN".into()
        }
        Error::AlertReceived(alert) => format!("the server aborted TLS with the alert {alert:?}"),
        error => format!("TLS failed: {error}"),
    }
}

fn misfit(error: &CertificateError, from_file: bool) -> String {
    match error {
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "expected a certificate for {}, got one for {}",
            expected.to_str(),
            names(presented)
        ),
        CertificateError::ExpiredContext { time, not_after } => format!(
            "it expired {} ago, by this machine's clock",
            span(time.as_secs().saturating_sub(not_after.as_secs()))
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "it becomes valid in {}, by this machine's clock",
            span(not_before.as_secs().saturating_sub(time.as_secs()))
        ),
        CertificateError::UnknownIssuer | CertificateError::BadSignature if from_file => {
            "neither this certificate nor a CA certificate that signed it is in the file of --cacert"
                .into()
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is not signed by a trusted CA (--cacert FILE trusts the CA certificates in FILE)"
                .into()
        }
        CertificateError::Other(other) if is_ca(other) && from_file => {
            "it is probably self-signed, and the file of --cacert does not contain it: write the \
             server's own certificate into that file"
                .into()
        }
        CertificateError::Other(other) if is_ca(other) => {
            "it is a CA certificate itself, probably self-signed (--cacert FILE accepts it if FILE \
             contains this certificate)"
                .into()
        }
        CertificateError::Other(other) => other.0.to_string(),
        other => other.to_string(),
    }
}

/// Whether the server presented a CA certificate as its own. webpki's error has no variant here, only a
/// name.
fn is_ca(error: &OtherError) -> bool {
    error.0.to_string() == "CaUsedAsEndEntity"
}

/// The names of a certificate; rustls writes a name as `DnsName("example.org")`.
fn names(presented: &[String]) -> String {
    const MOST: usize = 4;
    let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
    match presented.len() {
        0 => "no host".into(),
        n if n > MOST => {
            let some: Vec<_> = presented.iter().take(MOST).map(bare).collect();
            format!("{} and {} more", some.join(", "), n - MOST)
        }
        _ => presented.iter().map(bare).collect::<Vec<_>>().join(", "),
    }
}

/// Formats a duration, rounded down to a suitable unit.
fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} minutes", seconds / 60),
        7_200..=172_799 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
