//! Callers of the CA: the workload that a call proves to be, by a token or by a certificate of this CA.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::in_use::InUse;
use super::join;
use super::profile::{Join, joined};
use crate::access::reviews::{Account, Reviews};
use crate::clock;
use crate::status::Failure;
use crate::store::Store;

/// Audience of the tokens of service accounts.
pub const AUDIENCE: &str = "strait-ca";

/// Workload that a call was proved to come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) namespace: String,
    pub(super) service_account: String,
    /// Pod of its token; `None` outside Kubernetes.
    pub(super) pod: Option<String>,
    /// Join by which it can renew; `None` in Kubernetes.
    pub(super) join: Option<Join>,
    /// Whether the call uses up a join token.
    pub(super) takes: bool,
}

/// Ways in which callers prove what they are.
#[derive(Clone, Debug)]
pub(super) enum Callers {
    /// Join tokens, and certificates of workloads that joined.
    Joined(JoinedCallers),
    /// Tokens of service accounts, which an API server reviews.
    Reviewed {
        reviews: Arc<Reviews>,
        /// Whether tokens that are not bound to a pod are accepted.
        allows_unbound: bool,
    },
}

/// Callers outside Kubernetes.
#[derive(Clone)]
pub(super) struct JoinedCallers {
    pub(super) store: Arc<dyn Store>,
    pub(super) trust_domain: String,
    pub(super) chain_max: Duration,
}

impl std::fmt::Debug for JoinedCallers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinedCallers").finish_non_exhaustive()
    }
}

/// Proof of a call.
pub(super) struct Proof<'a> {
    /// Bearer token, which counts if there is one.
    pub(super) token: Option<&'a str>,
    /// Certificates of the connection, the client's own first.
    pub(super) certificates: &'a [CertificateDer<'static>],
    /// Whether other servers are asked.
    pub(super) asks: bool,
}

impl Callers {
    /// Returns the caller that a call comes from.
    ///
    /// # Errors
    /// 401 without proof, 403 if the caller gets no certificate this way, 503 if it cannot be found out.
    pub(super) async fn find(&self, proof: Proof<'_>, in_use: &InUse) -> Result<Caller, Failure> {
        match (self, proof.token) {
            (
                Callers::Reviewed {
                    reviews,
                    allows_unbound,
                },
                Some(token),
            ) => {
                let account = reviews.account(token, proof.asks).await?;
                let account = account.ok_or_else(|| {
                    unauthenticated(&format!(
                        "the API server does not accept the token for the audience {AUDIENCE}"
                    ))
                })?;
                reviewed(account, *allows_unbound)
            }
            (Callers::Reviewed { .. }, None) => Err(unauthenticated(
                "the call has no token of a service account",
            )),
            (Callers::Joined(callers), Some(token)) => callers.by_token(token).await,
            (Callers::Joined(callers), None) => {
                callers.by_certificate(proof.certificates, in_use).await
            }
        }
    }

    /// Uses up the join token of a caller. Returns false if another call was faster.
    pub(super) async fn take(&self, caller: &Caller) -> Result<bool, Failure> {
        match (self, &caller.join) {
            (Callers::Joined(callers), Some(join)) if caller.takes => {
                let taken = join::take(&*callers.store, &join.token).await;
                taken.map_err(Failure::internal)
            }
            _ => Ok(true),
        }
    }
}

fn reviewed(account: Account, allows_unbound: bool) -> Result<Caller, Failure> {
    let Account {
        namespace,
        name,
        pod,
    } = account;
    if pod.is_none() && !allows_unbound {
        return Err(forbidden(
            "the token is not bound to a pod; use a projected token, or start the CA with --allow-unbound-tokens",
        ));
    }
    Ok(Caller {
        namespace,
        service_account: name,
        pod,
        join: None,
        takes: false,
    })
}

impl JoinedCallers {
    async fn by_token(&self, text: &str) -> Result<Caller, Failure> {
        let found = join::with_text(&*self.store, text).await;
        let token = found
            .map_err(Failure::internal)?
            .ok_or_else(|| unauthenticated("the join token is unknown, or was revoked"))?;
        if let Some(refusal) = token.refusal(clock::seconds_now()) {
            return Err(unauthenticated(refusal));
        }
        Ok(Caller {
            namespace: token.namespace,
            service_account: token.service_account,
            pod: None,
            join: Some(Join {
                at: clock::seconds_now(),
                token: token.name,
            }),
            takes: true,
        })
    }

    async fn by_certificate(
        &self,
        certificates: &[CertificateDer<'static>],
        in_use: &InUse,
    ) -> Result<Caller, Failure> {
        let (own, chain) = certificates.split_first().ok_or_else(|| {
            unauthenticated("the call has neither a join token nor a certificate of this CA")
        })?;
        let verified = in_use
            .workloads
            .verify_client_cert(own, chain, UnixTime::now());
        verified.map_err(|error| unauthenticated(&format!("the client certificate: {error}")))?;
        let (id, join) = joined(own).ok_or_else(|| {
            forbidden(
                "the client certificate was not issued for a join token; renew it as it was issued",
            )
        })?;
        let of_domain = format!("spiffe://{}/ns/", self.trust_domain);
        let path = id.strip_prefix(&of_domain);
        let (namespace, service_account) = path
            .and_then(|path| path.split_once("/sa/"))
            .ok_or_else(|| forbidden("the client certificate is of another trust domain"))?;
        let end = join.at.saturating_add(self.chain_max.as_secs());
        if clock::seconds_now() >= end {
            return Err(forbidden(
                "the workload joined too long ago (--max-renewal-chain); it needs another join token",
            ));
        }
        let token = join::named(&*self.store, &join.token).await;
        if token.map_err(Failure::internal)?.is_none() {
            return Err(forbidden("the join token of the workload was revoked"));
        }
        Ok(Caller {
            namespace: namespace.to_owned(),
            service_account: service_account.to_owned(),
            pod: None,
            join: Some(join),
            takes: false,
        })
    }
}

pub(super) fn unauthenticated(message: &str) -> Failure {
    Failure::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
}

fn forbidden(message: &str) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, "Forbidden", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_of_a_service_account_is_bound_to_a_pod() {
        let account = |pod: Option<&str>| Account {
            namespace: "shop".to_owned(),
            name: "cart".to_owned(),
            pod: pod.map(str::to_owned),
        };
        let found = reviewed(account(Some("cart-1")), false).unwrap();
        assert_eq!(found.pod.as_deref(), Some("cart-1"));
        let refused = reviewed(account(None), false).unwrap_err();
        assert_eq!(refused.code, 403);
        let found = reviewed(account(None), true).unwrap();
        assert_eq!(
            (&*found.namespace, &*found.service_account),
            ("shop", "cart")
        );
    }
}
