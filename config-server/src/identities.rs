//! `strait control --issue-identities`: the CA of workloads. It answers `istio.v1.auth.IstioCertificateService`, so that
//! proxies, pilot-agent and ztunnel are its clients, and nothing else.
//!
//! Invariants: an identity is signed only for a caller that proved it; nothing of a request gets into a certificate but its
//! key; a key of the CA leaves its place only in a backup; no token gets into a log.

mod authorities;
mod call;
mod caller;
pub mod commands;
mod in_use;
mod join;
mod keep;
mod pace;
mod profile;
mod values;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::CertificateDer;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::{Code, Status};

use self::call::{CertificateRequest, Sign};
use self::caller::{Caller, Callers, JoinedCallers, Proof, unauthenticated};
use self::in_use::Source;
use self::pace::Pace;
use self::profile::CheckedRequest;
use self::values::now;
use crate::access::attempts::Attempts;
use crate::access::pki::Verifier;
use crate::access::reviews::Reviews;
use crate::api::respond::Body;
use crate::audit::Audit;
use crate::clock;
use crate::grpc::{refuse, status_of};
use crate::metrics::Metrics;
use crate::status::Failure;
use crate::store::Store;

pub use call::PATH;
pub use caller::AUDIENCE;
pub use commands::Command;
pub(crate) use in_use::KeysInUse;
pub use in_use::Times;
pub use join::{EXPIRES_MAX, NewJoinToken, USES_MAX};
pub use keep::{CaFiles, Keep, SECRET};

/// Certificates a minute for one identity and address.
const A_MINUTE: f64 = 10.0;

/// Settings of the CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueIdentities {
    /// Trust domain of the identities.
    pub trust_domain: String,
    /// Whether tokens of service accounts that are not bound to a pod are accepted.
    pub allows_unbound: bool,
    /// Certificate and key of the operator; `None` for keys that Strait makes.
    pub files: Option<CaFiles>,
    /// Times of the CA.
    pub times: Times,
}

/// CA of workloads.
#[derive(Clone)]
pub(crate) struct Identities(Arc<Parts>);

struct Parts {
    trust_domain: String,
    life_max: Duration,
    callers: Callers,
    in_use: KeysInUse,
    pace: Mutex<Pace>,
    recent: Attempts<(String, IpAddr)>,
    /// Failed proofs, with those of other logins.
    failed: Arc<Attempts>,
    metrics: Arc<Metrics>,
    audit: Option<Arc<Audit>>,
}

impl std::fmt::Debug for Identities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Identities").field(&self.0.callers).finish()
    }
}

/// Parts of a server that the CA uses.
pub(crate) struct OfServer {
    pub(crate) failed: Arc<Attempts>,
    pub(crate) metrics: Arc<Metrics>,
    /// Audit log; `None` for lines in the log.
    pub(crate) audit: Option<Arc<Audit>>,
}

/// Client side of a connection.
pub(crate) struct Client<'a> {
    pub(crate) address: IpAddr,
    pub(crate) certificates: &'a [CertificateDer<'static>],
}

impl Identities {
    /// Returns the CA of a server with a store, for workloads that join by token. `tasks` gets the one that keeps its keys.
    pub(crate) fn of_store(
        settings: &IssueIdentities,
        store: &Arc<dyn Store>,
        server: OfServer,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let callers = Callers::Joined(JoinedCallers {
            store: Arc::clone(store),
            trust_domain: settings.trust_domain.clone(),
            chain_max: settings.times.renewal_chain_max,
        });
        let keep = Keep::Store(Arc::clone(store));
        Self::new(settings, callers, keep, server, tasks)
    }

    /// Returns the CA of a cluster, for tokens that its API server reviews. `tasks` gets the one that keeps its keys.
    pub(crate) fn of_cluster(
        settings: &IssueIdentities,
        (reviews, keep): (Reviews, Keep),
        server: OfServer,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let callers = Callers::Reviewed {
            reviews: Arc::new(reviews),
            allows_unbound: settings.allows_unbound,
        };
        Self::new(settings, callers, keep, server, tasks)
    }

    fn new(
        settings: &IssueIdentities,
        callers: Callers,
        keep: Keep,
        server: OfServer,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (sender, in_use) = watch::channel(None);
        let source = match &settings.files {
            Some(files) => Source::Files(files.clone()),
            None => Source::Keep(keep),
        };
        tasks.spawn(in_use::follow(source, settings.times, sender));
        Self(Arc::new(Parts {
            trust_domain: settings.trust_domain.clone(),
            life_max: settings.times.life_max,
            callers,
            in_use,
            pace: Mutex::default(),
            recent: Attempts::new(A_MINUTE, A_MINUTE / 60.0),
            failed: server.failed,
            metrics: server.metrics,
            audit: server.audit,
        }))
    }

    /// Returns the keys in use.
    pub(crate) fn in_use(&self) -> KeysInUse {
        self.0.in_use.clone()
    }

    /// Returns the roots that workloads trust, in PEM; `None` until the keys are loaded.
    pub(crate) fn roots(&self) -> Option<String> {
        let in_use = self.0.in_use.borrow();
        in_use.as_ref().map(|in_use| in_use.roots.clone())
    }

    /// Runs a command of an admin.
    pub(crate) async fn run(&self, body: &[u8]) -> Result<serde_json::Value, Failure> {
        // users of the API of a cluster are proxies: commands are run where the keys are
        let Callers::Joined(JoinedCallers { store, .. }) = &self.0.callers else {
            return Err(Failure::unknown_path());
        };
        let command = serde_json::from_slice(body);
        let command: Command = command.map_err(|error| Failure::bad_request(error.to_string()))?;
        let keep = Keep::Store(Arc::clone(store));
        let ran = commands::run(&keep, &command).await;
        ran.map_err(Failure::bad_request)
    }

    /// Answers a call. Returns whether its caller was authenticated as well.
    pub(crate) async fn serve(
        &self,
        client: Client<'_>,
        request: Request<Incoming>,
    ) -> (Response<Body>, bool) {
        match self.caller(&client, request.headers()).await {
            Ok(caller) => {
                let (parts, address) = (Arc::clone(&self.0), client.address);
                let sign: Sign = Box::new(move |request| {
                    Box::pin(async move { parts.signed(&caller, address, &request).await })
                });
                (call::answer(request, sign).await, true)
            }
            Err(failure) => {
                let status = status_of(&failure);
                self.0.refused(client.address, &status, json!({}));
                (refuse(status), false)
            }
        }
    }

    /// Returns the caller of a call. Addresses that failed often are not asked about.
    async fn caller(&self, client: &Client<'_>, headers: &HeaderMap) -> Result<Caller, Failure> {
        let Parts {
            callers,
            failed,
            metrics,
            ..
        } = &*self.0;
        let Some(in_use) = self.0.in_use.borrow().clone() else {
            return Err(Failure::new(
                http::StatusCode::SERVICE_UNAVAILABLE,
                "ServiceUnavailable",
                "the CA has no keys yet",
            ));
        };
        let bearer = headers.get(AUTHORIZATION).map(|value| {
            let value = value.to_str().unwrap_or_default();
            value.strip_prefix("Bearer ").unwrap_or_default().trim()
        });
        let is_limited = failed.is_limited(&client.address, Instant::now());
        let proof = Proof {
            token: bearer,
            certificates: client.certificates,
            asks: !is_limited,
        };
        let found = callers.find(proof, &in_use).await;
        let Err(failure) = &found else {
            return found;
        };
        if failure.code.is_server_error() {
            return found;
        }
        let is_limited = failed.count(client.address, Instant::now());
        metrics.rejected_login(is_limited);
        match is_limited {
            true => Err(Failure::new(
                http::StatusCode::TOO_MANY_REQUESTS,
                "TooManyRequests",
                "too many failed calls",
            )),
            false => found,
        }
    }
}

impl Parts {
    /// Signs the key of a request for a caller, and records a refusal.
    async fn signed(
        &self,
        caller: &Caller,
        address: IpAddr,
        request: &CertificateRequest,
    ) -> Result<Vec<String>, Status> {
        let signed = self.sign(caller, address, request).await;
        if let Err(status) = &signed {
            let account = format!("{}/{}", caller.namespace, caller.service_account);
            let about = json!({"account": account, "pod": caller.pod});
            self.refused(address, status, about);
        }
        signed
    }

    /// Records a refusal. One beyond a limit is only counted, so that no client can fill the audit log.
    fn refused(&self, address: IpAddr, status: &Status, mut about: serde_json::Value) {
        match status.code() {
            Code::ResourceExhausted => self.metrics.certificate(false),
            _ => {
                about["refused"] = status.message().into();
                self.record(address, &about);
            }
        }
    }

    /// Signs the key of a request for a caller. Returns the certificates: its own, those above it, and the roots last.
    async fn sign(
        &self,
        caller: &Caller,
        address: IpAddr,
        request: &CertificateRequest,
    ) -> Result<Vec<String>, Status> {
        let Caller {
            namespace,
            service_account,
            ..
        } = caller;
        let id = format!(
            "spiffe://{}/ns/{namespace}/sa/{service_account}",
            self.trust_domain
        );
        if self.recent.count((id.clone(), address), Instant::now()) {
            return Err(Status::resource_exhausted(format!(
                "more than {A_MINUTE} certificates a minute for this identity and address"
            )));
        }
        let checked = CheckedRequest::read(&request.csr).map_err(Status::invalid_argument)?;
        if request.impersonates() {
            return Err(Status::permission_denied(
                "no caller gets the identity of another one",
            ));
        }
        let turn = {
            let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
            pace.turn(Instant::now())
        };
        let turn = turn.ok_or_else(|| Status::resource_exhausted("too many calls wait"))?;
        tokio::time::sleep(turn).await;
        let taken = self.callers.take(caller).await;
        if !taken.map_err(|failure| status_of(&failure))? {
            let used = unauthenticated("the join token is used up");
            return Err(status_of(&used));
        }
        let Some(in_use) = self.in_use.borrow().clone() else {
            return Err(Status::unavailable("the CA has no keys yet"));
        };
        let life_max = i64::try_from(self.life_max.as_secs()).unwrap_or(i64::MAX);
        let life = match request.validity_duration {
            asked @ 1.. => asked.min(life_max),
            _ => life_max,
        };
        let issued = in_use
            .signer
            .issue(&checked, &id, caller.join.as_ref(), (now(), life));
        let issued = issued.map_err(Status::unavailable)?;
        let until = issued.not_after.try_into().unwrap_or_default();
        let line = json!({
            "identity": id, "pod": caller.pod, "join_token": caller.join.as_ref().map(|join| &join.token),
            "serial": issued.serial, "not_after": clock::rfc3339(until),
        });
        self.record(address, &line);
        let own = std::iter::once(issued.certificate);
        let above = in_use.signer.chain().iter().cloned();
        Ok(own.chain(above).chain([in_use.roots.clone()]).collect())
    }

    /// Writes a line about a certificate or a refusal.
    fn record(&self, address: IpAddr, about: &serde_json::Value) {
        self.metrics.certificate(about["refused"].is_null());
        let mut line = json!({"time": clock::now(), "verb": "issue", "address": address});
        if let (Some(line), Some(about)) = (line.as_object_mut(), about.as_object()) {
            line.extend(about.clone());
        }
        match &self.audit {
            Some(audit) => audit.write(&line),
            None => tracing::info!(target: "audit", "{line}"),
        }
    }
}

/// Verifier of client certificates of users, and of workloads below the roots in use. A connection is accepted for
/// either; what its certificate means is verified again.
#[derive(Debug)]
pub(crate) struct EitherVerifier {
    users: Verifier,
    in_use: KeysInUse,
}

impl EitherVerifier {
    /// Returns the verifier of users, and of workloads if the server is their CA.
    pub(crate) fn of(users: &Verifier, identities: Option<&Identities>) -> Verifier {
        match identities {
            Some(identities) => Arc::new(Self {
                users: Arc::clone(users),
                in_use: identities.in_use(),
            }),
            None => Arc::clone(users),
        }
    }
}

impl ClientCertVerifier for EitherVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[rustls::DistinguishedName] {
        // roots change: clients send the certificate that they have
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: rustls_pki_types::UnixTime,
    ) -> Result<rustls::server::danger::ClientCertVerified, rustls::Error> {
        let of_user = self
            .users
            .verify_client_cert(end_entity, intermediates, now);
        let in_use = self.in_use.borrow().clone();
        match (of_user, in_use) {
            (Err(_), Some(in_use)) => {
                let workloads = &in_use.workloads;
                workloads.verify_client_cert(end_entity, intermediates, now)
            }
            (of_user, _) => of_user,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.users
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.users
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.users.supported_verify_schemes()
    }
}
