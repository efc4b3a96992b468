//! Providers that policies of action CUSTOM name, with the clusters of their services.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use config_loader::resource::istio::AuthorizationPolicy;
use config_loader::resource::istio::authorization_policy::Action;
use config_loader::{ObjectRef, ResourceSet};
use http::uri::Scheme;
use http::{HeaderValue, Uri};

use crate::compile::Inputs;
use crate::compile::authorization::KeptRules;
use crate::compile::clusters::{Clusters, name};
use crate::compile::security::selected;
use crate::identity::{Identity, NamedService};
use crate::snapshot::{Listener, ListenerKey, ListenerPolicies, Provider, ServiceCluster};

/// Services that are asked about requests.
pub(in crate::compile) struct Asked {
    /// Providers of external authorization, by name.
    pub(in crate::compile) providers: BTreeMap<Arc<str>, Provider>,
    /// Service that counts rate limits over all proxies.
    pub(in crate::compile) rate_limit_service: Option<ServiceCluster>,
    /// Services of the mesh that serve key sets, by URL.
    pub(in crate::compile) key_set_services: BTreeMap<Arc<str>, ServiceCluster>,
}

/// Returns the services that policies name, those of the proxy and those of single listeners.
pub(in crate::compile) fn asked(
    rules: &KeptRules,
    (policies, listeners): (&ListenerPolicies, &BTreeMap<ListenerKey, Arc<Listener>>),
    inputs: &Inputs<'_>,
    clusters: &mut Clusters<'_>,
) -> Asked {
    let identity = inputs.identity;
    let of_listeners = listeners.values().filter_map(|one| one.policies.as_deref());
    let tokens = [policies].into_iter().chain(of_listeners);
    let tokens = tokens.flat_map(|one| one.authentication.iter());
    let urls = tokens.flat_map(|one| one.remote.iter().map(|keys| &keys.url));
    Asked {
        providers: providers(rules, identity, clusters),
        key_set_services: key_set_services(urls, identity, clusters),
        rate_limit_service: rate_limit_service(identity, clusters),
    }
}

/// Returns the providers of the mesh configuration that policies name. A name without a provider is missing, and so are
/// all names if there may be only one: what their policies select is denied.
fn providers(
    rules: &KeptRules,
    identity: &Identity,
    clusters: &mut Clusters<'_>,
) -> BTreeMap<Arc<str>, Provider> {
    let policies = rules.all().flat_map(|one| [&one.http, &one.tcp]);
    let custom: Vec<_> = policies.flat_map(|one| &*one.custom).collect();
    let mut providers = BTreeMap::new();
    let mut names = custom.iter().map(|(name, _)| name);
    let first = names.next();
    if identity.mesh.one_provider && names.any(|name| Some(name) != first) {
        return providers;
    }
    for (wanted, _) in custom {
        let mut known = identity.mesh_config.authorizers.iter();
        let known = known.find(|known| known.name == *wanted);
        if let Some(settings) = known
            && !providers.contains_key(wanted)
            && let Some(service) =
                service_cluster(&settings.host, settings.port, &identity.namespace, clusters)
        {
            let settings = Arc::clone(settings);
            providers.insert(Arc::clone(wanted), Provider { settings, service });
        }
    }
    providers
}

/// Returns the service that counts rate limits over all proxies, if there is one.
fn rate_limit_service(identity: &Identity, clusters: &mut Clusters<'_>) -> Option<ServiceCluster> {
    let NamedService {
        namespace,
        host,
        port,
    } = identity.rate_limit_service.as_ref()?;
    let namespace = namespace.as_deref().unwrap_or(&identity.namespace);
    service_cluster(host, *port, namespace, clusters)
}

/// Returns the services whose hosts these URLs name, by URL. Only plain HTTP: the server of an https URL proves its name, which
/// mutual TLS within the mesh would not.
fn key_set_services<'a>(
    urls: impl Iterator<Item = &'a Arc<str>>,
    identity: &Identity,
    clusters: &mut Clusters<'_>,
) -> BTreeMap<Arc<str>, ServiceCluster> {
    let services = urls.filter_map(|url| {
        let uri: Uri = url.parse().ok()?;
        let port = uri.port_u16().unwrap_or(80);
        let (host, authority) = (uri.host()?, uri.authority()?);
        if uri.scheme() != Some(&Scheme::HTTP) || host.parse::<IpAddr>().is_ok() {
            return None;
        }
        let service = service_cluster(host, port, &identity.namespace, clusters)?;
        let authority = HeaderValue::from_str(authority.as_str()).ok()?;
        Some((
            Arc::clone(url),
            ServiceCluster {
                authority,
                ..service
            },
        ))
    });
    services.collect()
}

/// Returns the provider of a policy that the mesh configuration does not have, if there is one.
pub fn unknown_provider<'a>(
    policy: &'a AuthorizationPolicy,
    identity: &Identity,
) -> Option<&'a str> {
    let Action::Custom(name) = &policy.action else {
        return None;
    };
    let mut known = identity.mesh_config.authorizers.iter();
    let is_known = known.any(|known| known.name == *name);
    (!is_known).then_some(name)
}

/// Iterates over the policies of a proxy whose provider the mesh configuration does not have, each with that provider.
pub fn unknown_providers<'a>(
    resources: &'a ResourceSet,
    identity: &'a Identity,
) -> impl Iterator<Item = (&'a ObjectRef, &'a str)> {
    let policies = selected(resources, identity);
    policies.filter_map(|policy| Some((&policy.id, unknown_provider(&policy.spec, identity)?)))
}

/// Returns the cluster of a service that the proxy calls; `None` if the host cannot be an authority.
pub(in crate::compile) fn service_cluster(
    host: &str,
    port: u16,
    namespace: &str,
    clusters: &mut Clusters<'_>,
) -> Option<ServiceCluster> {
    let authority = HeaderValue::from_str(host).ok()?;
    let host = clusters.destination(host, namespace);
    let (_, cluster) = clusters.need(&name(port, "", &host));
    Some(ServiceCluster { cluster, authority })
}
