//! RequestAuthentication as written.

use serde::Deserialize;

use super::{LabelSelector, PolicyTargetReference};
use crate::raw::Field;

/// List of texts.
type Texts = Field<Vec<Field<String>>>;

/// RequestAuthentication as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestAuthentication {
    /// Workloads in the policy's namespace. Default: the whole namespace, or the mesh in the root namespace.
    pub selector: Field<LabelSelector>,
    /// Object that the policy is attached to; the older form of `targetRefs`.
    pub target_ref: Field<PolicyTargetReference>,
    /// Objects that the policy is attached to, at most 16; not beside `selector`.
    pub target_refs: Field<Vec<Field<PolicyTargetReference>>>,
    /// Accepted tokens, by issuer. A token of any other issuer is refused, and a request without one is not.
    pub jwt_rules: Field<Vec<Field<JwtRule>>>,
}

/// Accepted tokens of one issuer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JwtRule {
    /// Required claim `iss`. Empty only with `jwksUri`: any issuer.
    pub issuer: Field<String>,
    /// Accepted values of the claim `aud`. Default: any.
    pub audiences: Texts,
    /// URL of the issuer's key set. Default without `jwks`: as the issuer's OpenID configuration says.
    pub jwks_uri: Field<String>,
    /// Key set of the issuer; not beside `jwksUri`.
    pub jwks: Field<String>,
    /// Headers that have the token.
    pub from_headers: Field<Vec<Field<JwtHeader>>>,
    /// Query parameters that have the token.
    pub from_params: Texts,
    /// Cookies that have the token.
    pub from_cookies: Texts,
    /// Header for the payload of a verified token, in base64url.
    pub output_payload_to_header: Field<String>,
    /// Whether the header with the token is forwarded. Default: false.
    pub forward_original_token: Field<bool>,
    /// Headers for single claims of a verified token.
    pub output_claim_to_headers: Field<Vec<Field<ClaimToHeader>>>,
    /// Time limit for fetching the key set. Default: 5 s.
    pub timeout: Field<String>,
    /// Claims whose texts are lists of words, beside `scope` and `permission`.
    pub space_delimited_claims: Texts,
}

/// Header that has a token.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JwtHeader {
    /// Name of the header.
    pub name: Field<String>,
    /// Text before the token, such as `Bearer `.
    pub prefix: Field<String>,
}

/// Header for a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimToHeader {
    /// Name of the header.
    pub header: Field<String>,
    /// Path of the claim, with dots between names.
    pub claim: Field<String>,
}
