//! What is said of a TLS failure: what was expected, what came, and what to do.

use rustls::{AlertDescription, CertificateError, Error};

/// Whether the server's certificate is what does not fit.
pub(crate) fn is_about_certificate(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(_) | Error::NoCertificatesPresented)
}

/// A failure in words.
pub(crate) fn explain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => {
            format!(
                "the server's certificate does not fit: {}; --insecure skips the check",
                misfit(error)
            )
        }
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
            format!("expected TLS, but the server does not seem to speak it ({error})")
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server speaks TLS, but not the protocol that was offered inside it (ALPN)".into()
        }
        Error::AlertReceived(alert) => format!("the server broke TLS off, saying {alert:?}"),
        error => format!("TLS failed: {error}"),
    }
}

fn misfit(error: &CertificateError) -> String {
    match error {
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "expected one for {}, and this one is for {}",
            expected.to_str(),
            names(presented)
        ),
        CertificateError::ExpiredContext { time, not_after } => format!(
            "it expired {} ago, by this machine's clock",
            span(time.as_secs().saturating_sub(not_after.as_secs()))
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "it is valid only in {}, by this machine's clock",
            span(not_before.as_secs().saturating_sub(time.as_secs()))
        ),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "expected one that somebody trusted vouches for, and nobody does (--cacert FILE trusts \
             the roots in FILE)"
                .into()
        }
        // What the check of chains says has no type here, only a name.
        CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            "expected one that a root signed, and this one is a root itself (self-signed; --cacert \
             FILE with this very certificate takes it)"
                .into()
        }
        CertificateError::Other(other) => other.0.to_string(),
        other => other.to_string(),
    }
}

/// The names of a certificate; rustls writes a name as `DnsName("example.org")`.
fn names(presented: &[String]) -> String {
    const MOST: usize = 4;
    let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
    match presented.len() {
        0 => "no host at all".into(),
        n if n > MOST => {
            let some: Vec<_> = presented.iter().take(MOST).map(bare).collect();
            format!("{} and {} more", some.join(", "), n - MOST)
        }
        _ => presented.iter().map(bare).collect::<Vec<_>>().join(", "),
    }
}

/// A long time, roughly.
fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} minutes", seconds / 60),
        7_200..=172_799 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
