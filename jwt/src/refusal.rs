//! Reasons to refuse a token, with Envoy's texts.

use std::fmt;

/// Reason to refuse a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token has none of the accepted audiences.
    Audience,
    /// The keys of the issuer could not be fetched yet.
    Fetch,
    /// Part of the token is invalid; the text says which.
    Malformed(&'static str),
    /// `exp` has passed.
    Expired,
    /// No rule is for the issuer of the token.
    Issuer,
    /// No key has the `kid` and the algorithm.
    Key,
    /// The issuer has no usable key.
    NoKeys,
    /// `nbf` is in the future.
    NotYetValid,
    /// No key verifies the signature.
    Signature,
}

impl Refusal {
    /// Returns Envoy's text, the body of the reply.
    pub fn text(self) -> &'static str {
        match self {
            Self::Audience => "Audiences in Jwt are not allowed",
            Self::Fetch => "Jwks remote fetch is failed",
            Self::Malformed(text) => text,
            Self::Expired => "Jwt is expired",
            Self::Issuer => "Jwt issuer is not configured",
            Self::Key => "Jwks doesn't have key to match kid or alg from Jwt",
            Self::NoKeys => "Jwks doesn't have any valid public key",
            Self::NotYetValid => "Jwt not yet valid",
            Self::Signature => "Jwt verification fails",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}

impl std::error::Error for Refusal {}
