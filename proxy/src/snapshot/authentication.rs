//! Accepted tokens of requests, and where they are.

use std::sync::Arc;

use hyper::header::HeaderName;

use crate::jwks::RemoteKeys;
use traffic::provenance::Provenance;

/// Accepted tokens of requests: all rules of the policies that apply to the proxy.
#[derive(Debug, Default)]
pub struct Authentication {
    /// Rules, sorted by issuer.
    pub rules: Box<[TokenRule]>,
    /// Locations that are looked at, each with the numbers of its rules. A token at a location without rules is refused.
    pub locations: Box<[(TokenLocation, Box<[usize]>)]>,
    /// Headers that rules write, in lower case and with `-` for `_`. Clients must not send them.
    pub outputs: Box<[Box<str>]>,
    /// Key sets to fetch.
    pub remote: Box<[Arc<RemoteKeys>]>,
}

/// Accepted tokens of one issuer.
#[derive(Debug)]
pub struct TokenRule {
    /// Issuer, audiences, and claims that are lists of words.
    pub accepted: jwt::Rule,
    /// Keys of the issuer.
    pub keys: RuleKeys,
    /// Whether the header with the token is forwarded.
    pub forwards_token: bool,
    /// Header for the payload.
    pub payload_header: Option<HeaderName>,
    /// Headers for claims, each with the path of its claim.
    pub claim_headers: Box<[(HeaderName, ClaimPath)]>,
    /// The rule in the configuration.
    pub provenance: Provenance,
}

/// Path of a claim.
type ClaimPath = Box<[Box<str>]>;

/// Keys of an issuer.
#[derive(Clone, Debug)]
pub enum RuleKeys {
    /// Keys in the policy.
    Inline(Arc<jwt::Keys>),
    /// Keys at a URL.
    Remote(Arc<RemoteKeys>),
}

/// Location of a token in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenLocation {
    /// `Authorization: Bearer TOKEN`, in any case and with any number of spaces (RFC 9110, section 11.1).
    Bearer,
    /// Cookie with this name.
    Cookie(Box<str>),
    /// Header with this name, and the text before the token.
    Header(HeaderName, Box<str>),
    /// Query parameter with this name.
    Param(Box<str>),
}
