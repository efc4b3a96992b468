//! What a request is sent to, and by which terms.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::key::Key;
use super::settings::{ANNOUNCED_IDLE_MAX, PoolSettings, Source};
use crate::error::{Error, Kind};
use crate::registry::{ClusterState, EndpointState, PendingPermit, RequestPermit};
use crate::runtime::interception::InboundSource;
use crate::telemetry::Counter;
use crate::upstream::{
    Announced, Client, ConnectSettings, Counts, Host, Protocol, Reach, TlsTarget,
};

/// What an attempt is sent to.
#[derive(Clone, Copy, Debug)]
pub struct PoolTarget<'a> {
    /// Where to connect.
    pub reach: Reach<'a>,
    /// What workers share about the cluster.
    pub cluster: &'a Arc<ClusterState>,
    /// Identity of the endpoint.
    pub state: &'a Arc<EndpointState>,
    /// What to speak.
    pub protocol: Protocol,
    /// Limits and times.
    pub settings: &'a PoolSettings,
    /// The TLS that it goes through; none for plain text.
    pub tls: Option<TlsTarget<'a>>,
    /// The addresses that a PROXY protocol header names.
    pub client: &'a Client,
    /// Told how far the request is from having a connection.
    pub phase: Option<&'a Cell<Phase>>,
}

/// How far a request is from having a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It has had none yet.
    #[default]
    Connecting,
    /// It is on one.
    Connected,
    /// Its connection was closed under it, and another is being made.
    Reconnecting,
}

impl<'a> PoolTarget<'a> {
    /// The same for requests that ask for this host, where that is for requests to say.
    #[must_use]
    pub fn asking_for(mut self, host: Option<&'a Rc<Host>>) -> Self {
        if let Some(tls) = &mut self.tls {
            tls.host = host;
        }
        self
    }
}

impl PoolTarget<'_> {
    /// The request waits for a connection.
    pub(super) fn opens(&self) {
        if let Some(phase) = self.phase
            && phase.get() == Phase::Connected
        {
            phase.set(Phase::Reconnecting);
        }
    }

    /// The request has a connection.
    pub(super) fn connects(&self) {
        if let Some(phase) = self.phase {
            phase.set(Phase::Connected);
        }
    }

    pub(super) fn key(&self) -> Key {
        Key {
            endpoint: self.state.id,
            protocol: self.protocol,
            announced: self.announced(),
            source: self.source(),
            tls: self.tls.map_or(0, |tls| tls.client.serial),
            host: self
                .tls
                .and_then(|tls| tls.host)
                .map_or(0, |host| host.serial),
        }
    }

    /// How a connection to it is made.
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

    /// What connections begin with, if with anything.
    pub fn announced(&self) -> Option<Announced> {
        let version = self.settings.proxy_protocol?;
        let client = *self.client;
        Some(Announced { version, client })
    }

    /// The address that connections come from, if it is not the kernel's choice.
    fn source(&self) -> Option<InboundSource> {
        Some(match self.settings.source? {
            Source::Client => InboundSource::Client(self.client.source.ip()),
            Source::Proxy => InboundSource::Proxy,
        })
    }

    pub(super) fn terms(&self) -> Terms {
        let settings = self.settings;
        Terms {
            idle_timeout: self.idle_timeout(),
            duration_max: settings.connection_duration_max,
            requests_max: settings.requests_per_connection_max.unwrap_or(u32::MAX),
            streams_max: settings.streams_max.unwrap_or(u32::MAX),
            limited: settings.limits.connections < u32::MAX,
        }
    }

    /// Counts the request in as one that has a connection; none where there is no limit.
    pub(super) fn admit(&self, counts: &Counts) -> Result<Option<RequestPermit>, Error> {
        let max = self.settings.limits.requests;
        if max == u32::MAX {
            return Ok(None);
        }
        let permit = RequestPermit::acquire(self.cluster, max as usize);
        permit.map(Some).ok_or_else(|| {
            counts.add(Counter::OverflowRequests, 1);
            Error::new(Kind::Overflow)
        })
    }

    /// Counts the request in as one that waits; none where there is no limit.
    pub(super) fn wait(&self, counts: &Counts) -> Result<Option<PendingPermit>, Error> {
        let max = self.settings.limits.pending;
        if max == u32::MAX {
            return Ok(None);
        }
        let permit = PendingPermit::acquire(self.cluster, max as usize);
        permit.map(Some).ok_or_else(|| too_many_wait(counts))
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

/// Why an attempt got no response.
#[derive(Debug)]
pub struct Failed {
    /// What went wrong.
    pub error: Error,
    /// Whether the request went out on a connection that had carried another before.
    pub reused: bool,
    /// Whether any byte of the request may have gone out.
    pub sent: bool,
}

/// How many times one attempt may meet a connection that was closed under it before anything was written.
pub(super) const STALE_CONNECTIONS_MAX: usize = 8;

/// Which connections an attempt may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One that waits, if there is one.
    Any,
    /// One that has carried no request before; an HTTP/2 connection that was opened after the one that failed counts as
    /// such.
    Fresh,
}

impl Choice {
    pub(super) fn stale_max(self) -> usize {
        match self {
            Choice::Any => STALE_CONNECTIONS_MAX,
            Choice::Fresh => 0,
        }
    }
}

pub(super) fn too_many_wait(counts: &Counts) -> Error {
    counts.add(Counter::OverflowPending, 1);
    Error::new(Kind::Overflow)
}

/// How long connections of a pool are used, as of its last request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) idle_timeout: Duration,
    pub(super) duration_max: Option<Duration>,
    pub(super) requests_max: u32,
    pub(super) streams_max: u32,
    /// Whether the cluster has a limit of connections.
    pub(super) limited: bool,
}

impl Terms {
    /// Whether connections go out of use by themselves.
    pub(super) fn is_finite(&self) -> bool {
        self.limited || self.requests_max < u32::MAX || self.duration_max.is_some()
    }

    /// Why a connection takes no further request, if it takes none.
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
