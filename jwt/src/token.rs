//! A token taken apart, strictly: three parts in base64url without padding (RFC 7515, section 2), JSON with one reading,
//! and no extension that must be understood (section 4.1.11).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use traffic::claims::{Claim, Claims};

use crate::algorithm::Algorithm;
use crate::refusal::Refusal;

/// Maximum size of a token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Parsed token, whose signature is not verified yet.
#[derive(Debug)]
pub struct Token<'a> {
    /// Claims; not to be used before the signature is verified.
    pub(crate) claims: Claims,
    pub(crate) algorithm: Algorithm,
    pub(crate) kid: Box<str>,
    /// Signed part of the token: header and payload, still encoded.
    pub(crate) signed: &'a str,
    pub(crate) signature: Vec<u8>,
}

impl<'a> Token<'a> {
    /// Parses a token, without verifying its signature.
    ///
    /// # Errors
    ///
    /// The first part that cannot be read, in Envoy's order.
    pub fn parse(text: &'a str) -> Result<Self, Refusal> {
        use Refusal::Malformed;
        const FORM: Refusal = Malformed(
            "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections",
        );
        if text.len() > TOKEN_BYTES_MAX {
            return Err(Malformed("Jwt is too long"));
        }
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(FORM);
        };
        if [header, payload, signature].contains(&"") {
            return Err(FORM);
        }
        let (algorithm, kid) = read_header(header)?;
        let claims =
            decoded(payload).ok_or(Malformed("Jwt payload is an invalid Base64url encoded"))?;
        let claims =
            Claims::parse(&claims).map_err(|_| Malformed("Jwt payload is an invalid JSON"))?;
        check_types(&claims)?;
        let signature =
            decoded(signature).ok_or(Malformed("Jwt signature is an invalid Base64url encoded"))?;
        let signed = &text[..header.len() + 1 + payload.len()];
        Ok(Self {
            claims,
            algorithm,
            kid,
            signed,
            signature,
        })
    }

    /// Returns the payload of a valid token, still encoded in base64url.
    pub fn payload(text: &str) -> &str {
        text.split('.').nth(1).unwrap_or_default()
    }

    /// Returns the name of the algorithm.
    pub fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Returns the issuer that the token claims.
    pub fn issuer(&self) -> Option<&str> {
        self.claims.issuer()
    }
}

fn decoded(part: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(part).ok()
}

fn read_header(part: &str) -> Result<(Algorithm, Box<str>), Refusal> {
    use Refusal::Malformed;
    let header = decoded(part).ok_or(Malformed("Jwt header is an invalid Base64url encoded"))?;
    let header = Claims::parse(&header).map_err(|_| Malformed("Jwt header is an invalid JSON"))?;
    let algorithm = header.get("alg").and_then(Claim::text);
    let algorithm = algorithm.ok_or(Malformed(
        "Jwt header [alg] field is required and must be a string",
    ))?;
    let algorithm =
        Algorithm::from_name(algorithm).ok_or(Malformed("Jwt header [alg] is not supported"))?;
    // `b64` changes what is signed (RFC 7797)
    if header.get("crit").is_some() || header.get("b64").is_some() {
        return Err(Malformed("Jwt header [crit] is not supported"));
    }
    match header.get("kid").map(Claim::text) {
        None => Ok((algorithm, Box::default())),
        Some(Some(kid)) => Ok((algorithm, kid.into())),
        Some(None) => Err(Malformed("Jwt header [kid] field is not a string")),
    }
}

/// Checks the types of registered claims (RFC 7519, section 4.1).
fn check_types(claims: &Claims) -> Result<(), Refusal> {
    use Refusal::Malformed;
    const TEXTS: [(&str, &str); 3] = [
        ("iss", "Jwt payload [iss] field is not a string"),
        ("sub", "Jwt payload [sub] field is not a string"),
        ("jti", "Jwt payload [jti] field is not a string"),
    ];
    const TIMES: [(&str, &str, &str); 3] = [
        (
            "iat",
            "Jwt payload [iat] field is not an integer",
            "Jwt payload [iat] field is not a positive 64 bit integer",
        ),
        (
            "nbf",
            "Jwt payload [nbf] field is not an integer",
            "Jwt payload [nbf] field is not a positive 64 bit integer",
        ),
        (
            "exp",
            "Jwt payload [exp] field is not an integer",
            "Jwt payload [exp] field is not a positive 64 bit integer",
        ),
    ];
    let text = |(name, refusal)| match claims.get(name) {
        Some(claim) if claim.text().is_none() => Err(Malformed(refusal)),
        _ => Ok(()),
    };
    // Envoy's order: `jti` comes after the times
    TEXTS[..2].iter().copied().try_for_each(text)?;
    for (name, type_of, range) in TIMES {
        match claims.get(name) {
            None => {}
            Some(claim) if is_number(claim) => {
                seconds(claim).ok_or(Malformed(range))?;
            }
            Some(_) => return Err(Malformed(type_of)),
        }
    }
    text(TEXTS[2])?;
    let is_text = |claim: &Claim| claim.text().is_some();
    match claims.get("aud") {
        None => Ok(()),
        Some(Claim::List(list)) if list.iter().all(is_text) => Ok(()),
        Some(claim) if is_text(claim) => Ok(()),
        Some(_) => Err(Malformed(
            "Jwt payload [aud] field is not a string or string list",
        )),
    }
}

fn is_number(claim: &Claim) -> bool {
    matches!(claim, Claim::Integer(_) | Claim::Number(_))
}

/// Returns a time in seconds since 1970; fractions are cut.
pub(crate) fn seconds(claim: &Claim) -> Option<i64> {
    match claim {
        Claim::Integer(time) => i64::try_from(*time).ok().filter(|time| *time >= 0),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "in the range, and fractions are cut"
        )]
        Claim::Number(time) => {
            (*time >= 0.0 && *time < 9_223_372_036_854_775_808.0).then_some(*time as i64)
        }
        _ => None,
    }
}
