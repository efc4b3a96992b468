//! Identity from the SPIFFE Workload API (`FetchX509SVID`), such as that of a SPIRE agent: a stream whose messages each
//! replace what was before.

mod message;

use std::future::pending;
use std::time::Duration;

use tokio::time::sleep;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use self::message::{SvidResponse, fetch};
use super::answer;
use super::delivery::{Delivery, cause, now};
use super::schedule::{Delays, Failure, Schedule, Time};
use super::settings::{AgentEndpoint, WorkloadApiSettings};
use crate::tls::{Problem, ProblemKind};

/// Delays after a stream has ended.
const DELAYS: Delays = Delays {
    transient: [Duration::from_millis(200), Duration::from_secs(30)],
    denied: [Duration::from_millis(200), Duration::from_secs(30)],
};

/// Client of a SPIFFE Workload API.
pub(super) struct WorkloadApi {
    settings: WorkloadApiSettings,
    delivery: Delivery,
    schedule: Schedule,
    /// Expiry of the last certificate, until it has been reported.
    expires: Option<Time>,
}

impl WorkloadApi {
    pub(super) fn new(settings: WorkloadApiSettings, delivery: Delivery) -> Self {
        Self {
            settings,
            delivery,
            schedule: Schedule::new(now(), DELAYS),
            expires: None,
        }
    }

    /// Follows the agent until the future is dropped.
    pub(super) async fn run(mut self) {
        loop {
            let status = match self.open().await {
                Ok(stream) => self.follow(stream).await,
                Err(status) => status,
            };
            self.fail(&status);
            let wait = sleep(self.schedule.wait(now()));
            tokio::pin!(wait);
            loop {
                tokio::select! {
                    () = &mut wait => break,
                    () = expiry(self.expires) => self.expired(),
                }
            }
        }
    }

    async fn open(&self) -> Result<Streaming<SvidResponse>, Status> {
        let channel: Channel = match &self.settings.endpoint {
            AgentEndpoint::Tcp(address) => {
                let host = address.ip().to_string();
                let channel = grpc_client::channel(&host, address.port(), None);
                channel.map_err(Status::unavailable)?
            }
            AgentEndpoint::Unix(path) => grpc_client::unix_channel(path.clone()),
        };
        fetch(channel).await
    }

    /// Delivers the identities of a stream until it ends; returns why.
    async fn follow(&mut self, mut stream: Streaming<SvidResponse>) -> Status {
        loop {
            tokio::select! {
                message = stream.message() => match message {
                    Ok(Some(message)) => self.take(message),
                    Ok(None) => return Status::unavailable("the agent ended the stream"),
                    Err(status) => return status,
                },
                () = expiry(self.expires) => self.expired(),
            }
        }
    }

    /// Checks a message, and makes it the identity. One that cannot be used changes nothing, but one without an identity of this
    /// workload takes the last one away.
    fn take(&mut self, message: SvidResponse) {
        let (workload, place) = (&self.delivery.workload, self.delivery.place());
        let hint = self.settings.hint.as_deref();
        let seconds = now().as_secs().try_into().unwrap_or_default();
        let material = message.material(workload, hint, &place);
        let checked = material.and_then(|material| {
            let facts = answer::check(&material, workload, &place, seconds)?;
            Ok((material, facts))
        });
        match checked {
            Ok((material, facts)) => {
                self.schedule.established();
                let expires = facts.not_after.try_into().unwrap_or_default();
                self.expires = Some(Duration::from_secs(expires));
                self.delivery.deliver(material.into());
            }
            Err(problem) if problem.kind == ProblemKind::NoneFits => {
                self.expires = None;
                self.delivery.withdraw(problem);
            }
            Err(problem) => self.delivery.fail(problem, "failed"),
        }
    }

    /// Reports the end of a stream. A workload without an entry has no identity any more, at once.
    fn fail(&mut self, status: &Status) {
        let (failure, kind, fix) = match status.code() {
            Code::PermissionDenied => (
                Failure::Denied,
                ProblemKind::Withdrawn,
                "register the workload at the agent's server",
            ),
            Code::InvalidArgument | Code::Unimplemented => (
                Failure::Invalid,
                ProblemKind::Awaited,
                "name the socket of a SPIFFE Workload API by --workload-api",
            ),
            _ => (
                Failure::Transient,
                ProblemKind::Awaited,
                "check --workload-api, and that the agent runs",
            ),
        };
        self.schedule.failed(now(), failure, rand::random());
        let text = format!(
            "the agent has no answer: {:?}, {}",
            status.code(),
            cause(status)
        );
        let problem = Problem::new(kind, self.delivery.place(), text);
        let problem = problem.with_fix(Some(fix.to_owned()));
        match kind {
            ProblemKind::Withdrawn => {
                self.expires = None;
                self.delivery.withdraw(problem);
            }
            _ => self.delivery.fail(problem, failure.as_str()),
        }
    }

    fn expired(&mut self) {
        self.expires = None;
        self.delivery.expired();
    }
}

/// Waits until a certificate has expired.
async fn expiry(expires: Option<Time>) {
    match expires {
        // the last second of a validity period is part of it
        Some(expires) => sleep((expires + Duration::from_secs(1)).saturating_sub(now())).await,
        None => pending().await,
    }
}
