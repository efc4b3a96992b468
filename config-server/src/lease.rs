//! Leader election among several servers by a Kubernetes Lease.
//!
//! Expiry follows client-go: a Lease has expired if its holder has not renewed it for its duration, measured by the
//! clock of the observer. A holder that fails to renew for [`Times::renew_max`] stops leading before others may start.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::sync::watch;

/// Timing of the election.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Duration of the Lease after its last renewal.
    pub duration: Duration,
    /// Time without a successful renewal after which the holder stops leading.
    pub renew_max: Duration,
    /// Interval between attempts.
    pub pause: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            duration: Duration::from_secs(15),
            renew_max: Duration::from_secs(10),
            pause: Duration::from_secs(2),
        }
    }
}

/// Participant of an election.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Name of the API server in logs.
    pub server: String,
    /// Name of the Lease.
    pub lease: String,
    /// Name of this candidate.
    pub identity: String,
    /// Timing of the election.
    pub times: Times,
}

/// Resource version of the Lease, and the time when it was first seen.
#[derive(Debug)]
struct Seen {
    version: Option<String>,
    since: Instant,
}

/// Action on a Lease.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Creates the Lease.
    Create,
    /// Acquires or renews the Lease; `is_new` counts a transition from another holder.
    Hold { is_new: bool },
    /// Waits, since another candidate leads.
    Wait,
}

impl Candidate {
    /// Takes part in the election until the receiver of `is_leader` is dropped.
    pub async fn run(self, leases: Api<Lease>, is_leader: watch::Sender<bool>) {
        let mut seen = Seen {
            version: None,
            since: Instant::now(),
        };
        let mut renewed = Instant::now();
        let mut failure: Option<String> = None;
        while !is_leader.is_closed() {
            let start = Instant::now();
            match self.attempt(&leases, &mut seen).await {
                Ok(leads) => {
                    renewed = start;
                    failure = None;
                    self.announce(&is_leader, leads);
                }
                Err(error) => {
                    let error = error.to_string();
                    if failure.as_ref() != Some(&error) {
                        let fix = "grant get, create and update on leases in the namespace of --lease-namespace, which must exist";
                        tracing::warn!(server = self.server, lease = %self.lease, error, fix, "the Lease cannot be held: nothing is written");
                    }
                    failure = Some(error);
                    if renewed.elapsed() >= self.times.renew_max {
                        self.announce(&is_leader, false);
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(self.times.pause) => {}
                () = is_leader.closed() => {}
            }
        }
        self.release(&leases).await;
    }

    fn announce(&self, is_leader: &watch::Sender<bool>, leads: bool) {
        is_leader.send_if_modified(|known| {
            let differs = *known != leads;
            if differs {
                tracing::info!(server = self.server, lease = %self.lease, identity = %self.identity, leads, "election");
            }
            *known = leads;
            differs
        });
    }

    /// Reads the Lease once, and acquires or renews it if possible. Returns whether this candidate leads.
    async fn attempt(&self, leases: &Api<Lease>, seen: &mut Seen) -> Result<bool, kube::Error> {
        let limit = self.times.renew_max;
        let late = || kube::Error::Service("no answer in time".into());
        let attempt = async {
            let found = leases.get_opt(&self.lease).await?;
            let now = Instant::now();
            let version = found
                .as_ref()
                .and_then(|l| l.metadata.resource_version.clone());
            if version != seen.version {
                *seen = Seen {
                    version,
                    since: now,
                };
            }
            let post = PostParams::default();
            let written = match self.step(found.as_ref(), now.duration_since(seen.since)) {
                Step::Wait => return Ok(false),
                Step::Create => leases.create(&post, &self.written(None, true)).await,
                Step::Hold { is_new } => {
                    let lease = self.written(found.as_ref(), is_new);
                    leases.replace(&self.lease, &post, &lease).await
                }
            };
            match written {
                Ok(_) => Ok(true),
                // Another candidate wrote the Lease first.
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
                Err(error) => Err(error),
            }
        };
        tokio::time::timeout(limit, attempt)
            .await
            .map_err(|_| late())?
    }

    /// Returns the action on a Lease that has been unchanged for this time.
    fn step(&self, lease: Option<&Lease>, unchanged: Duration) -> Step {
        let Some(lease) = lease else {
            return Step::Create;
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        if holder == self.identity {
            return Step::Hold { is_new: false };
        }
        let seconds = spec.lease_duration_seconds.unwrap_or(0);
        let seconds = u64::try_from(seconds).unwrap_or(0);
        if holder.is_empty() || unchanged >= Duration::from_secs(seconds) {
            return Step::Hold { is_new: true };
        }
        Step::Wait
    }

    /// Returns the Lease as this candidate writes it.
    fn written(&self, before: Option<&Lease>, is_new: bool) -> Lease {
        let now = MicroTime(Timestamp::now());
        let old = before
            .and_then(|lease| lease.spec.clone())
            .unwrap_or_default();
        let transitions = old.lease_transitions.unwrap_or(0);
        let seconds = self.times.duration.as_secs().max(1);
        Lease {
            metadata: match before {
                Some(lease) => lease.metadata.clone(),
                None => ObjectMeta {
                    name: Some(self.lease.clone()),
                    ..ObjectMeta::default()
                },
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: Some(i32::try_from(seconds).unwrap_or(i32::MAX)),
                acquire_time: if is_new {
                    Some(now.clone())
                } else {
                    old.acquire_time
                },
                renew_time: Some(now),
                lease_transitions: Some(transitions + i32::from(is_new && before.is_some())),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Releases the Lease, so that another candidate can acquire it at once.
    async fn release(&self, leases: &Api<Lease>) {
        let Ok(Some(mut lease)) = leases.get_opt(&self.lease).await else {
            return;
        };
        let Some(spec) = lease.spec.as_mut() else {
            return;
        };
        if spec.holder_identity.as_deref() == Some(&*self.identity) {
            spec.holder_identity = None;
            // A failed release only delays the next leader until the Lease expires.
            let _ = leases
                .replace(&self.lease, &PostParams::default(), &lease)
                .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(identity: &str) -> Candidate {
        Candidate {
            server: "kubernetes://".to_owned(),
            lease: "strait-status".to_owned(),
            identity: identity.to_owned(),
            times: Times::default(),
        }
    }

    #[test]
    fn lease_is_taken_when_its_holder_is_gone() {
        let (a, b) = (candidate("a"), candidate("b"));
        let short = Duration::from_secs(1);
        assert_eq!(a.step(None, short), Step::Create);
        let lease = a.written(None, true);
        assert_eq!(a.step(Some(&lease), short), Step::Hold { is_new: false });
        assert_eq!(b.step(Some(&lease), short), Step::Wait);
        let long = Duration::from_secs(15);
        assert_eq!(b.step(Some(&lease), long), Step::Hold { is_new: true });
        let taken = b.written(Some(&lease), true).spec.unwrap();
        assert_eq!(taken.lease_transitions, Some(1));
        let mut released = lease.clone();
        released.spec.as_mut().unwrap().holder_identity = None;
        assert_eq!(b.step(Some(&released), short), Step::Hold { is_new: true });
    }

    #[test]
    fn renewal_keeps_when_it_was_acquired() {
        let a = candidate("a");
        let first = a.written(None, true);
        let second = a.written(Some(&first), false);
        let (first, second) = (first.spec.unwrap(), second.spec.unwrap());
        assert_eq!(first.acquire_time, second.acquire_time);
        assert_eq!(second.lease_transitions, Some(0));
    }
}
