//! Target of a request: endpoint, protocol and settings of its connection.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::key::Key;
use super::phases::Phases;
use crate::runtime::interception::InboundSource;
use crate::telemetry::Counter;
use crate::upstream::{
    AnnouncedClient, Client, ConnectSettings, Counts, Host, Protocol, Reach, TlsTarget,
};
use traffic::connection::{ANNOUNCED_IDLE_MAX, PoolSettings, Source};
use traffic::error::{Error, Kind, Retry};
use traffic::registry::{ClusterState, EndpointState, PendingPermit, RequestPermit};

/// Target of one attempt.
#[derive(Clone, Copy, Debug)]
pub struct PoolTarget<'a> {
    /// Addresses of the endpoint.
    pub reach: Reach<'a>,
    /// State of the cluster, shared by workers.
    pub cluster: &'a Arc<ClusterState>,
    /// State of the endpoint, which identifies it.
    pub state: &'a Arc<EndpointState>,
    /// HTTP version.
    pub protocol: Protocol,
    /// Limits and timeouts.
    pub settings: &'a PoolSettings,
    /// TLS of the connection; `None` for plain text.
    pub tls: Option<TlsTarget<'a>>,
    /// Addresses for a PROXY header.
    pub client: &'a Client,
    /// Cell that receives the phases of the attempt.
    pub phases: Option<&'a Cell<Phases>>,
}

impl<'a> PoolTarget<'a> {
    /// Sets the host to use as TLS server name, if requests determine it.
    #[must_use]
    pub fn asking_for(mut self, host: Option<&'a Rc<Host>>) -> Self {
        if let Some(tls) = &mut self.tls {
            tls.host = host;
        }
        self
    }
}

impl PoolTarget<'_> {
    /// Notes a step of the attempt.
    pub(super) fn note(&self, step: impl FnOnce(&mut Phases)) {
        if let Some(cell) = self.phases {
            let mut phases = cell.get();
            step(&mut phases);
            cell.set(phases);
        }
    }

    pub(super) fn key(&self) -> Key {
        Key {
            endpoint: self.state.id,
            protocol: self.protocol,
            announced: self.announced(),
            source: self.source(),
            tls: self.tls.map_or(0, |tls| tls.client.serial()),
            host: self
                .tls
                .and_then(|tls| tls.host)
                .map_or(0, |host| host.serial),
        }
    }

    /// Returns the settings of a new connection.
    pub fn connect_settings(&self) -> ConnectSettings {
        ConnectSettings {
            protocol: self.protocol,
            timeout: self.settings.connect_timeout,
            announced: self.announced(),
            source: self.source(),
            keep_alive: self.settings.keep_alive,
            tcp_keepalive: self.settings.tcp_keepalive,
            tls: self.tls.map(Into::into),
        }
    }

    /// Returns the PROXY header of connections, if they have one.
    pub fn announced(&self) -> Option<AnnouncedClient> {
        let version = self.settings.proxy_protocol?;
        let client = *self.client;
        Some(AnnouncedClient { version, client })
    }

    /// Returns the source address of connections, unless the kernel chooses it.
    fn source(&self) -> Option<InboundSource> {
        Some(match self.settings.source? {
            Source::Client => InboundSource::Client(self.client.source.ip()),
            Source::Proxy => InboundSource::Proxy,
        })
    }

    pub(super) fn terms(&self) -> ConnectionLifetime {
        let settings = self.settings;
        ConnectionLifetime {
            idle_timeout: self.idle_timeout(),
            duration_max: settings.connection_duration_max,
            requests_max: settings.requests_per_connection_max.unwrap_or(u32::MAX),
            streams_max: settings.streams_max.unwrap_or(u32::MAX),
            limited: settings.limits.connections < u32::MAX,
        }
    }

    /// Takes a permit for a request that has a connection; `None` without a limit.
    pub(super) fn admit(&self, counts: &Counts) -> Result<Option<RequestPermit>, Error> {
        self.settings.limits.admit(self.cluster).map_err(|_| {
            counts.add(Counter::OverflowRequests, 1);
            Error::new(Kind::Overflow)
        })
    }

    /// Takes a permit for a pending request; `None` without a limit.
    pub(super) fn wait(&self, counts: &Counts) -> Result<Option<PendingPermit>, Error> {
        let permit = self.settings.limits.wait(self.cluster);
        permit.map_err(|_| too_many_wait(counts))
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        let settings = self.settings;
        let of_one_client =
            settings.proxy_protocol.is_some() || settings.source == Some(Source::Client);
        let most = match of_one_client {
            true => ANNOUNCED_IDLE_MAX,
            false => Duration::MAX,
        };
        self.settings.idle_timeout.min(most)
    }
}

/// Failure of an attempt without a response.
#[derive(Debug)]
pub struct Failed {
    /// Reason.
    pub error: Error,
    /// Whether the connection had carried another request before.
    pub reused: bool,
    /// Whether any byte of the request may have been sent.
    pub sent: bool,
}

impl Failed {
    /// Whether the request may be sent again on a fresh connection, if it is idempotent: the connection broke before a
    /// response, as idle ones do.
    pub fn may_repeat(&self) -> bool {
        self.reused
            && matches!(
                self.error.retry(),
                Retry::Always | Retry::IfConnectionReused
            )
    }
}

/// Maximum connections per attempt that turn out to be closed before a byte was written.
pub(super) const STALE_CONNECTIONS_MAX: usize = 8;

/// Connections that an attempt may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionChoice {
    /// Idle ones as well.
    Any,
    /// Only connections that have carried no request; on HTTP/2 also those opened after the one that failed.
    Fresh,
}

impl ConnectionChoice {
    pub(super) fn stale_max(self) -> usize {
        match self {
            ConnectionChoice::Any => STALE_CONNECTIONS_MAX,
            ConnectionChoice::Fresh => 0,
        }
    }
}

pub(super) fn too_many_wait(counts: &Counts) -> Error {
    counts.add(Counter::OverflowPending, 1);
    Error::new(Kind::Overflow)
}

/// Lifetime and limits of a pool's connections, as of its last request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLifetime {
    pub(super) idle_timeout: Duration,
    pub(super) duration_max: Option<Duration>,
    pub(super) requests_max: u32,
    pub(super) streams_max: u32,
    /// Whether the cluster has a connection limit.
    pub(super) limited: bool,
}

impl ConnectionLifetime {
    /// Whether connections have a limited lifetime.
    pub(super) fn is_finite(&self) -> bool {
        self.limited || self.requests_max < u32::MAX || self.duration_max.is_some()
    }

    /// Returns the reason that a connection accepts no further request, if there is one.
    pub(super) fn end_of_use(&self, carried: u32, made: Instant) -> Option<Counter> {
        if carried >= self.requests_max {
            Some(Counter::PoolRequestsMax)
        } else if self.duration_max.is_some_and(|max| made.elapsed() >= max) {
            Some(Counter::PoolDurationMax)
        } else {
            None
        }
    }
}
