//! Certificates that the CA of an Istio mesh or Strait's own signs: `istio.v1.auth.IstioCertificateService` over TLS, with
//! the token of the service account, or with a join token first and the certificate itself later.
//!
//! The token is read for each request, and goes to the CA only, over TLS only.

mod call;
pub(super) mod report;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tonic::{Code, Status};

use self::call::{CertificateAnswer, Proof, SigningRequest, call};
use super::answer;
use super::delivery::{Delivery, cause, now};
use super::request::CertificateRequest;
use super::schedule::{Delays, Failure, Schedule, Time};
use super::settings::IstioCaSettings;
use crate::control::certificates::{Material, append, file};
use crate::tls::{Facts, Problem, ProblemKind};

/// Interval at which the token and the CA certificates are read.
const FILES_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum time of a request, from the connection on.
const CALL_MAX: Duration = Duration::from_secs(10);

/// Delays after failed requests.
const DELAYS: Delays = Delays {
    transient: [Duration::from_millis(100), Duration::from_secs(60)],
    denied: [Duration::from_secs(5), Duration::from_secs(300)],
};

/// Maximum length of the CA's message in a finding, in characters.
const MESSAGE_MAX: usize = 300;

/// Start of a join token of Strait's CA, which is used up once it has been used.
const JOIN_TOKEN: &str = "strait-join.";

/// Contents of a file as it was read last.
type Content = Result<Vec<u8>, Problem>;

/// Client of an Istio CA.
pub(super) struct IstioCa {
    settings: IstioCaSettings,
    delivery: Delivery,
    schedule: Schedule,
    token: Content,
    root: Content,
    /// Certificates that verify the server.
    server_root: Content,
    /// Revocation lists of the CA; `None` without any.
    revoked: Option<Vec<u8>>,
    /// Identity of the last answer.
    held: Option<Arc<Material>>,
    /// Whether the CA refused to renew that identity for itself.
    is_held_refused: bool,
    /// CA certificates of the last answer, as PEM.
    answered_root: Vec<u8>,
    /// Expiry of the last certificate, until it has been reported.
    expires: Option<Time>,
}

impl IstioCa {
    pub(super) fn new(settings: IstioCaSettings, delivery: Delivery) -> Self {
        Self {
            token: read(&settings.token, "--ca-token"),
            root: read_root(&settings),
            server_root: read(&settings.server_root, settings.server_root_flag()),
            revoked: read_lists(&settings).flatten(),
            held: None,
            is_held_refused: false,
            settings,
            delivery,
            schedule: Schedule::new(now(), DELAYS),
            answered_root: Vec::new(),
            expires: None,
        }
    }

    /// Renews the certificate until the future is dropped.
    pub(super) async fn run(mut self) {
        loop {
            self.look_at_files();
            if self.schedule.wait(now()).is_zero() {
                self.renew().await;
            }
            let mut wait = self.schedule.wait(now()).min(FILES_INTERVAL);
            if let Some(expires) = self.expires {
                // the last second of a validity period is part of it
                let left = (expires + Duration::from_secs(1)).saturating_sub(now());
                if left.is_zero() {
                    self.expires = None;
                    self.delivery.expired();
                }
                wait = wait.min(left);
            }
            sleep(wait).await;
        }
    }

    fn look_at_files(&mut self) {
        let token = read(&self.settings.token, "--ca-token");
        if token != self.token {
            self.token = token;
            // a new join token replaces the certificate as proof, since renewals by certificate end
            self.is_held_refused = self.token.is_ok();
            self.schedule.token_changed(now());
        }
        self.server_root = read(&self.settings.server_root, self.settings.server_root_flag());
        let root = read_root(&self.settings);
        let is_changed = root != self.root;
        if is_changed {
            self.root = root;
            self.schedule.roots_changed(now(), rand::random());
        }
        let revoked = read_lists(&self.settings).unwrap_or_else(|| self.revoked.clone());
        if (is_changed && self.root.is_ok()) || revoked != self.revoked {
            self.revoked = revoked;
            let revoked = self.revoked.as_deref();
            self.delivery.deliver_bundle(&self.bundle(), revoked);
        }
    }

    /// Returns the CA certificates of the file and of the last answer.
    fn bundle(&self) -> Vec<u8> {
        let mut bundle = self.root.clone().unwrap_or_default();
        append(&mut bundle, &self.answered_root);
        bundle
    }

    async fn renew(&mut self) {
        match self.issue().await {
            Ok((material, facts)) => {
                let expires = Duration::from_secs(facts.not_after.try_into().unwrap_or_default());
                self.schedule.succeeded(now(), expires, rand::random());
                self.expires = Some(expires);
                let material = Arc::new(material);
                (self.held, self.is_held_refused) = (Some(Arc::clone(&material)), false);
                self.delivery.deliver(material);
            }
            Err((failure, problem)) => {
                self.schedule.failed(now(), failure, rand::random());
                self.delivery.fail(problem, failure.as_str());
            }
        }
    }

    async fn issue(&mut self) -> Result<(Material, Facts), (Failure, Problem)> {
        let transient = |problem| (Failure::Transient, problem);
        let proof = self.proof().map_err(transient)?;
        self.root.clone().map_err(transient)?;
        let root = self.server_root.clone().map_err(transient)?;
        let request = self.request().await.map_err(transient)?;
        let (csr, validity) = (request.request.clone(), self.settings.ttl);
        let signing = SigningRequest::new(csr, validity);
        let called = timeout(CALL_MAX, call(&self.settings, &root, &proof, signing)).await;
        let answer = match called {
            Ok(Ok(answer)) => answer,
            Ok(Err(status)) => return Err(self.refusal(&status, &proof)),
            Err(_) => {
                let status = Status::deadline_exceeded(format!("no answer within {CALL_MAX:?}"));
                return Err(self.refusal(&status, &proof));
            }
        };
        let before = std::mem::take(&mut self.answered_root);
        self.accept(answer, request).map_err(|problem| {
            self.answered_root = before;
            transient(problem)
        })
    }

    /// Returns what a request is proved by: the token, or the certificate in effect where the token may be used up.
    fn proof(&self) -> Result<Proof, Problem> {
        let token = self.token();
        let joins = token
            .as_ref()
            .map_or(true, |token| token.starts_with(JOIN_TOKEN));
        match &self.held {
            Some(held)
                if self.settings.is_own
                    && joins
                    && !self.is_held_refused
                    && self.expires.is_some() =>
            {
                Ok(Proof::Certificate(Arc::clone(held)))
            }
            _ => token.map(Proof::Token),
        }
    }

    fn token(&self) -> Result<String, Problem> {
        let bytes = self.token.as_ref().map_err(Clone::clone)?;
        let text = std::str::from_utf8(bytes).unwrap_or_default().trim();
        match text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => {
                let place = self.settings.token.display().to_string();
                let text = "it has no token: a line of text is expected";
                Err(Problem::new(ProblemKind::Awaited, place, text))
            }
            false => Ok(text.to_owned()),
        }
    }

    /// Makes a key and a request beside the control thread.
    async fn request(&self) -> Result<CertificateRequest, Problem> {
        let workload = &self.delivery.workload;
        let id = workload.id().unwrap_or_default();
        let kind = self.settings.key;
        let made = tokio::task::spawn_blocking(move || CertificateRequest::new(kind, &id)).await;
        let failed = |error: String| Problem::new(ProblemKind::Key, self.delivery.place(), error);
        let made = made.map_err(|_| failed("no key could be made".to_owned()))?;
        made.map_err(|error| failed(format!("no key could be made: {error}")))
    }

    /// Checks an answer, and makes it the identity.
    fn accept(
        &mut self,
        answer: CertificateAnswer,
        request: CertificateRequest,
    ) -> Result<(Material, Facts), Problem> {
        let place = self.delivery.place();
        let Some((root, chain)) = answer
            .cert_chain
            .split_last()
            .filter(|(_, chain)| !chain.is_empty())
        else {
            let count = answer.cert_chain.len();
            let text = format!(
                "the CA answered {count} certificates; expected that of the workload, and that of the CA last"
            );
            return Err(Problem::new(ProblemKind::Certificate, place, text));
        };
        self.answered_root = root.clone().into_bytes();
        let bundle = self.bundle();
        let workload = &self.delivery.workload;
        let domains = workload.trust_domains.iter();
        let material = Material {
            chain: chain.join("\n").into_bytes(),
            key: request.key.into_bytes(),
            bundles: domains
                .map(|domain| (Arc::clone(domain), bundle.clone()))
                .collect(),
            revoked: self.revoked.clone(),
        };
        let seconds = now().as_secs().try_into().unwrap_or_default();
        let facts = answer::check(&material, workload, &place, seconds)?;
        Ok((material, facts))
    }

    /// Describes the failure of a call. The message of the CA is shortened, and must not repeat the token.
    fn refusal(&mut self, status: &Status, proof: &Proof) -> (Failure, Problem) {
        let failure = failure(status.code());
        let is_held = matches!(proof, Proof::Certificate(_));
        if failure == Failure::Denied {
            // the other proof is next
            self.is_held_refused = is_held;
        }
        let IstioCaSettings { host, port, .. } = &self.settings;
        let (kind, fix) = match failure {
            Failure::Denied if is_held => {
                let fix = "create another join token (strait control identity token create)";
                (ProblemKind::Denied, fix.to_owned())
            }
            Failure::Denied => {
                let file = self.settings.token.display();
                let fix = format!(
                    "check audience, expiry and service account of the token in {file} (--ca-token), and --ca-cluster-id"
                );
                (ProblemKind::Denied, fix)
            }
            Failure::Invalid => {
                let fix = "check --identity-ttl, --trust-domain and --service-account";
                (ProblemKind::Awaited, fix.to_owned())
            }
            Failure::Transient => {
                let flag = self.settings.server_root_flag();
                let fix = format!(
                    "check --ca-address, {flag} and --ca-server-name, and that the CA runs"
                );
                (ProblemKind::Awaited, fix)
            }
        };
        let message = match proof {
            Proof::Certificate(_) => cause(status),
            Proof::Token(token) => cause(status).replace(token, "[token]"),
        };
        let message: String = message.chars().take(MESSAGE_MAX).collect();
        let text = format!(
            "the CA {host}:{port} issued no certificate: {:?}, {message}",
            status.code()
        );
        let problem = Problem::new(kind, self.delivery.place(), text);
        (failure, problem.with_fix(Some(fix)))
    }
}

/// Returns the kind of a failure by the status of the call.
fn failure(code: Code) -> Failure {
    match code {
        Code::PermissionDenied | Code::Unauthenticated => Failure::Denied,
        Code::Aborted
        | Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Internal
        | Code::OutOfRange // of an answer that is too long
        | Code::ResourceExhausted
        | Code::Unavailable
        | Code::Unknown => Failure::Transient,
        _ => Failure::Invalid,
    }
}

/// Reads the file of the bundle. Strait's CA sends its roots with each certificate, and needs none.
fn read_root(settings: &IstioCaSettings) -> Content {
    let Some(path) = &settings.root else {
        return Ok(Vec::new());
    };
    match read(path, "--ca-root") {
        Err(_) if settings.is_own && !path.exists() => Ok(Vec::new()),
        root => root,
    }
}

/// Reads the file of revocation lists: `None` if it cannot be read, after which the lists stay, and inner `None` if it has no list.
fn read_lists(settings: &IstioCaSettings) -> Option<Option<Vec<u8>>> {
    let lists = read(settings.crl.as_ref()?, "--ca-crl").ok()?;
    Some((!lists.trim_ascii().is_empty()).then_some(lists))
}

/// Reads a file that a request needs.
fn read(path: &std::path::Path, flag: &str) -> Content {
    let path: Arc<str> = path.to_string_lossy().into();
    let read = file(&path);
    read.map(|(_, bytes)| bytes).map_err(|problem| Problem {
        kind: ProblemKind::Awaited,
        fix: Some(format!("mount it, or name another file by {flag}")),
        ..problem
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_decides_when_the_ca_is_asked_again() {
        for (expected, codes) in [
            (
                Failure::Transient,
                &[
                    Code::Unavailable,
                    Code::DeadlineExceeded,
                    Code::ResourceExhausted,
                    Code::Aborted,
                    Code::Internal,
                    Code::Cancelled,
                ][..],
            ),
            (
                Failure::Denied,
                &[Code::Unauthenticated, Code::PermissionDenied],
            ),
            (
                Failure::Invalid,
                &[Code::InvalidArgument, Code::Unimplemented],
            ),
        ] {
            for code in codes {
                assert_eq!(failure(*code), expected, "{code:?}");
            }
        }
    }
}
