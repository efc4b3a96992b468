//! Service accounts by their tokens, which the API server reviews.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::api::{Api, PostParams};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{Guard, Role, User};
use crate::clock;
use crate::object;
use crate::remote::Remote;
use crate::status::Failure;

/// Audience of the tokens with which proxies follow a server.
pub const AUDIENCE: &str = "strait-control";

/// Field of a review with the pod of a token.
const POD: &str = "authentication.kubernetes.io/pod-name";

/// Maximum time for which an accepted token is remembered.
const ACCEPTED_MAX: Duration = Duration::from_secs(60);
/// Time for which a refused token is remembered.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// Maximum number of remembered tokens, of each sort.
const TOKENS_MAX: usize = 16_384;
/// Maximum number of reviews at once; further ones wait.
const REVIEWS_MAX: usize = 32;
/// Maximum time of a review, with its wait.
const REVIEW_MAX: Duration = Duration::from_secs(5);

/// SHA-256 of a token.
type Hash = [u8; 32];

/// Service account of a reviewed token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Namespace of the account.
    pub namespace: String,
    /// Name of the account.
    pub name: String,
    /// Pod that the token is bound to; `None` for a token that outlives its pod.
    pub pod: Option<String>,
}

impl From<Account> for User {
    fn from(
        Account {
            namespace, name, ..
        }: Account,
    ) -> User {
        User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            role: Role::Proxy(vec![namespace.clone()]),
            namespace: Some(namespace),
        }
    }
}

/// Service accounts by their tokens for one audience, which the API server reviews. Answers are remembered for a short
/// time.
#[derive(Debug)]
pub struct Reviews {
    remote: Remote,
    audience: &'static str,
    free: Semaphore,
    known: Mutex<Known>,
}

/// Reviewed tokens, with the end of the memory. Refused ones never displace accepted ones.
#[derive(Debug, Default)]
struct Known {
    accepted: HashMap<Hash, (Account, Instant)>,
    refused: HashMap<Hash, ((), Instant)>,
}

impl Reviews {
    /// Returns the service accounts of an API server, whose tokens must have this audience.
    pub fn of(remote: Remote, audience: &'static str) -> Reviews {
        Reviews {
            remote,
            audience,
            free: Semaphore::new(REVIEWS_MAX),
            known: Mutex::default(),
        }
    }

    /// Returns the account of a token; `None` if the token is refused. Without `asks`, only remembered answers count.
    ///
    /// # Errors
    /// 503 if the API server does not answer.
    pub async fn account(&self, token: &str, asks: bool) -> Result<Option<Account>, Failure> {
        let Some(expires) = expiry(token).filter(|at| clock::seconds_now() < *at) else {
            return Ok(None);
        };
        let hash = hash(token);
        if let Some(known) = self.lock().get(&hash, Instant::now()) {
            return Ok(known);
        }
        if !asks {
            return Ok(None);
        }
        let asked = tokio::time::timeout(REVIEW_MAX, self.review(token));
        let status = asked
            .await
            .unwrap_or_else(|_| Err("no answer in 5 s".to_owned()));
        let status = status.map_err(|error| {
            tracing::warn!(
                server = self.remote.name(),
                error,
                "a token cannot be reviewed"
            );
            let why = "the API server cannot be asked about the token";
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why)
        })?;
        let account = account_of(&status, self.audience);
        let left = Duration::from_secs(expires.saturating_sub(clock::seconds_now()));
        self.lock().put(hash, account.clone(), left, Instant::now());
        Ok(account)
    }

    /// Returns the guard of a stream, which ends with its token: proxies connect again, with the next one.
    pub fn guard(token: &str) -> Guard {
        let expires = expiry(token);
        Guard::new(move || expires.is_some_and(|at| clock::seconds_now() < at))
    }

    async fn review(&self, token: &str) -> Result<TokenReviewStatus, String> {
        let said = |error: kube::Error| error.to_string();
        let _permit = self
            .free
            .acquire()
            .await
            .map_err(|error| error.to_string())?;
        let api: Api<TokenReview> = Api::all(self.remote.client().await?);
        let review = TokenReview {
            spec: TokenReviewSpec {
                audiences: Some(vec![self.audience.to_owned()]),
                token: token.to_owned(),
            },
            ..TokenReview::default()
        };
        let answer = api.create(&PostParams::default(), &review).await;
        if let Err(kube::Error::Api(status)) = &answer
            && status.code == 401
        {
            self.remote.forget_client().await;
        }
        answer
            .map_err(said)?
            .status
            .ok_or_else(|| "the review has no status".to_owned())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Returns the remembered account, or the remembered refusal.
    fn get(&self, hash: &Hash, now: Instant) -> Option<Option<Account>> {
        let accepted = self.accepted.get(hash).filter(|(_, until)| now < *until);
        let refused = self.refused.get(hash).filter(|(_, until)| now < *until);
        match (accepted, refused) {
            (Some((account, _)), _) => Some(Some(account.clone())),
            (None, Some(_)) => Some(None),
            (None, None) => None,
        }
    }

    /// Remembers an answer about a token that is valid for `left`.
    fn put(&mut self, hash: Hash, account: Option<Account>, left: Duration, now: Instant) {
        match account {
            Some(account) => put(
                &mut self.accepted,
                hash,
                (account, now + left.min(ACCEPTED_MAX)),
                now,
            ),
            None => put(&mut self.refused, hash, ((), now + REFUSED_FOR), now),
        }
    }
}

fn put<T>(known: &mut HashMap<Hash, (T, Instant)>, hash: Hash, value: (T, Instant), now: Instant) {
    if known.len() >= TOKENS_MAX {
        known.retain(|_, (_, until)| now < *until);
        if known.len() >= TOKENS_MAX {
            known.clear();
        }
    }
    known.insert(hash, value);
}

fn hash(token: &str) -> Hash {
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    digest.as_ref().try_into().unwrap_or_default()
}

/// Returns the expiry that a token tells, in seconds since 1970; `None` for a token without one. The API server checks it.
fn expiry(token: &str) -> Option<u64> {
    let payload = token.split('.').nth(1)?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    claims["exp"].as_u64()
}

/// Returns the account of a review, whose token has the audience.
fn account_of(status: &TokenReviewStatus, audience: &str) -> Option<Account> {
    // Servers that know no audiences do not return any.
    let mut audiences = status.audiences.iter().flatten();
    if status.authenticated != Some(true) || !audiences.any(|one| one == audience) {
        return None;
    }
    let user = status.user.as_ref()?;
    let name = user.username.as_ref()?;
    let mut groups = user.groups.iter().flatten();
    if !groups.any(|group| group == "system:serviceaccounts") {
        return None;
    }
    let account = name.strip_prefix("system:serviceaccount:")?;
    let (namespace, name) = account.split_once(':')?;
    let is_name = |text: &str| object::is_name(text);
    let pod = user
        .extra
        .as_ref()
        .and_then(|extra| extra.get(POD)?.first());
    (is_name(namespace) && is_name(name)).then(|| Account {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        pod: pod.cloned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    fn account(name: &str) -> Account {
        Account {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            pod: None,
        }
    }

    #[test]
    fn service_account_is_a_proxy_of_its_namespace() {
        let review = |change: Value| {
            let mut status = json!({
                "authenticated": true, "audiences": [AUDIENCE],
                "user": {
                    "username": "system:serviceaccount:shop:web",
                    "groups": ["system:serviceaccounts", "system:serviceaccounts:shop"],
                    "extra": {POD: ["web-1"]},
                },
            });
            for (field, value) in change.as_object().unwrap() {
                status[field] = value.clone();
            }
            account_of(&serde_json::from_value(status).unwrap(), AUDIENCE)
        };
        let found = review(json!({})).unwrap();
        assert_eq!(found.pod.as_deref(), Some("web-1"));
        let found = User::from(found);
        assert_eq!(found.name, "system:serviceaccount:shop:web");
        assert_eq!(found.role.to_string(), "proxy:shop");
        assert_eq!(found.namespace.as_deref(), Some("shop"));
        for refused in [
            json!({"authenticated": false}),
            json!({"authenticated": null}),
            json!({"audiences": ["https://kubernetes.default.svc"]}),
            json!({"audiences": null}),
            json!({"user": {"username": "admin"}}),
            json!({"user": {"username": "system:serviceaccount:shop:web"}}),
            json!({"user": {"username": "system:serviceaccount:shop", "groups": ["system:serviceaccounts"]}}),
            json!({"user": {"username": "system:serviceaccount:a/b:web", "groups": ["system:serviceaccounts"]}}),
            json!({"audiences": ["strait-ca"]}),
            json!({"user": null}),
        ] {
            assert_eq!(review(refused.clone()), None, "{refused}");
        }
    }

    #[test]
    fn answers_are_remembered_for_a_minute_at_most() {
        let (mut known, now) = (Known::default(), Instant::now());
        let second = Duration::from_secs(1);
        let web = Some(account("web"));
        known.put([1; 32], web.clone(), 3_600 * second, now);
        known.put([2; 32], web.clone(), 7 * second, now);
        known.put([3; 32], None, 3_600 * second, now);
        let at = |one, seconds| known.get(&[one; 32], now + seconds * second);
        assert_eq!((at(1, 59), at(1, 60)), (Some(web.clone()), None));
        assert_eq!((at(2, 6), at(2, 7)), (Some(web), None));
        assert_eq!((at(3, 4), at(3, 5)), (Some(None), None));
        assert_eq!(at(4, 0), None);
    }

    #[test]
    fn refused_tokens_displace_no_accepted_ones() {
        let (mut known, now) = (Known::default(), Instant::now());
        known.put([0xff; 32], Some(account("web")), ACCEPTED_MAX, now);
        for number in 0..TOKENS_MAX + 10 {
            let hash = hash(&number.to_string());
            known.put(hash, None, ACCEPTED_MAX, now);
        }
        assert!(known.refused.len() <= TOKENS_MAX);
        assert!(known.get(&[0xff; 32], now).is_some());
    }

    #[tokio::test]
    async fn tokens_that_are_no_valid_jwt_cost_no_review() {
        let remote = Remote::new("kubernetes://no-such-context".parse().unwrap(), None);
        let reviews = Reviews::of(remote, AUDIENCE);
        for refused in [
            "",
            "abc",
            "a.b.c",
            &token(&json!({})),
            &token(&json!({"exp": 1})),
        ] {
            assert_eq!(reviews.account(refused, true).await, Ok(None), "{refused}");
        }
        let later = token(&json!({"exp": clock::seconds_now() + 60}));
        assert_eq!(reviews.account(&later, false).await, Ok(None));
        assert_eq!(reviews.account(&later, true).await.unwrap_err().code, 503);
    }
}
