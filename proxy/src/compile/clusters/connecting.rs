//! Connection settings of the endpoints of a cluster, with the TLS settings of each.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use config_loader::catalog::Workload as PolicyWorkload;

use crate::compile::clusters::Clusters;
use crate::compile::clusters::Making;
use crate::compile::policies::client_tls::Purpose;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Workload;
use crate::pool::{HttpVersionPolicy, PoolSettings, Source};
use crate::snapshot::Direction;
use traffic::cluster::EndpointTls;

/// Connection settings of a cluster.
pub(in crate::compile) struct Connecting {
    pub pool: PoolSettings,
    /// TLS of endpoints that do not use the cluster's TLS.
    pub tls: TlsOf,
    /// Hash that changes with any of the TLS settings.
    pub serial: u64,
}

/// TLS settings by the facts of a workload. The keys are addresses: workloads must keep the facts alive.
pub(in crate::compile) type TlsOf = HashMap<*const Facts, EndpointTls>;

fn serial(pool: &PoolSettings, each: &[EndpointTls]) -> u64 {
    let mut hasher = DefaultHasher::new();
    pool.tls.as_ref().map(|tls| tls.serial()).hash(&mut hasher);
    for tls in each {
        let number = match tls {
            EndpointTls::OfCluster => 0,
            EndpointTls::Own(tls) => tls.serial().wrapping_add(2),
            EndpointTls::Plain => 1,
        };
        number.hash(&mut hasher);
    }
    hasher.finish()
}

impl Clusters<'_> {
    /// Returns the source address of connections that would otherwise be captured again on their way to the workload.
    fn source(&self, direction: Direction) -> Option<Source> {
        let sockets = self.identity.sockets;
        let captured = sockets.inbound.is_some() && !sockets.proxy_header;
        let from = match sockets.is_transparent {
            true => Source::Client,
            false => Source::Proxy,
        };
        (direction == Direction::Inbound && captured).then_some(from)
    }

    /// Returns the connection settings for these workloads.
    pub(in crate::compile) fn connecting(
        &self,
        making: &Making<'_>,
        members: &[&Workload],
    ) -> Connecting {
        let Making {
            service,
            port,
            policy,
            base,
            is_passed_on,
            direction,
            ..
        } = *making;
        let mut pool = policy.pool.clone();
        let keepalive = members.iter().find_map(|member| member.keepalive);
        pool.tcp_keepalive = pool.tcp_keepalive.or(keepalive);
        pool.source = self.source(direction);
        if is_passed_on {
            let (serial, tls) = (serial(&pool, &[]), TlsOf::new());
            return Connecting { pool, tls, serial };
        }
        // sidecars of mesh workloads accept HTTP/2, whatever their port declares
        let is_behind = |member: &&Workload| member.behind.is_some();
        let all_behind = !members.is_empty() && members.iter().all(is_behind);
        if all_behind && port.carries_paths && pool.speaks == HttpVersionPolicy::Declared {
            pool.speaks = HttpVersionPolicy::Http2;
        }
        let takes_plain_text = |facts: &Facts| {
            let workload = PolicyWorkload {
                namespace: &service.namespace,
                labels: &facts.labels,
                root_namespace: &self.identity.root_namespace,
            };
            let port = facts.port(port);
            port.is_some_and(|port| self.policies.disables_mesh_tls(workload, port))
        };
        let purpose = Purpose {
            takes_plain_text: &takes_plain_text,
            identity: self.identity,
            service,
            cluster: base,
            members,
            asked: policy.tls.as_ref(),
            store: self.certificates,
        };
        let of_cluster = purpose.tls();
        pool.tls = of_cluster.clone().map(|tls| tls as _);
        let mut facts: Vec<&Facts> = members.iter().map(|member| &*member.facts).collect();
        facts.dedup_by_key(|facts| std::ptr::from_ref(*facts));
        let each = |facts: &&Facts| purpose.of(facts, of_cluster.as_ref(), port);
        let mut each: Vec<EndpointTls> = facts.iter().map(each).collect();
        let is_own = |tls: &EndpointTls| *tls != EndpointTls::OfCluster;
        if !each.is_empty() && each.iter().all(is_own) {
            pool.tls = None;
        }
        if pool.tls.is_none() {
            let plain = each.iter_mut().filter(|tls| **tls == EndpointTls::Plain);
            plain.for_each(|tls| *tls = EndpointTls::OfCluster);
        }
        let serial = serial(&pool, &each);
        let tls = facts.into_iter().map(std::ptr::from_ref).zip(each);
        let tls = tls.filter(|(_, tls)| is_own(tls)).collect();
        Connecting { pool, tls, serial }
    }
}
