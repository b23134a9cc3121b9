//! Why a token is not valid.

/// Why a token is not valid. Neither the token nor a key is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Invalid {
    /// Not the token that is expected.
    Wrong,
    /// Not a JSON Web Token.
    Malformed,
    /// It names a key or an algorithm that is not accepted.
    Key,
    /// The signature is not that of the key.
    Signature,
    /// `aud` is missing or another one.
    Audience,
    /// `iss` is missing or another one.
    Issuer,
    /// Its claims do not have their form.
    Claims,
    /// `nbf` is in the future.
    NotYet,
    /// `exp` is in the past.
    Expired,
}

impl Invalid {
    /// The reason in one word, which never changes.
    pub fn reason(self) -> &'static str {
        match self {
            Invalid::Wrong => "token_wrong",
            Invalid::Malformed => "token_malformed",
            Invalid::Key => "token_key",
            Invalid::Signature => "token_signature",
            Invalid::Audience => "token_audience",
            Invalid::Issuer => "token_issuer",
            Invalid::Claims => "token_claims",
            Invalid::NotYet => "token_not_yet_valid",
            Invalid::Expired => "token_expired",
        }
    }

    /// The text of the error reply.
    pub fn why(self) -> &'static str {
        match self {
            Invalid::Wrong => "This is not the token that is expected.",
            Invalid::Malformed => "The token is not a JSON Web Token with a known algorithm.",
            Invalid::Key => "The token names a key or an algorithm that is not accepted here.",
            Invalid::Signature => "The signature of the token is wrong.",
            Invalid::Audience => "The token is not for this audience.",
            Invalid::Issuer => "The token is not of an issuer that is accepted here.",
            Invalid::Claims => "A claim of the token does not have the form that is expected.",
            Invalid::NotYet => "The token is not valid yet.",
            Invalid::Expired => "The token has expired.",
        }
    }
}
