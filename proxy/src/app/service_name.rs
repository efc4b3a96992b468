//! Name of the service in traces that no user has given, as in Istio.

use config_loader::resource::istio::ServiceNameForm;

use super::settings::Settings;

/// Labels with the canonical name of a workload, the first one counts.
pub(super) const CANONICAL_NAME: [&str; 3] = [
    "service.istio.io/canonical-name",
    "app.kubernetes.io/name",
    "app",
];

/// Attribute of the resource that has the name.
pub(super) const ATTRIBUTE: &str = "service.name";

/// Name of a workload that nothing names.
const UNKNOWN: &str = "unknown_service";

/// Value of `serviceCluster` that Istio sets where the user has not.
const DEFAULT_CLUSTER: &str = "istio-proxy";

/// Returns the name by `serviceCluster` and `tracingServiceName`, else by the workload; where a provider says so, by the
/// semantic conventions of OpenTelemetry.
pub(super) fn of_workload(settings: &Settings) -> String {
    let identity = &settings.identity;
    if identity.mesh_config.names_services_by_conventions() {
        return by_conventions(settings);
    }
    let proxies = &identity.mesh_config.proxies;
    let given = proxies.service_cluster.as_deref();
    if let Some(name) = given.filter(|name| *name != DEFAULT_CLUSTER) {
        return name.to_owned();
    }
    let label = |name: &str| identity.labels.get(name).map(String::as_str);
    let workload = settings
        .exchange
        .environment
        .get("ISTIO_META_WORKLOAD_NAME");
    let workload = || workload.map(String::as_str);
    let name = match proxies.service_name {
        None | Some(ServiceNameForm::AppAndNamespace) => label("app"),
        Some(_) => CANONICAL_NAME.into_iter().find_map(label),
    };
    let name = name.or_else(workload).unwrap_or(DEFAULT_CLUSTER);
    match proxies.service_name {
        Some(ServiceNameForm::Canonical) => name.to_owned(),
        _ => format!("{name}.{}", identity.namespace),
    }
}

fn by_conventions(settings: &Settings) -> String {
    let labels = &settings.identity.labels;
    let environment = &settings.exchange.environment;
    let named = [
        settings.exports.annotated.get(ATTRIBUTE),
        labels.get("app.kubernetes.io/instance"),
        labels.get("app.kubernetes.io/name"),
        environment.get("ISTIO_META_WORKLOAD_NAME"),
        environment.get("POD_NAME"),
        environment.get("CONTAINER_NAME"),
    ];
    let mut named = named.into_iter().flatten().filter(|name| !name.is_empty());
    named.next().map_or(UNKNOWN, String::as_str).to_owned()
}
