//! Requirements for the tokens of one issuer.

use traffic::claims::{Claim, Claims};

use crate::keys::Keys;
use crate::refusal::Refusal;
use crate::token::{Token, seconds};

/// Seconds since 1970.
pub type UnixSeconds = i64;

/// Difference between the clocks of the issuer and of the proxy that is tolerated, in seconds.
const LEEWAY: UnixSeconds = 60;

/// Requirements for the tokens of one issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Issuer that tokens must have in `iss`; empty for any.
    pub issuer: Box<str>,
    /// Accepted audiences; empty for any.
    pub audiences: Box<[Box<str>]>,
    /// Claims with several values in one text, separated by spaces, in addition to `scope` and `permission`.
    pub words: Box<[Box<str>]>,
}

impl Rule {
    /// Whether the rule is for tokens of this issuer.
    pub fn is_for(&self, issuer: Option<&str>) -> bool {
        self.issuer.is_empty() || issuer == Some(&*self.issuer)
    }

    /// Verifies a token, and returns its claims.
    ///
    /// # Errors
    ///
    /// The first check that fails, in Envoy's order. `keys` may be the refusal for an issuer whose keys are unknown.
    pub fn verify(
        &self,
        token: &Token<'_>,
        keys: Result<&Keys, Refusal>,
        now: UnixSeconds,
    ) -> Result<Claims, Refusal> {
        self.admit(&token.claims, now)?;
        keys?.verify(token)?;
        Ok(token.claims.clone().with_words(&self.words))
    }

    /// Checks issuer, times and audiences.
    ///
    /// # Errors
    ///
    /// The first check that fails, in Envoy's order.
    pub fn admit(&self, claims: &Claims, now: UnixSeconds) -> Result<(), Refusal> {
        if !self.is_for(claims.issuer()) {
            return Err(Refusal::Issuer);
        }
        let time = |name| claims.get(name).and_then(seconds);
        if time("nbf").is_some_and(|from| from > now.saturating_add(LEEWAY)) {
            return Err(Refusal::NotYetValid);
        }
        if time("exp").is_some_and(|until| until < now.saturating_sub(LEEWAY)) {
            return Err(Refusal::Expired);
        }
        let mut audiences = claims.get("aud").into_iter().flat_map(Claim::texts);
        let accepted = |audience| {
            self.audiences
                .iter()
                .any(|own| without_scheme(own) == without_scheme(audience))
        };
        match self.audiences.is_empty() || audiences.any(accepted) {
            true => Ok(()),
            false => Err(Refusal::Audience),
        }
    }
}

/// Returns an audience without its scheme, and without a slash at its end: Envoy compares audiences like this.
fn without_scheme(audience: &str) -> &str {
    let schemes = ["http://", "https://"];
    let rest = schemes
        .iter()
        .find_map(|scheme| audience.strip_prefix(scheme))
        .unwrap_or(audience);
    rest.strip_suffix('/').unwrap_or(rest)
}
