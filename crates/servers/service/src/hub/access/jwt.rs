//! JSON Web Tokens (RFC 7519): which are valid, and what they say.

use super::{
    admission::{Admission, LEEWAY},
    invalid::Invalid,
    rights::{Capability, Scope},
};
use jsonwebtoken::{
    Algorithm, DecodingKey, Validation,
    errors::{Error as JwtError, ErrorKind},
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum number of keys with which a token is checked: each takes CPU, and anybody may send one.
const MOST_TRIED: usize = 4;

/// The keys that tokens may be signed with, and what else they must say.
#[derive(Clone)]
pub struct Jwt {
    keys: Vec<Key>,
    /// The keys of a set that are ignored, each with the reason.
    ignored: Vec<String>,
    audience: Option<String>,
    issuer: Option<String>,
}

#[derive(Clone)]
struct Key {
    /// The `kid` of tokens that it signs; any if it has none.
    id: Option<String>,
    key: DecodingKey,
    algorithm: Algorithm,
}

/// Why a set of keys (RFC 7517) cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidKeySet {
    /// Not JSON of this form.
    #[error("expected a JSON Web Key Set, {{\"keys\": [...]}}")]
    Malformed(#[from] serde_json::Error),
    /// A secret in a file of public keys is a mistake.
    #[error("key {number} of the set is a secret; expected public keys")]
    Secret {
        /// Its place, from 1.
        number: usize,
    },
    /// There are no keys for signatures.
    #[error("the set has no public key of RSA, P-256 or Ed25519 for signatures")]
    Empty,
}

#[derive(Deserialize)]
struct Claims {
    exp: Option<f64>,
    nbf: Option<f64>,
    sub: Option<String>,
    info: Option<Box<RawValue>>,
    channel: Option<String>,
    channels: Option<Vec<String>>,
    caps: Option<Vec<Capability>>,
}

impl Jwt {
    /// HS256 with this secret.
    pub fn hs256(secret: &[u8]) -> Jwt {
        Jwt::of(DecodingKey::from_secret(secret), Algorithm::HS256)
    }

    /// RS256 with this public key, in PEM.
    ///
    /// # Errors
    /// The text is not such a key.
    pub fn rs256(pem: &[u8]) -> Result<Jwt, JwtError> {
        Ok(Jwt::of(DecodingKey::from_rsa_pem(pem)?, Algorithm::RS256))
    }

    /// EdDSA with this public key of Ed25519, in PEM.
    ///
    /// # Errors
    /// The text is not such a key.
    pub fn eddsa(pem: &[u8]) -> Result<Jwt, JwtError> {
        Ok(Jwt::of(DecodingKey::from_ed_pem(pem)?, Algorithm::EdDSA))
    }

    /// The public keys of a JSON Web Key Set: RS256, ES256, and EdDSA with Ed25519. A token that names a key
    /// (`kid`) must be signed with that one. Keys of other kinds are [ignored](Jwt::ignored) (RFC 7517, 5).
    ///
    /// # Errors
    /// Fails if the text is not such a set, if it contains a secret, or no key that can be used.
    pub fn key_set(text: &[u8]) -> Result<Jwt, InvalidKeySet> {
        let set: JwkSet = serde_json::from_slice(text)?;
        let (mut keys, mut ignored) = (Vec::new(), Vec::new());
        for (jwk, number) in set.keys.iter().zip(1..) {
            if matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_)) {
                return Err(InvalidKeySet::Secret { number });
            }
            let key = || DecodingKey::from_jwk(jwk).map_err(|error| error.to_string());
            match algorithm(jwk).and_then(|algorithm| Ok((algorithm, key()?))) {
                Ok((algorithm, key)) => {
                    keys.push(Key { id: jwk.common.key_id.clone(), key, algorithm });
                }
                Err(why) => ignored.push(format!("key {number} of the set is ignored: {why}")),
            }
        }
        if keys.is_empty() {
            return Err(InvalidKeySet::Empty);
        }
        Ok(Jwt { keys, ignored, audience: None, issuer: None })
    }

    fn of(key: DecodingKey, algorithm: Algorithm) -> Jwt {
        Jwt {
            keys: vec![Key { id: None, key, algorithm }],
            ignored: Vec::new(),
            audience: None,
            issuer: None,
        }
    }

    /// The keys of a set that are ignored, each with the reason.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Tokens must also have this `aud` and this `iss`, unless `None`.
    pub fn requiring(mut self, audience: Option<String>, issuer: Option<String>) -> Jwt {
        (self.audience, self.issuer) = (audience, issuer);
        self
    }

    /// What a token says, if it is valid now. A reason other than the signature's is returned only if the signature
    /// is right, because nothing else in the token can be trusted.
    pub(super) fn read(&self, token: &str, unix_s: u64) -> Result<Admission, Invalid> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| Invalid::Malformed)?;
        let may_be = |key: &&Key| {
            let is_named = header.kid.is_none() || key.id.is_none() || key.id == header.kid;
            is_named && key.algorithm == header.alg
        };
        let (mut claims, mut why) = (None, Invalid::Key);
        for key in self.keys.iter().filter(may_be).take(MOST_TRIED) {
            match self.claims(token, key) {
                Ok(found) => {
                    claims = Some(found);
                    break;
                }
                // Another key has signed it, for which a reason is known.
                Err(Invalid::Signature) if why != Invalid::Key => {}
                Err(other) => why = other,
            }
        }
        let claims = claims.ok_or(why)?;
        let Claims { exp, nbf, sub, info, channel, channels, caps } = claims;
        let expires_s = exp.map(|exp| exp + LEEWAY as f64);
        if expires_s.is_some_and(|expires| (unix_s as f64) >= expires) {
            return Err(Invalid::Expired);
        }
        if nbf.is_some_and(|nbf| ((unix_s + LEEWAY) as f64) < nbf) {
            return Err(Invalid::NotYet);
        }
        let scope = match &channel {
            Some(channel) => Scope { channels: Some(vec![channel.clone()]), caps: None },
            None => Scope { channels, caps },
        };
        Ok(Admission { user: sub, info, expires_s, scope, channel })
    }

    fn claims(&self, token: &str, key: &Key) -> Result<Claims, Invalid> {
        // Tokens with another algorithm are refused (RFC 8725, 3.1).
        let mut validation = Validation::new(key.algorithm);
        // The times are checked with the time of the turn.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = self.audience.is_some();
        validation.required_spec_claims.clear();
        for (name, value) in [("aud", &self.audience), ("iss", &self.issuer)] {
            if let Some(value) = value {
                validation.required_spec_claims.insert(name.to_owned());
                match name {
                    "aud" => validation.set_audience(&[value]),
                    _ => validation.set_issuer(&[value]),
                }
            }
        }
        let decoded = jsonwebtoken::decode(token, &key.key, &validation);
        decoded.map(|token| token.claims).map_err(|error| invalid(error.kind()))
    }
}

/// Why a token is not valid, from what the library reports. It checks the form, then the signature, then the rest.
fn invalid(error: &ErrorKind) -> Invalid {
    match error {
        ErrorKind::InvalidToken | ErrorKind::Base64(_) => Invalid::Malformed,
        ErrorKind::InvalidAudience => Invalid::Audience,
        ErrorKind::InvalidIssuer => Invalid::Issuer,
        ErrorKind::MissingRequiredClaim(claim) if claim == "aud" => Invalid::Audience,
        ErrorKind::MissingRequiredClaim(claim) if claim == "iss" => Invalid::Issuer,
        ErrorKind::MissingRequiredClaim(_)
        | ErrorKind::InvalidClaimFormat(_)
        | ErrorKind::Json(_)
        | ErrorKind::Utf8(_) => Invalid::Claims,
        _ => Invalid::Signature,
    }
}

/// The algorithm of a key: the one that it names, or the usual one of its kind.
fn algorithm(jwk: &Jwk) -> Result<Algorithm, String> {
    if jwk.common.public_key_use == Some(PublicKeyUse::Encryption) {
        return Err("it is for encryption".to_owned());
    }
    let usual = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (KeyAlgorithm::RS256, Algorithm::RS256),
        AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => {
            (KeyAlgorithm::ES256, Algorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            (KeyAlgorithm::EdDSA, Algorithm::EdDSA)
        }
        _ => return Err("expected a public key of RSA, P-256 or Ed25519".to_owned()),
    };
    match jwk.common.key_algorithm {
        None => Ok(usual.1),
        Some(named) if named == usual.0 => Ok(usual.1),
        Some(named) => Err(format!("its algorithm is {named}; expected {}", usual.0)),
    }
}
