//! Access control: which clients may open a WebSocket.

use jsonwebtoken::{Algorithm, DecodingKey, Validation, errors::Error as JwtError};
use regatta_proto::http1::Fields;
use serde::Deserialize;
use std::{borrow::Cow, fmt};

/// Tolerance for the times in a token, in seconds, because clocks differ.
const LEEWAY: u64 = 30;

/// Which clients may open a WebSocket. A token is sent in `Authorization: Bearer …` (RFC 6750, 2.1)
/// or, because pages cannot set header fields for a WebSocket, in the query as `access_token=…`
/// (2.3).
#[derive(Clone, Default)]
pub enum Access {
    /// All clients.
    #[default]
    Open,
    /// Clients with this token.
    Token(Box<str>),
    /// Clients with a JSON Web Token (RFC 7519) signed with this key, which is valid now according
    /// to its `exp` and `nbf`, if present.
    Jwt(Box<Jwt>),
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Open => "Open",
            Access::Token(_) => "Token",
            Access::Jwt(_) => "Jwt",
        })
    }
}

/// The key and the algorithm that tokens must be signed with.
#[derive(Clone)]
pub struct Jwt {
    key: DecodingKey,
    validation: Validation,
}

impl Jwt {
    /// HS256 with this secret.
    pub fn hs256(secret: &[u8]) -> Jwt {
        Jwt::new(DecodingKey::from_secret(secret), Algorithm::HS256)
    }

    /// RS256 with this public key, in PEM.
    ///
    /// # Errors
    /// The text is not such a key.
    pub fn rs256(pem: &[u8]) -> Result<Jwt, JwtError> {
        Ok(Jwt::new(DecodingKey::from_rsa_pem(pem)?, Algorithm::RS256))
    }

    /// EdDSA with this public key of Ed25519, in PEM.
    ///
    /// # Errors
    /// The text is not such a key.
    pub fn eddsa(pem: &[u8]) -> Result<Jwt, JwtError> {
        Ok(Jwt::new(DecodingKey::from_ed_pem(pem)?, Algorithm::EdDSA))
    }

    /// Creates the rules. Tokens with another algorithm are refused (RFC 8725, 3.1).
    fn new(key: DecodingKey, algorithm: Algorithm) -> Jwt {
        let mut validation = Validation::new(algorithm);
        // `permits` checks the times, with the time of the turn. The audience is unknown here.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        Jwt { key, validation }
    }

    fn permits(&self, token: &str, unix_s: u64) -> bool {
        #[derive(Deserialize)]
        struct Times {
            exp: Option<f64>,
            nbf: Option<f64>,
        }
        let Ok(token) = jsonwebtoken::decode::<Times>(token, &self.key, &self.validation) else {
            return false;
        };
        let Times { exp, nbf } = token.claims;
        exp.is_none_or(|exp| (unix_s as f64) < exp + LEEWAY as f64)
            && nbf.is_none_or(|nbf| (unix_s + LEEWAY) as f64 >= nbf)
    }
}

/// Why a client may not open a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// The request has no token, or its Authorization field has another form.
    NoToken,
    /// The token is wrong, altered, expired, or not valid yet. The reply does not say which.
    NotValid,
}

impl Access {
    /// Checks whether a request with these fields and this query may open a WebSocket now.
    pub(super) fn permits(
        &self,
        fields: &Fields<'_>,
        query: Option<&str>,
        unix_s: u64,
    ) -> Result<(), Denied> {
        let is_valid = match self {
            Access::Open => true,
            Access::Token(expected) => {
                let token = token(fields, query).ok_or(Denied::NoToken)?;
                is_same(token.as_bytes(), expected.as_bytes())
            }
            Access::Jwt(jwt) => {
                let token = token(fields, query).ok_or(Denied::NoToken)?;
                jwt.permits(&token, unix_s)
            }
        };
        if is_valid { Ok(()) } else { Err(Denied::NotValid) }
    }
}

impl Denied {
    /// The text of the error reply.
    pub fn why(self) -> &'static str {
        match self {
            Denied::NoToken => {
                "A token is needed, in `Authorization: Bearer` or as access_token in the query."
            }
            Denied::NotValid => "The token is not valid.",
        }
    }

    /// The value of WWW-Authenticate (RFC 6750, 3.1).
    pub fn challenge(self) -> &'static str {
        match self {
            Denied::NoToken => "Bearer",
            Denied::NotValid => "Bearer error=\"invalid_token\"",
        }
    }
}

fn token<'a>(fields: &Fields<'a>, query: Option<&'a str>) -> Option<Cow<'a, str>> {
    match fields.get("Authorization") {
        Some(value) => {
            let (scheme, token) = std::str::from_utf8(value).ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim().into())
        }
        None => {
            let mut pairs = form_urlencoded::parse(query?.as_bytes());
            pairs.find_map(|(key, value)| (key == "access_token").then_some(value))
        }
    }
}

/// Compares in a time that does not depend on where a difference is.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
