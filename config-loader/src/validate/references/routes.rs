//! VirtualServices: destinations of their rules, and whether any traffic reaches the rules.

use std::borrow::Cow;
use std::collections::HashMap;

use super::finding::{SUGGESTIONS_MAX, location, nearest_host, warning};
use super::gateways::Gateways;
use super::implicit_ports::count;
use super::resolver::{Resolver, is_at_gateway};
use super::rules::{Rules, Sent};
use crate::catalog::{self, Seen, UnusableDelegate, hostname};
use crate::diagnostic::codes::references::{X275, X276, X277, X278, X279, X280, X281, X303, X325};
use crate::diagnostic::{Diagnostic, suggest};
use crate::kind::{Kind, ObjectRef};
use crate::resource::istio::{
    Delegate, Destination, GatewayRef, HttpAction, HttpRule, VirtualService,
};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

/// Resources that VirtualServices refer to, and the diagnostics about one VirtualService.
pub(super) struct Routes<'a> {
    set: &'a ResourceSet,
    resolver: Resolver<'a>,
    rules: &'a Rules,
    gateways: Gateways<'a>,
    found: Vec<Diagnostic>,
    suggestions: usize,
}

type Vs = Object<VirtualService>;

impl<'a> Routes<'a> {
    pub(super) fn new(
        set: &'a ResourceSet,
        resolver: Resolver<'a>,
        rules: &'a Rules,
    ) -> Routes<'a> {
        Routes {
            set,
            resolver,
            rules,
            gateways: Gateways::new(set),
            found: Vec::new(),
            suggestions: 0,
        }
    }

    /// Checks one VirtualService. Returns the diagnostics, and whether it names an unknown service.
    pub(super) fn check(&mut self, object: &Vs) -> (Vec<Diagnostic>, bool) {
        let suggestions = self.suggestions;
        self.check_object(object);
        let found = std::mem::take(&mut self.found);
        (found, self.suggestions > suggestions)
    }

    fn check_object(&mut self, object: &Vs) {
        let spec = &object.spec;
        for (index, gateway) in spec.gateways.iter().enumerate() {
            self.check_gateway(object, &gateway.value, gateway.line, &|| {
                format!("spec.gateways[{index}]")
            });
        }
        self.check_hosts(object);
        for (index, rule) in spec.http.iter().enumerate() {
            self.check_rule(object, rule, index);
        }
        for (index, rule) in spec.tls.iter().enumerate() {
            for (at, block) in rule.matches.iter().enumerate() {
                let gateways = block.gateways.iter().zip(&block.gateway_lines);
                let path = || format!("spec.tls[{index}].match[{at}]");
                self.check_match_gateways(object, gateways, &path);
            }
        }
        for (index, rule) in spec.tcp.iter().enumerate() {
            for (at, block) in rule.matches.iter().enumerate() {
                let gateways = block.gateways.iter().zip(&block.gateway_lines);
                let path = || format!("spec.tcp[{index}].match[{at}]");
                self.check_match_gateways(object, gateways, &path);
            }
        }
        let tls = spec.tls.iter().map(|rule| ("tls", &rule.route)).enumerate();
        let tcp = spec.tcp.iter().map(|rule| ("tcp", &rule.route)).enumerate();
        for (index, (kind, routes)) in tls.chain(tcp) {
            for (at, route) in routes.iter().enumerate() {
                let path = || format!("spec.{kind}[{index}].route[{at}].destination");
                self.check_destination(object, &route.destination, &path);
            }
        }
    }

    fn check_rule(&mut self, object: &Vs, rule: &HttpRule, index: usize) {
        for (at, block) in rule.matches.iter().enumerate() {
            let gateways = block.gateways.iter().zip(&block.gateway_lines);
            let path = || format!("spec.http[{index}].match[{at}]");
            self.check_match_gateways(object, gateways, &path);
        }
        match &rule.action {
            HttpAction::Delegate(delegate) => self.check_delegate(object, delegate, index),
            HttpAction::Route(routes) => {
                for (at, route) in routes.iter().enumerate() {
                    let path = || format!("spec.http[{index}].route[{at}].destination");
                    self.check_destination(object, &route.destination, &path);
                }
            }
            HttpAction::DirectResponse(_) | HttpAction::Redirect(_) => {}
        }
        if let Some(mirror) = &rule.mirror {
            self.check_destination(object, mirror, &|| format!("spec.http[{index}].mirror"));
        }
        for (at, mirror) in rule.mirrors.iter().enumerate() {
            let path = || format!("spec.http[{index}].mirrors[{at}].destination");
            self.check_destination(object, &mirror.destination, &path);
        }
    }

    fn check_destination(
        &mut self,
        object: &Vs,
        destination: &Destination,
        path: &dyn Fn() -> String,
    ) {
        let resolver = self.resolver;
        let namespace = resolver.namespace(object);
        let host = resolver.host(object, destination);
        let line = destination.line;
        let service = match resolver.services.find_from(&host, namespace) {
            Some(Seen::Hidden(by)) => {
                let found = hidden_service(object, destination, by, namespace, path);
                return self.found.push(found);
            }
            Some(service) => service,
            None => return self.unknown_service(object, destination, &host, path),
        };
        let ports = service.ports();
        if service.has_dialled_address(destination.port) && is_at_gateway(object) {
            let message = format!(
                "`{}` has resolution NONE, and a gateway does not know where its clients dialled; requests will get 502 NR",
                destination.host
            );
            let field = format!("{}.host", path());
            let mut diagnostic = warning(object, X303, line, field, message);
            diagnostic
                .help("write `resolution: DNS` in the ServiceEntry, or `STATIC` with endpoints");
            self.found.push(diagnostic);
        }
        if let Some((message, help)) = check_port(&ports, destination) {
            let line = match destination.port {
                Some(_) => destination.port_line,
                None => line,
            };
            let mut diagnostic = warning(object, X277, line, format!("{}.port", path()), message);
            diagnostic.help(help);
            self.found.push(diagnostic);
        }
        let sent = Sent {
            host: &host,
            service_namespace: service.sources().first().map(|source| source.namespace()),
            client: resolver.client(object),
        };
        let Some(subset) = destination
            .subset
            .as_ref()
            .filter(|subset| !self.rules.has_subset(sent, subset))
        else {
            return;
        };
        let message = format!(
            "subset `{subset}` of {} does not exist; requests will get 503 NC",
            destination.host
        );
        let line = destination.subset_line;
        let mut diagnostic = warning(object, X276, line, format!("{}.subset", path()), message);
        match suggest::nearest(subset, self.rules.subsets(sent)) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("define it in a DestinationRule for `{host}`")),
        };
        self.found.push(diagnostic);
    }

    fn unknown_service(
        &mut self,
        object: &Vs,
        destination: &Destination,
        host: &str,
        path: &dyn Fn() -> String,
    ) {
        let written = &destination.host;
        let message = format!("`{written}` is not a known service; requests will get 503 NC");
        let mut diagnostic = warning(
            object,
            X275,
            destination.line,
            format!("{}.host", path()),
            message,
        );
        self.suggestions += 1;
        let near = if self.suggestions <= SUGGESTIONS_MAX {
            nearest_host(self.resolver.services, host)
        } else {
            None
        };
        if let Some(near) = near {
            diagnostic.help(format!("did you mean `{near}`?"));
        } else if *host != **written {
            diagnostic.help(format!("the short name means `{host}`"));
        } else {
            diagnostic
                .help("write the full name of a Service, or describe the host in a ServiceEntry");
        }
        self.found.push(diagnostic);
    }

    /// Checks the gateways of the match block at `path`, each with its line.
    fn check_match_gateways<'g>(
        &mut self,
        object: &Vs,
        gateways: impl Iterator<Item = (&'g GatewayRef, &'g Line)>,
        path: &dyn Fn() -> String,
    ) {
        for (index, (gateway, line)) in gateways.enumerate() {
            let path = || format!("{}.gateways[{index}]", path());
            self.check_gateway(object, gateway, *line, &path);
        }
    }

    fn check_gateway(
        &mut self,
        object: &Vs,
        gateway: &GatewayRef,
        line: Line,
        path: &dyn Fn() -> String,
    ) {
        let GatewayRef::Named(name) = gateway else {
            return;
        };
        let known = &self.set.gateways;
        if known.contains_key(name) {
            return;
        }
        let mut diagnostic = warning(
            object,
            X278,
            line,
            path(),
            format!("gateway `{name}` does not exist"),
        );
        let elsewhere = known.keys().find(|known| known.name == name.name);
        let of_namespace = known
            .keys()
            .filter(|known| known.namespace == name.namespace);
        let similar = || suggest::nearest(&name.name, of_namespace.map(|known| &*known.name));
        if let Some(other) = elsewhere {
            diagnostic.help(format!("did you mean `{other}`?"));
        } else if let Some(similar) = similar() {
            diagnostic.help(format!("did you mean `{}/{similar}`?", name.namespace));
        } else {
            diagnostic.help(
                "write the name of a Gateway that there is, or add one of this name; one that is rejected does not count",
            );
        }
        self.found.push(diagnostic);
    }

    /// Warns of hosts that no gateway of the object serves, unless the object applies to the mesh.
    fn check_hosts(&mut self, object: &Vs) {
        let spec = &object.spec;
        let named = spec
            .gateways
            .iter()
            .filter_map(|gateway| match &gateway.value {
                GatewayRef::Named(name) => Some(name),
                GatewayRef::Mesh => None,
            });
        let existing: Vec<_> = named
            .filter(|name| self.set.gateways.contains_key(*name))
            .collect();
        if spec.is_for_mesh() || existing.is_empty() {
            return;
        }
        if existing.len() > 1 {
            self.check_idle_gateways(object);
        }
        for (index, host) in spec.hosts.iter().enumerate() {
            let full = self
                .resolver
                .naming
                .complete(&host.value, &object.id.namespace);
            if existing
                .iter()
                .any(|name| self.gateways.serves(name, &full, &object.id.namespace))
            {
                continue;
            }
            let names: Vec<String> = existing.iter().map(ToString::to_string).collect();
            let message = format!(
                "host `{}` is not served by gateway {}",
                host.value,
                names.join(" or ")
            );
            let mut diagnostic = warning(
                object,
                X279,
                host.line,
                format!("spec.hosts[{index}]"),
                message,
            );
            diagnostic.help(format!(
                "the gateway serves {}",
                self.gateways.hosts(existing[0]).join(", ")
            ));
            self.found.push(diagnostic);
        }
    }

    /// Warns of a gateway that serves none of the hosts, if there are several gateways.
    fn check_idle_gateways(&mut self, object: &Vs) {
        let naming = self.resolver.naming;
        for (index, gateway) in object.spec.gateways.iter().enumerate() {
            let GatewayRef::Named(name) = &gateway.value else {
                continue;
            };
            let mut hosts = object.spec.hosts.iter();
            let serves_one = hosts.any(|host| {
                let host = naming.complete(&host.value, &object.id.namespace);
                self.gateways.serves(name, &host, &object.id.namespace)
            });
            if serves_one || !self.set.gateways.contains_key(name) {
                continue;
            }
            let message = format!("gateway `{name}` serves none of the hosts");
            let field = format!("spec.gateways[{index}]");
            let mut diagnostic = warning(object, X325, gateway.line, field, message);
            let hosts = self.gateways.hosts(name).join(", ");
            diagnostic.help(format!(
                "the gateway serves {hosts}; remove it from the list, or add a host to it"
            ));
            self.found.push(diagnostic);
        }
    }

    fn check_delegate(&mut self, object: &Vs, delegate: &Delegate, index: usize) {
        let name = &delegate.name;
        let why = match catalog::delegate(self.set, name, &object.id.namespace) {
            Err(UnusableDelegate::Missing) => "there is no such VirtualService",
            Err(UnusableDelegate::HasHosts) => "it has hosts of its own",
            Err(UnusableDelegate::NotExported) => "it is not exported to this namespace",
            Ok(_) => return,
        };
        // one without a name was found before
        if name.name.is_empty() {
            return;
        }
        let message = format!("delegate `{name}` is not usable: {why}");
        let mut diagnostic = warning(
            object,
            X280,
            delegate.line,
            format!("spec.http[{index}].delegate"),
            message,
        );
        diagnostic
            .help("the rule is skipped: name a VirtualService without hosts that is exported here");
        self.found.push(diagnostic);
    }
}

/// Returns the diagnostic about a destination that is visible only in other namespaces.
fn hidden_service(
    object: &Vs,
    destination: &Destination,
    by: &ObjectRef,
    namespace: &str,
    path: &dyn Fn() -> String,
) -> Diagnostic {
    let host = &destination.host;
    let message =
        format!("`{host}` is not exported to namespace `{namespace}`; requests will get 503 NC");
    let field = format!("{}.host", path());
    let mut found = warning(object, X275, destination.line, field, message);
    let written = match by.kind {
        Kind::Service => "the annotation networking.istio.io/exportTo",
        _ => "exportTo",
    };
    found.help(format!("add `{namespace}` to {written} of {by}"));
    found
}

/// Returns the error of a destination's port, and its fix.
fn check_port(known_ports: &[(u16, &str)], destination: &Destination) -> Option<(String, String)> {
    let host = &destination.host;
    let known = |port: u16| known_ports.iter().any(|(number, _)| *number == port);
    let ports = || {
        let port = |(number, name): &(u16, &str)| format!("{number} {name}").trim_end().to_owned();
        let mut ports: Vec<String> = known_ports.iter().map(port).collect();
        ports.dedup();
        ports.join(", ")
    };
    match destination.port {
        _ if known_ports.is_empty() => None,
        Some(port) if !known(port) => Some((
            format!("{host} has no port `{port}`"),
            format!("its ports are {}", ports()),
        )),
        None if count(known_ports) > 1 => Some((
            format!("`{host}` has several ports, and the route names none"),
            format!("write port.number; its ports are {}", ports()),
        )),
        _ => None,
    }
}

/// Warns of hosts that an older visible VirtualService of the mesh already has.
pub(super) fn check_owners(set: &ResourceSet, domain: &str, found: &mut Vec<Diagnostic>) {
    let mut claims: HashMap<Cow<'_, str>, Vec<(&Vs, usize)>> =
        HashMap::with_capacity(set.virtual_services.len());
    for object in set
        .virtual_services
        .values()
        .filter(|object| object.spec.is_for_mesh())
    {
        for (index, host) in object.spec.hosts.iter().enumerate() {
            let host = hostname::complete(&host.value, &object.id.namespace, domain);
            claims.entry(host).or_default().push((object, index));
        }
    }
    for claims in claims.values_mut().filter(|claims| claims.len() > 1) {
        claims.sort_by(|(a, _), (b, _)| a.precedence().cmp(&b.precedence()));
        let mut owners: Vec<(&Vs, usize)> = Vec::new();
        for (object, index) in claims.iter().copied() {
            let mut earlier = owners.iter();
            let taken =
                earlier.find(|(owner, _)| owner.spec.export_to.covers(&object.spec.export_to));
            let Some((owner, at)) = taken else {
                owners.push((object, index));
                continue;
            };
            let host = &object.spec.hosts[index];
            let message = format!(
                "host `{}` belongs to {}; this entry is not used in the mesh",
                host.value, owner.id
            );
            let mut diagnostic = warning(
                object,
                X281,
                host.line,
                format!("spec.hosts[{index}]"),
                message,
            );
            diagnostic.help("put the rules into that one, or name a gateway under `gateways`");
            diagnostic.related(
                location(owner, owner.spec.hosts[*at].line),
                "the host is taken here",
            );
            found.push(diagnostic);
        }
    }
}

#[cfg(test)]
mod tests;
