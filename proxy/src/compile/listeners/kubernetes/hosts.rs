//! Virtual hosts of HTTP and HTTPS listeners.
//!
//! Each has the rules of the routes with exactly its host. A change of rules makes only the virtual hosts of their route
//! again; one of hosts or parents goes through all of the listener.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::ObjectRef;
use config_loader::catalog::gateway_api::GatewayRoute;

use super::{Entry, ListenerCompiler};
use crate::compile::clusters::Clusters;
use crate::compile::listeners::kept_hosts::{HostPart, KeptHosts, patched};
use crate::compile::rules::Compiled;
use crate::compile::rules::gateway_routes::{Attachment, Parent, RouteCompiler};
use crate::snapshot::{Addresses, HttpHosts, VirtualHost};

/// Virtual host of a listener.
struct Part<'c, 'g, 'a> {
    name: Arc<str>,
    /// Listener that the host belongs to.
    entry: &'c Entry<'g, 'a>,
    /// Routes with exactly this host, the oldest first.
    routes: &'c [ObjectRef],
}

/// Returns a host and the wildcards that cover it, the narrowest first.
fn covering(host: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let labels = host.strip_prefix("*.").unwrap_or(host);
    let dots = labels.match_indices('.').map(|(dot, _)| dot);
    let wider = dots.map(move |dot| Cow::Owned(format!("*{}", &labels[dot..])));
    let any = (host != "*").then_some(Cow::Borrowed("*"));
    [Cow::Borrowed(host)].into_iter().chain(wider).chain(any)
}

impl<'c, 'g, 'a> ListenerCompiler<'c, 'g, 'a> {
    /// Returns the virtual hosts of some listeners of the address.
    pub(super) fn hosts(
        &self,
        id: &str,
        entries: &'c [Entry<'g, 'a>],
        before: Option<&Arc<HttpHosts>>,
        clusters: &mut Clusters<'_>,
    ) -> Arc<HttpHosts> {
        let name = format!("{:?} gateway {id}", self.key);
        let mut kept = KeptHosts::take(name, clusters).sharing();
        let inputs = clusters.inputs(self.fingerprint(entries));
        let patched = before.filter(|_| kept.is_list_kept(inputs, clusters));
        let patched = patched.and_then(|before| self.patch(before, &mut kept, clusters));
        let is_patched = patched.is_some();
        let hosts = patched.unwrap_or_else(|| {
            let parts = kept.list(inputs, clusters, || self.parts(entries));
            self.all(&parts, before, &mut kept, clusters)
        });
        kept.put(is_patched, clusters);
        hosts
    }

    /// Returns the hash of what the list of virtual hosts follows from.
    fn fingerprint(&self, entries: &[Entry<'g, 'a>]) -> u64 {
        let mut hasher = DefaultHasher::new();
        let hostnames = self.entries.iter().map(|entry| entry.served.hostname());
        hostnames.for_each(|name| name.hash(&mut hasher));
        for entry in entries {
            entry.gateway.id_of(entry.served).hash(&mut hasher);
            let client = entry.gateway.client_secret();
            let client = client.map(|client| (&client.namespace, &client.name));
            let routes = self.attached.of(entry.gateway, entry.served);
            (client, routes.map(|routes| routes.hash)).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Returns the virtual hosts of before, with those made again that the change touches; `None` if the list differs.
    fn patch(
        &self,
        before: &Arc<HttpHosts>,
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Option<Arc<HttpHosts>> {
        let mut made = BTreeMap::new();
        for name in kept.touched() {
            let number = before.number(&name)?;
            let part = self.part(name)?;
            let host = self.virtual_host(&part, Some(before), kept, clusters)?;
            made.insert(number, host);
        }
        Some(patched(before, made, clusters))
    }

    /// Returns all virtual hosts; those of before if none differs. `parts` are sorted by name.
    fn all(
        &self,
        parts: &[Part<'c, 'g, 'a>],
        before: Option<&Arc<HttpHosts>>,
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Arc<HttpHosts> {
        let made = parts.iter();
        let made = made.filter_map(|part| self.virtual_host(part, before, kept, clusters));
        let virtual_hosts: Vec<Arc<VirtualHost>> = made.collect();
        let wider = wider(parts);
        let is_same = |before: &&Arc<HttpHosts>| {
            let mut pairs = before.virtual_hosts.iter().zip(&virtual_hosts);
            before.virtual_hosts.len() == virtual_hosts.len()
                && before.wider == wider
                && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
        };
        match before.filter(is_same) {
            Some(before) => Arc::clone(before),
            None => {
                let hosts = HttpHosts::new(virtual_hosts, Addresses::default(), None);
                Arc::new(hosts.with_wider(wider))
            }
        }
    }

    /// Returns the virtual hosts of listeners by name: that of each listener, and one for each host of its routes.
    fn parts(&self, entries: &'c [Entry<'g, 'a>]) -> Vec<Part<'c, 'g, 'a>> {
        let mut hosts: BTreeMap<Arc<str>, Part<'_, '_, '_>> = BTreeMap::new();
        for entry in entries {
            let routes = self.attached.of(entry.gateway, entry.served).into_iter();
            let attached = routes.flat_map(|routes| routes.by_host.keys().cloned());
            for name in attached.chain([entry.served.hostname().into()]) {
                let part = self.part(name);
                let part = part.filter(|part| std::ptr::eq(part.entry, entry));
                hosts.extend(part.map(|part| (Arc::clone(&part.name), part)));
            }
        }
        hosts.into_values().collect()
    }

    /// Returns the virtual host for a host, which belongs to the listener with the most specific hostname; `None` if no
    /// listener has it.
    fn part(&self, name: Arc<str>) -> Option<Part<'c, 'g, 'a>> {
        let mut closest = covering(&name);
        let entry = *closest.find_map(|hostname| self.by_hostname.get(&*hostname))?;
        let attached = self.attached.of(entry.gateway, entry.served);
        let routes = attached.and_then(|routes| routes.by_host.get(&name));
        let routes = routes.map_or(&[][..], Vec::as_slice);
        drop(closest);
        Some(Part {
            name,
            entry,
            routes,
        })
    }

    fn virtual_host(
        &self,
        part: &Part<'_, '_, '_>,
        before: Option<&Arc<HttpHosts>>,
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Option<Arc<VirtualHost>> {
        let mut hasher = DefaultHasher::new();
        let client = part.entry.gateway.client_secret();
        let client = client.map(|client| (&client.namespace, &client.name));
        (self.key, client, part.routes).hash(&mut hasher);
        let host = HostPart {
            name: Arc::clone(&part.name),
            is_grpc_web: false,
            inputs: hasher.finish(),
            before: before.and_then(|before| before.named(&part.name)),
        };
        kept.virtual_host(host, clusters, |clusters| Some(self.routes(part, clusters)))
    }

    /// Returns the routes of a virtual host by precedence.
    fn routes(&self, part: &Part<'_, '_, '_>, clusters: &mut Clusters<'_>) -> Vec<Compiled> {
        let mut compiled = Vec::new();
        for (age, id) in part.routes.iter().enumerate() {
            let Some(route) = GatewayRoute::find(clusters.view(), id) else {
                continue;
            };
            let compiler = RouteCompiler {
                attachment: Attachment { route, age },
                parent: Parent::Listener(self.port),
                domain: self.domain,
                client: part.entry.gateway.client_secret(),
            };
            compiler.compile(clusters, &mut compiled);
        }
        compiled.sort_by(|(one, _), (other, _)| one.cmp(other));
        compiled.into_iter().map(|(_, compiled)| compiled).collect()
    }
}

/// Returns for each virtual host the number of the next wider one of its listener; none if there are none at all.
fn wider(parts: &[Part<'_, '_, '_>]) -> Arc<[Option<u32>]> {
    let numbers = parts.iter().map(|part| {
        let number = |host: Cow<'_, str>| {
            let found = parts.binary_search_by(|part| (*part.name).cmp(&host));
            found.ok()
        };
        let next = covering(&part.name).skip(1).find_map(number)?;
        // a wider listener has no part in the hosts of this one
        let is_own = std::ptr::eq(parts[next].entry, part.entry);
        u32::try_from(next).ok().filter(|_| is_own)
    });
    let numbers: Arc<[Option<u32>]> = numbers.collect();
    match numbers.iter().any(Option::is_some) {
        true => numbers,
        false => Arc::default(),
    }
}
