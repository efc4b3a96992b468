//! Serves a directory of resources, with an echo service on every endpoint that is on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use config_loader::ResourceSet;
use config_loader::catalog::gateway_api::{CONTROLLER, Gateways};
use config_loader::catalog::{ROOT_NAMESPACE, View};
use config_loader::resource::core::Host;
use config_loader::resource::gloo::Backing;
use config_loader::resource::istio::{Bind, EndpointAddress, WorkloadEntry};

use crate::app::{Settings, unreadable};
use crate::command::backend::{self, Workload};
use crate::command::run::ServeArgs;
use crate::listener::socket::{probe, refusal};

/// Starts the backends and prints what to try.
pub(super) fn prepare(dir: &Path, cluster: &str, serve: &ServeArgs) -> Result<Settings, String> {
    let identity = super::site::gateway_identity(cluster.to_owned());
    let settings = serve.settings(vec![dir.to_owned()], identity)?;
    let loaded = config_loader::load_files(&settings.paths, config_loader::LoadOptions::default());
    if let Some(missing) = unreadable(&loaded.diagnostics) {
        return Err(format!("{}: {}", missing.location.file, missing.message));
    }
    for address in gateways(&loaded.set) {
        // the proxy itself would retry the bind while another process answers requests; a listener that is closed again
        // would reset clients that already wait for the demo
        probe(address).map_err(|error| {
            let why = refusal(address, &error);
            format!("the demo's gateway cannot listen on {address}: {why}")
        })?;
    }
    let backends = backends(&loaded.set);
    for (address, name) in &backends {
        let workload = Workload {
            service: name.clone(),
            ..Workload::default()
        };
        backend::spawn(workload, *address).map_err(|error| {
            format!("the demo's backend {name} cannot listen on {address}: {error}")
        })?;
    }
    introduce(dir, &backends);
    Ok(settings)
}

/// Returns the addresses of the HTTP servers of Istio's Gateways, and of all listeners of the Gateway API.
fn gateways(resources: &ResourceSet) -> BTreeSet<SocketAddr> {
    let gateways = resources.gateways.values();
    let servers = gateways.flat_map(|gateway| &gateway.spec.servers);
    let http = servers.filter(|server| server.protocol.is_http());
    let addresses = http.filter_map(|server| match server.bind {
        Bind::Default => Some((Ipv4Addr::UNSPECIFIED, server.port).into()),
        Bind::Ip(ip) => Some((ip, server.port).into()),
        Bind::Unix(_) => None,
    });
    let served = Gateways::of(View::from(resources), CONTROLLER);
    let listeners = served.by_address(ROOT_NAMESPACE, |gateway| gateway.addresses(&[]));
    addresses.chain(listeners.into_keys()).collect()
}

/// Returns the loopback addresses that the resources send traffic to, with the names of their backends: the version,
/// preceded by the app where there are several.
fn backends(resources: &ResourceSet) -> BTreeMap<SocketAddr, String> {
    let entries = resources.service_entries.values();
    let inline = entries.flat_map(|entry| {
        let ports = entry.spec.ports.iter();
        let ports = ports.map(|port| port.target_port.unwrap_or(port.number));
        let ports: Vec<u16> = ports.collect();
        let endpoints = entry.spec.endpoints.iter();
        endpoints.map(move |endpoint| (&**endpoint, ports.clone()))
    });
    let workloads = resources.workload_entries.values();
    let workloads = workloads.map(|workload| (&*workload.spec, Vec::new()));
    let local: Vec<_> = inline
        .chain(workloads)
        .flat_map(|(entry, ports)| local_addresses(entry, ports))
        .collect();
    let apps: BTreeSet<_> = local.iter().map(|(_, entry)| label(entry, "app")).collect();
    let named = local.into_iter().map(|(address, entry)| {
        let (app, version) = (label(entry, "app"), label(entry, "version"));
        let name = match (apps.len(), app, version) {
            (1, _, version) if !version.is_empty() => version.to_owned(),
            (_, "", "") => address.to_string(),
            (_, app, version) => format!("{app} {version}").trim().to_owned(),
        };
        (address, name)
    });
    members(resources).into_iter().chain(named).collect()
}

/// Returns the loopback addresses of ServiceImports, EndpointSlices and Destinations, with the names of their clusters
/// and zones.
fn members(resources: &ResourceSet) -> BTreeMap<SocketAddr, String> {
    let mut found = BTreeMap::new();
    let mut add = |host: &Host, port: u16, name: &str| match host {
        Host::Ip(ip) if ip.is_loopback() => {
            found.insert((*ip, port).into(), name.to_owned());
        }
        _ => (),
    };
    for import in resources.service_imports.values() {
        for endpoint in import.spec.ports.iter().flat_map(|port| &port.endpoints) {
            let target = &endpoint.target;
            add(&target.address, target.port, endpoint.cluster.name());
        }
    }
    for destination in resources.destinations.values() {
        let Backing::Kube(kube) = &destination.spec.backing else {
            continue;
        };
        for subset in &kube.endpoint_subsets {
            for (endpoint, port) in pairs(&subset.endpoints, &subset.ports) {
                add(&Host::Ip(endpoint.ip), port.port, &kube.service.cluster);
            }
        }
    }
    for slice in resources.endpoint_slices.values() {
        let cluster = slice.source_cluster().unwrap_or("local");
        for port in slice.spec.ports.iter().filter_map(|port| port.port) {
            for endpoint in &slice.spec.endpoints {
                let name = match &endpoint.zone {
                    Some(zone) => format!("{cluster} {zone}"),
                    None => cluster.to_owned(),
                };
                add(&endpoint.address, port, &name);
            }
        }
    }
    found
}

/// Returns the Cartesian product.
fn pairs<'a, A, B>(first: &'a [A], second: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    first
        .iter()
        .flat_map(move |one| second.iter().map(move |other| (one, other)))
}

/// Returns the loopback addresses of an endpoint. `ports` are those of its service, for an endpoint without ports.
fn local_addresses(
    entry: &WorkloadEntry,
    mut ports: Vec<u16>,
) -> impl Iterator<Item = (SocketAddr, &WorkloadEntry)> {
    let ip = match entry.address {
        EndpointAddress::Ip(ip) if ip.is_loopback() => Some(ip),
        _ => None,
    };
    if !entry.ports.is_empty() {
        ports = entry.ports.values().copied().collect();
    }
    let addresses = ip.map(|ip| ports.into_iter().map(move |port| (ip, port).into()));
    let addresses = addresses.into_iter().flatten();
    addresses.map(move |address| (address, entry))
}

fn label<'a>(entry: &'a WorkloadEntry, name: &str) -> &'a str {
    entry.labels.get(name).map_or("", String::as_str)
}

fn introduce(dir: &Path, backends: &BTreeMap<SocketAddr, String>) {
    let mut text = format!("Strait demo of {}, with these backends:\n", dir.display());
    for (address, name) in backends {
        text.push_str(&format!("  {address}  {name}\n"));
    }
    if dir.join("README.md").is_file() {
        text.push_str(&format!("\n{}/README.md says what to try. ", dir.display()));
    }
    text.push_str("Ctrl-C ends the demo.\n\n");
    // without a terminal, there is no reader
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_come_from_the_resources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let of = |example: &str| {
            backends(
                &config_loader::load_files(
                    &[root.join(example)],
                    config_loader::LoadOptions::default(),
                )
                .set,
            )
        };
        let named = |list: &[(u16, &str)]| -> BTreeMap<SocketAddr, String> {
            let list = list.iter();
            list.map(|(port, name)| (([127, 0, 0, 1], *port).into(), (*name).to_owned()))
                .collect()
        };
        assert_eq!(of("quickstart"), named(&[(9101, "v1"), (9102, "v2")]));
        let bookinfo = of("bookinfo");
        assert_eq!(bookinfo.len(), 6);
        let address: SocketAddr = ([127, 0, 0, 1], 9205).into();
        assert_eq!(bookinfo[&address], "reviews v2");
    }
}
