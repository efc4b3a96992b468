//! DestinationRule that applies to a cluster, with its settings.

pub(in crate::compile) mod balance;

pub mod client_tls;

pub(in crate::compile) mod retries;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use config_loader::catalog::{DestinationRules, PeerPolicy, View, Workload, hostname};
use config_loader::resource::istio::{
    self as resource, Algorithm, ClientTls, ConnectionPool, DestinationRule, LoadBalancer,
    MutualTls, OutlierDetection, PeerAuthentication, ProxyProtocolVersion, RetryBudget,
    TcpKeepalive as Probes, TrafficDefaults, TrafficPolicy, UpgradePolicy,
};
use config_loader::resource::{HealthChecked, Object};

use crate::compile::applies::workload;
use crate::compile::policies::client_tls::RuleTls;
use crate::compile::provenance::provenance_of;
use crate::compile::service::Service;
use crate::compile::services::reads::RULES;
use crate::identity::Identity;
use crate::pool::{HttpVersionPolicy, Limits, PoolSettings};
use crate::upstream::{ProxyProtocol, TcpKeepalive, Tunnel, TunnelMethod};
use std::collections::BTreeMap;
use traffic::cluster::{Balance, RetryLimit};
use traffic::provenance::Provenance;
use wire::http2::keep_alive::KeepAlive;

type Rule = Arc<Object<DestinationRule>>;

/// Settings of DestinationRules and PeerAuthentications for a proxy of this identity.
pub(in crate::compile) struct Policies<'a> {
    view: View<'a>,
    identity: &'a Identity,
    rules: &'a DestinationRules,
}

/// Settings of a DestinationRule for one port and subset.
#[derive(Clone, Debug)]
pub(in crate::compile) struct ClusterPolicy {
    pub balance: Balance,
    /// Whether a rule chooses the load balancing algorithm.
    pub says_balancer: bool,
    pub retry_limit: RetryLimit,
    pub pool: PoolSettings,
    /// Active health checking of the rule.
    pub health_check: HealthChecked,
    /// TLS settings of the rule.
    pub tls: Option<RuleTls>,
    /// Labels of the subset; `None` for the whole service.
    pub subset: Option<BTreeMap<String, String>>,
    pub provenance: Vec<Provenance>,
}

impl<'a> Policies<'a> {
    /// Returns the policies of these resources; `rules` are the DestinationRules among them.
    pub(in crate::compile) fn new(
        view: View<'a>,
        identity: &'a Identity,
        rules: &'a DestinationRules,
    ) -> Self {
        Self {
            view,
            identity,
            rules,
        }
    }

    /// Whether a PeerAuthentication limits a port of these workloads to plain text.
    pub(in crate::compile) fn disables_mesh_tls(&self, workload: Workload<'_>, port: u16) -> bool {
        if self.view.is_empty::<PeerAuthentication>() {
            return false;
        }
        let policy = PeerPolicy::of(self.view, workload);
        policy.mode(port) == MutualTls::Disable
    }

    /// Returns the policy for a port and subset of a service; `None` for a subset that no rule defines.
    pub(in crate::compile) fn find(
        &self,
        host: &str,
        service: &Service,
        port: u16,
        subset: &str,
    ) -> Option<ClusterPolicy> {
        let rules = self.rules(host, &service.namespace);
        let base = rules
            .iter()
            .map(|rule| &rule.spec.traffic_policy)
            .find(|policy| policy.is_written());
        let ruled = |name| {
            let mut rules = rules.iter();
            rules.find_map(|rule| Some((rule, rule.spec.subset(name)?)))
        };
        let (chosen, required) = match subset {
            "" => (None, None),
            name => match ruled(name) {
                Some(chosen) => (Some(chosen), None),
                None => (None, Some(service.subsets.get(name)?)),
            },
        };
        let subset_policy = chosen.map(|(_, subset)| &subset.traffic_policy);
        let mesh = &self.identity.mesh_config.traffic;
        let effective = Effective::of(base, subset_policy, port).or_of(mesh);
        let at = |rule: &Rule, line: u32| provenance_of(rule.as_ref(), line);
        let provenance = match chosen {
            Some((rule, subset)) => vec![at(rule, subset.line.0)],
            None => rules.first().map(|rule| at(rule, 0)).into_iter().collect(),
        };
        Some(ClusterPolicy {
            balance: effective.balance(service, port, self.identity),
            says_balancer: effective
                .load_balancer
                .is_some_and(|said| !matches!(said.algorithm, Algorithm::Unsaid)),
            retry_limit: effective.retry_limit(),
            pool: effective.pool(mesh),
            health_check: rules
                .iter()
                .map(|rule| &rule.spec.health_check)
                .find(|said| **said != HealthChecked::Unsaid)
                .cloned()
                .unwrap_or_default(),
            tls: effective
                .tls
                .zip(rules.first())
                .map(|(tls, rule)| RuleTls::new(tls, rule)),
            subset: chosen
                .map(|(_, subset)| &subset.labels)
                .or(required)
                .cloned(),
            provenance,
        })
    }

    /// Returns the policy for the port of the proxy's own workload: its connection limits, without the settings for
    /// clients of the service. `pool` overrides the limits of rules.
    pub(in crate::compile) fn own(
        &self,
        host: &str,
        service: &Service,
        port: u16,
        pool: Option<&ConnectionPool>,
    ) -> ClusterPolicy {
        let rules = self.rules(host, &service.namespace);
        let base = rules
            .iter()
            .map(|rule| &rule.spec.traffic_policy)
            .find(|policy| policy.is_written());
        let mesh = &self.identity.mesh_config.traffic;
        let ruled = Effective::of(base, None, port).or_of(mesh);
        let effective = Effective {
            connection_pool: pool.or(ruled.connection_pool),
            ..Effective::default()
        };
        let rule = rules.first().filter(|_| pool.is_none());
        ClusterPolicy {
            balance: Balance::default(),
            says_balancer: false,
            retry_limit: effective.retry_limit(),
            pool: effective.pool(mesh),
            health_check: HealthChecked::Never,
            tls: None,
            subset: None,
            provenance: rule
                .map(|rule| provenance_of(rule.as_ref(), 0))
                .into_iter()
                .collect(),
        }
    }

    /// Returns the tunnel to a port and subset of a service. A subset does not inherit a tunnel.
    pub(in crate::compile) fn tunnel(
        &self,
        host: &str,
        service: &Service,
        port: u16,
        subset: &str,
    ) -> Option<Tunnel> {
        let mut rules = self.rules(host, &service.namespace).into_iter();
        let policy = match subset {
            "" => rules
                .map(|rule| &rule.spec.traffic_policy)
                .find(|policy| policy.is_written()),
            name => rules
                .find_map(|rule| rule.spec.subset(name))
                .map(|subset| &subset.traffic_policy),
        };
        // port-level settings replace all others, and have no tunnel
        let policy = policy.filter(|policy| policy.port(port).is_none())?;
        let tunnel = policy.tunnel.as_deref()?;
        let (host, port) = (&tunnel.target_host, tunnel.target_port);
        Some(Tunnel {
            method: match tunnel.method {
                resource::TunnelMethod::Connect => TunnelMethod::Connect,
                resource::TunnelMethod::Post => TunnelMethod::Post,
            },
            authority: match host.parse::<Ipv6Addr>() {
                Ok(ip) => format!("[{ip}]:{port}").into(),
                Err(_) => format!("{host}:{port}").into(),
            },
        })
    }

    /// Returns the subsets of a service that rules define or Destinations require.
    pub(in crate::compile) fn subsets<'s>(
        &'s self,
        host: &str,
        service: &'s Service,
    ) -> Vec<&'s str> {
        let rules = self.rules(host, &service.namespace).into_iter();
        let ruled = rules.flat_map(|rule| rule.spec.subsets.iter().map(|subset| &*subset.name));
        let required = service.subsets.keys().map(|name| &**name);
        ruled.chain(required).collect()
    }

    /// Returns the rules that apply to a host of a service in this namespace.
    fn rules(&self, host: &str, namespace: &str) -> Vec<&'a Rule> {
        let rules = self
            .rules
            .applying(host, namespace, workload(self.identity));
        let answer = || {
            let mut hasher = DefaultHasher::new();
            for rule in &rules {
                let place = &rule.provenance;
                (rule.fingerprint, &place.file, place.line).hash(&mut hasher);
            }
            hasher.finish()
        };
        self.view.read_host(RULES, host, answer);
        // rules for a service apply to its cluster set host as well
        if let Some(native) = hostname::of_domain(host, &self.identity.domain) {
            self.view.read_host(RULES, &native, || 0);
        }
        rules
    }
}

/// Blocks in effect for one port and subset. A block replaces the inherited one as a whole; port-level settings replace
/// all blocks, and missing ones get their defaults.
#[derive(Default)]
struct Effective<'a> {
    load_balancer: Option<&'a LoadBalancer>,
    connection_pool: Option<&'a ConnectionPool>,
    outlier_detection: Option<&'a OutlierDetection>,
    retry_budget: Option<RetryBudget>,
    proxy_protocol: Option<ProxyProtocolVersion>,
    tls: Option<&'a ClientTls>,
}

impl<'a> Effective<'a> {
    fn of(base: Option<&'a TrafficPolicy>, subset: Option<&'a TrafficPolicy>, port: u16) -> Self {
        let mut effective = Self::default();
        for policy in [base, subset].into_iter().flatten() {
            effective.load_balancer = policy.load_balancer.as_deref().or(effective.load_balancer);
            effective.connection_pool = policy
                .connection_pool
                .as_deref()
                .or(effective.connection_pool);
            let outlier = policy.outlier_detection.as_deref();
            effective.outlier_detection = outlier.or(effective.outlier_detection);
            effective.retry_budget = policy.retry_budget.or(effective.retry_budget);
            effective.proxy_protocol = policy.proxy_protocol.or(effective.proxy_protocol);
            effective.tls = policy.tls.as_deref().or(effective.tls);
            if let Some(port) = policy.port(port) {
                effective.load_balancer = port.load_balancer.as_deref();
                effective.connection_pool = port.connection_pool.as_deref();
                effective.outlier_detection = port.outlier_detection.as_deref();
                effective.tls = port.tls.as_deref();
                // fields that a port cannot set are not inherited either
                effective.proxy_protocol = None;
            }
        }
        effective
    }

    /// Fills blocks that no rule has from the defaults of the mesh.
    fn or_of(mut self, mesh: &'a TrafficDefaults) -> Self {
        self.connection_pool = self.connection_pool.or(mesh.connection_pool.as_ref());
        let outlier = mesh.outlier_detection.as_ref();
        self.outlier_detection = self.outlier_detection.or(outlier);
        self
    }

    fn balance(&self, service: &Service, port: u16, identity: &Identity) -> Balance {
        balance::balance(
            self.load_balancer,
            self.outlier_detection,
            service,
            port,
            identity,
        )
    }

    /// Returns the limit of active retries. A retry budget takes precedence over `maxRetries`.
    fn retry_limit(&self) -> RetryLimit {
        let number = self.connection_pool.map(|pool| pool.http.retries_max);
        match (self.retry_budget, number) {
            (Some(budget), _) => RetryLimit::Share {
                basis_points: (budget.percent * 100.0).round() as u32,
                min: budget.retry_concurrency_min,
                interval: budget.interval,
                counts_unprocessed: true,
            },
            (None, Some(number)) if number < u32::MAX => RetryLimit::Count(number),
            _ => RetryLimit::default(),
        }
    }

    fn pool(&self, mesh: &TrafficDefaults) -> PoolSettings {
        let proxy_protocol = self.proxy_protocol.map(|version| match version {
            ProxyProtocolVersion::V1 => ProxyProtocol::V1,
            ProxyProtocolVersion::V2 => ProxyProtocol::V2,
        });
        let tcp = self.connection_pool.map(|pool| &pool.tcp);
        let mut default = PoolSettings {
            proxy_protocol,
            tcp_keepalive: tcp_keepalive(tcp.and_then(|tcp| tcp.keepalive), mesh.keepalive),
            ..PoolSettings::default()
        };
        let connect_timeout = tcp.and_then(|tcp| tcp.connect_timeout);
        if let Some(timeout) = connect_timeout.or(mesh.connect_timeout) {
            default.connect_timeout = timeout;
        }
        if mesh.upgrades_http2 {
            default.speaks = HttpVersionPolicy::Http2;
        }
        let Some(pool) = self.connection_pool else {
            return default;
        };
        PoolSettings {
            limits: Limits {
                connections: pool.tcp.connections_max,
                pending: pool.http.pending_requests_max,
                requests: pool.http.requests_max,
            },
            requests_per_connection_max: pool.http.requests_per_connection_max,
            connection_duration_max: pool.tcp.connection_duration_max,
            streams_max: pool.http.concurrent_streams_max,
            speaks: speaks(pool, default.speaks),
            keep_alive: pool.http.http2_keep_alive.map(|asked| KeepAlive {
                interval: asked.interval,
                timeout: asked.timeout,
            }),
            // without an idle timeout, connections may stay idle
            tcp_idle_timeout: Some(pool.tcp.idle_timeout.unwrap_or(Duration::MAX)),
            idle_timeout: pool.http.idle_timeout.unwrap_or(default.idle_timeout),
            ..default
        }
    }
}

/// Returns the probes of a rule; the mesh has fields that the rule lacks.
fn tcp_keepalive(rule: Option<Probes>, mesh: Option<Probes>) -> Option<TcpKeepalive> {
    let (own, other) = (rule.or(mesh)?, mesh.unwrap_or_default());
    Some(TcpKeepalive {
        time: own.time.or(other.time),
        interval: own.interval.or(other.interval),
        probes: own.probes.or(other.probes),
    })
}

/// Returns the protocol to endpoints. `useClientProtocol` takes precedence over `h2UpgradePolicy`.
fn speaks(pool: &ConnectionPool, mesh: HttpVersionPolicy) -> HttpVersionPolicy {
    match pool.http.upgrade {
        _ if pool.http.use_client_protocol => HttpVersionPolicy::AsClient,
        UpgradePolicy::Default => mesh,
        UpgradePolicy::DoNotUpgrade => HttpVersionPolicy::Declared,
        UpgradePolicy::Upgrade => HttpVersionPolicy::Http2,
    }
}
