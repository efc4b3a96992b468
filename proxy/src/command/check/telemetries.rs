//! Findings about Telemetries and the providers that they name in the mesh configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::catalog::Services;
use config_loader::diagnostic::codes::istio::{TL007, TL010, TL012};
use config_loader::resource::Object;
use config_loader::resource::istio::{ProviderKind, Telemetry, Tracer};
use config_loader::{Diagnostic, Loaded, NamedText};

use super::about::warning_about;
use crate::compile::unknown_telemetry_providers;
use crate::identity::Identity;

/// Adds the findings.
pub(super) fn check(loaded: &mut Loaded, text: Option<&NamedText>, identity: &Identity) {
    let services = Services::new(&loaded.set, &Arc::from(&*identity.domain));
    let telemetries = loaded.set.telemetries.values();
    let mut found: Vec<Diagnostic> = telemetries
        .flat_map(|telemetry| {
            let mut found = of_telemetry(telemetry, &services, identity);
            found.extend(without_provider(telemetry, loaded, identity));
            found
        })
        .collect();
    config_loader::fill_source_lines_with(&mut found, text);
    loaded.diagnostics.extend(found);
}

fn of_telemetry(
    telemetry: &Object<Telemetry>,
    services: &Services,
    identity: &Identity,
) -> Vec<Diagnostic> {
    let mesh = &identity.mesh_config;
    let names = unknown_telemetry_providers(&telemetry.spec, mesh);
    let unknown = names.into_iter().map(|name| {
        let message = format!("there is no provider `{name}`: the entry has no effect");
        let mut found = warning_about(telemetry, TL010, &message);
        found.help("add it to `extensionProviders` of the file of --mesh-config");
        found
    });
    let mut found: Vec<Diagnostic> = unknown.collect();
    let tracers = telemetry.spec.tracing.iter();
    let tracers = tracers.filter_map(|entry| entry.provider.as_ref());
    let logs = telemetry.spec.access_logging.iter();
    let named = tracers.chain(logs.flat_map(|entry| &entry.providers));
    for name in named.collect::<BTreeSet<&Arc<str>>>() {
        let kind = mesh.provider(name);
        let receiver = kind.as_ref().and_then(ProviderKind::receiver);
        if let Some(problem) = receiver.and_then(|one| problem(one, services)) {
            let message = format!("provider `{name}` gets nothing: {problem}");
            let mut wrong = warning_about(telemetry, TL012, &message);
            wrong.help("write the host and the port of a service as resources have it; NAMESPACE/HOST is one of several");
            found.push(wrong);
        }
    }
    found
}

/// Returns the finding about entries that name no provider and inherit none: from the mesh, or from a Telemetry about more workloads.
fn without_provider(
    telemetry: &Object<Telemetry>,
    loaded: &Loaded,
    identity: &Identity,
) -> Option<Diagnostic> {
    let mesh = &identity.mesh_config;
    let defaults = &mesh.default_providers;
    let is_wider = |other: &&Object<Telemetry>| {
        let namespace = &other.id.namespace;
        let covers =
            *namespace == telemetry.id.namespace || **namespace == *identity.root_namespace;
        covers && other.spec.selects_all()
    };
    let all = || loaded.set.telemetries.values().map(|one| &**one);
    let wider = || all().filter(is_wider).chain([telemetry]);
    let traced = |one: &Object<Telemetry>| {
        one.spec
            .tracing
            .iter()
            .any(|entry| entry.provider.is_some())
    };
    let measured = |one: &Object<Telemetry>| {
        one.spec
            .metrics
            .iter()
            .any(|entry| !entry.providers.is_empty())
    };
    let spec = &telemetry.spec;
    let (what, field, fix) =
        if !spec.tracing.is_empty() && defaults.tracing.is_empty() && !wider().any(traced) {
            ("traces", "tracing", ", or a collector by --otlp-endpoint")
        } else if !spec.metrics.is_empty() && defaults.metrics.is_empty() && !wider().any(measured)
        {
            ("metrics", "metrics", ", such as `prometheus`")
        } else {
            return None;
        };
    let message = format!("an entry about {what} names no provider, and the mesh has no default");
    let mut without = warning_about(telemetry, TL007, &message);
    without.help(format!(
        "name a provider in the entry or in `defaultProviders.{field}`{fix}"
    ));
    mesh.is_given.then_some(without)
}

/// Reason why a provider is not one service of the registry.
fn problem(tracer: &Tracer, services: &Services) -> Option<String> {
    let (host, port) = (&tracer.host, tracer.port);
    let sources = services.find(host).map_or(&[][..], |entry| entry.sources());
    let wanted = tracer.namespace.as_deref();
    let fits = |namespace: &str| wanted.is_none_or(|wanted| wanted == namespace);
    let sources: Vec<_> = sources.iter().filter(|one| fits(one.namespace())).collect();
    let namespaces: BTreeSet<_> = sources.iter().map(|one| one.namespace()).collect();
    let mut ports = sources.iter().flat_map(|one| one.ports());
    match namespaces.len() {
        0 => Some(format!("no resource describes `{host}`")),
        1 if ports.all(|(number, _)| number != port) => {
            Some(format!("`{host}` has no port {port}"))
        }
        1 => None,
        _ => {
            let all: Vec<_> = namespaces.into_iter().collect();
            Some(format!(
                "several namespaces have `{host}`: {}",
                all.join(", ")
            ))
        }
    }
}
