//! Handling of a workload's traffic to destinations that no resource names.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use config_loader::resource::Object;
use config_loader::resource::istio::{Destination as RawDestination, Sidecar};
use http::StatusCode;

use crate::compile::clusters::special::{BLACK_HOLE, PASSTHROUGH};
use crate::compile::clusters::{self, Clusters};
use crate::compile::provenance::provenance_of;
use crate::identity::{Identity, UnknownDestinations};
use crate::snapshot::{Destination, Route, VirtualHost};
use traffic::cluster::Split;
use traffic::filter::{Action, DirectResponse, RouteFilters};
use traffic::provenance::Provenance;
use traffic::registry::ClusterId;
use traffic::route::{Conditions, Rule, Table};

/// Handling of traffic to destinations that no resource names.
pub(super) struct Unknown<'a> {
    /// Whether this traffic is allowed.
    is_allowed: bool,
    /// Service that the traffic goes to; `None` sends it to the address that the client dialed.
    egress_proxy: Option<&'a RawDestination>,
    /// Namespace that resolves the name of the egress proxy.
    namespace: &'a str,
    /// Location of this setting.
    pub(super) provenance: Provenance,
}

impl<'a> Unknown<'a> {
    /// Returns the setting of the Sidecar, else that of the mesh.
    pub(super) fn of(sidecar: Option<&'a Arc<Object<Sidecar>>>, identity: &'a Identity) -> Self {
        let written = sidecar.and_then(|object| Some((object, object.spec.outbound.as_ref()?)));
        match written {
            Some((object, policy)) => Self {
                is_allowed: policy.allow_any,
                egress_proxy: policy.egress_proxy.as_ref(),
                namespace: &object.id.namespace,
                provenance: provenance_of(object.as_ref(), policy.line.0),
            },
            None => Self {
                is_allowed: identity.mesh.unknown_destinations == UnknownDestinations::AllowAny,
                egress_proxy: None,
                namespace: &identity.namespace,
                provenance: Provenance {
                    object: "--outbound-traffic-policy".into(),
                    file: "".into(),
                    line: 0,
                },
            },
        }
    }

    /// Returns the destination of this traffic.
    pub(super) fn destination(&self, port: u16, clusters: &mut Clusters<'_>) -> Destination {
        let (name, cluster) = self.cluster(port, clusters);
        Destination {
            name,
            cluster,
            position: 0,
            provenance: self.provenance.clone(),
        }
    }

    fn cluster(&self, port: u16, clusters: &mut Clusters<'_>) -> (Arc<str>, ClusterId) {
        match self.egress_proxy.filter(|_| self.is_allowed) {
            Some(proxy) => {
                let host = clusters
                    .destination(&proxy.host, self.namespace)
                    .into_owned();
                let port = clusters.port(&host, proxy.port, port);
                let subset = proxy.subset.as_deref().unwrap_or("");
                clusters.need(&clusters::name(port, subset, &host))
            }
            None if self.is_allowed => clusters.special(PASSTHROUGH),
            None => clusters.special(BLACK_HOLE),
        }
    }

    /// Returns the virtual host for requests whose host no service has; that of the previous snapshot if it is the
    /// same.
    pub(super) fn virtual_host(
        &self,
        port: u16,
        before: Option<&Arc<VirtualHost>>,
        clusters: &mut Clusters<'_>,
    ) -> Arc<VirtualHost> {
        let destination = self.destination(port, clusters);
        let mut hasher = DefaultHasher::new();
        (self.is_allowed, &destination.name, &self.provenance).hash(&mut hasher);
        let fingerprint = hasher.finish();
        if let Some(before) = before.filter(|before| before.fingerprint == fingerprint) {
            return Arc::clone(before);
        }
        let mut filters = RouteFilters::default();
        let name: Arc<str> = match self.is_allowed {
            true => "allow_any".into(),
            false => {
                let refused = DirectResponse::new(StatusCode::BAD_GATEWAY, Bytes::new());
                filters.action = Action::DirectResponse(Box::new(refused));
                "block_all".into()
            }
        };
        filters.retry = clusters.mesh_retries().filter(|_| self.is_allowed).cloned();
        let rule = Rule {
            name: Arc::clone(&name),
            conditions: Conditions::default(),
            provenance: self.provenance.clone(),
        };
        let route = Route {
            name,
            provenance: self.provenance.clone(),
            stats: None,
            rule_stats: None,
            filters,
            split: Split::build(vec![(1, destination)]),
            mirrors: None,
            shares: Box::default(),
        };
        Arc::new(VirtualHost {
            name: "*".into(),
            table: Table::compile(vec![rule]),
            routes: Arc::new([route]),
            is_grpc_web: false,
            cause: None,
            fingerprint,
        })
    }
}
