//! `strait demo`: a gateway and the backends that its configuration names on this machine, in one process.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use config_loader::ResourceSet;
use config_loader::resource::core::Host;
use config_loader::resource::istio::{Bind, EndpointAddress, WorkloadEntry};

use super::run::{ServeArgs, serve};
use super::{EXIT_INPUT, backend, report};
use crate::app::{Settings, unreadable};
use crate::identity::Identity;

/// The quickstart as it stands in `examples`, for when the demo is not started inside the repository.
const QUICKSTART: &str = include_str!("../../../examples/quickstart/mesh.yaml");

/// Where the quickstart lies in the repository.
const QUICKSTART_PATH: &str = "examples/quickstart";

/// Arguments of `strait demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Starts two versions of an echo service on 127.0.0.1:9101 and :9102 and a gateway on 127.0.0.1:8080 that splits
traffic between them by examples/quickstart. Edit that file while it runs. Ctrl-C ends it.

With --dir it serves another directory, with an echo service on every endpoint that ServiceEntries, WorkloadEntries,
EndpointSlices and ServiceImports there have on loopback addresses:
  strait demo --dir examples/bookinfo")]
pub struct DemoArgs {
    /// How it serves.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Directory with the configuration to serve; default: examples/quickstart, or a copy of it in a new directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Runs the demo until a signal ends it.
pub fn run(args: &DemoArgs) -> u8 {
    match prepare(args) {
        Ok(settings) => serve(settings),
        Err(error) => {
            report(&error);
            EXIT_INPUT
        }
    }
}

/// Starts the backends and says what to try.
fn prepare(args: &DemoArgs) -> Result<Settings, String> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => quickstart_dir()?,
    };
    let mut identity = Identity::default();
    identity
        .labels
        .insert("istio".to_owned(), "ingressgateway".to_owned());
    let settings = args.serve.settings(vec![dir.clone()], identity)?;
    let loaded = config_loader::load_files(&settings.paths);
    if let Some(missing) = unreadable(&loaded.diagnostics) {
        return Err(format!("{}: {}", missing.place.file, missing.message));
    }
    for address in gateways(&loaded.set) {
        // the proxy itself would try again and again, and somebody else would answer meanwhile
        TcpListener::bind(address)
            .map_err(|error| format!("the demo's gateway cannot listen on {address}: {error}"))?;
    }
    let backends = backends(&loaded.set);
    for (address, name) in &backends {
        backend::spawn(name.as_str().into(), *address).map_err(|error| {
            format!("the demo's backend {name} cannot listen on {address}: {error}")
        })?;
    }
    match &args.dir {
        None => introduce(&dir, args.serve.admin),
        Some(_) => introduce_other(&dir, &backends),
    }
    Ok(settings)
}

/// Where the Gateways listen.
fn gateways(resources: &ResourceSet) -> BTreeSet<SocketAddr> {
    let gateways = resources.gateways.values();
    let servers = gateways.flat_map(|gateway| &gateway.spec.servers);
    let http = servers.filter(|server| server.protocol.is_http());
    let addresses = http.filter_map(|server| match server.bind {
        Bind::Default => Some((Ipv4Addr::UNSPECIFIED, server.port).into()),
        Bind::Ip(ip) => Some((ip, server.port).into()),
        Bind::Unix(_) => None,
    });
    addresses.collect()
}

/// Loopback addresses that the resources send traffic to, with the names of their backends: the version, after the
/// app where there are several.
fn backends(resources: &ResourceSet) -> BTreeMap<SocketAddr, String> {
    let entries = resources.service_entries.values();
    let inline = entries.flat_map(|entry| {
        let ports = entry.spec.ports.iter();
        let ports = ports.map(|port| port.target_port.unwrap_or(port.number));
        let ports: Vec<u16> = ports.collect();
        let endpoints = entry.spec.endpoints.iter();
        endpoints.map(move |endpoint| (endpoint, ports.clone()))
    });
    let workloads = resources.workload_entries.values();
    let workloads = workloads.map(|workload| (&*workload.spec, Vec::new()));
    let local: Vec<_> = inline.chain(workloads).flat_map(local_addresses).collect();
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

/// Loopback addresses of ServiceImports and EndpointSlices, with the names of their clusters.
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
    for slice in resources.endpoint_slices.values() {
        let name = slice.source_cluster().unwrap_or("local");
        for port in slice.spec.ports.iter().filter_map(|port| port.port) {
            for endpoint in &slice.spec.endpoints {
                add(&endpoint.address, port, name);
            }
        }
    }
    found
}

/// Where an endpoint takes traffic, as far as that is on this machine. `ports` are those of its service, for an
/// endpoint that names none.
fn local_addresses(
    (entry, mut ports): (&WorkloadEntry, Vec<u16>),
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

/// The repository's quickstart if we stand in the repository, else a copy in a new directory.
fn quickstart_dir() -> Result<PathBuf, String> {
    let in_repository = Path::new(QUICKSTART_PATH);
    if in_repository.join("mesh.yaml").is_file() {
        return Ok(in_repository.to_owned());
    }
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let name = format!("strait-demo-{}", started.unwrap_or_default().as_millis());
    let dir = std::env::temp_dir().join(name);
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", dir.display());
    // not into a directory that somebody else has made there
    std::fs::create_dir(&dir).map_err(failed)?;
    std::fs::write(dir.join("mesh.yaml"), QUICKSTART).map_err(failed)?;
    Ok(dir)
}

/// How the reader calls this program: by its name where that is found, else by its path.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    if !called.contains('/') {
        return "strait".to_owned();
    }
    let path = Path::new(&called);
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(here).unwrap_or(path);
    path.display().to_string()
}

fn introduce(dir: &Path, admin: SocketAddr) {
    let file = dir.join("mesh.yaml");
    let file = file.display();
    let text = format!(
        "\
Strait demo: a gateway on http://127.0.0.1:8080 and two versions of one service behind it.

Try, in another terminal:
  curl http://127.0.0.1:8080/                            four in five answers come from v1
  curl -H 'x-preview: yes' http://127.0.0.1:8080/        always v2
  curl http://{admin}/clusters                    endpoints and what they are doing
  curl http://{admin}/stats/prometheus | grep istio_requests_total

Change the weights in {file} while requests run:
the next request follows, and none is dropped. A mistake in the file is reported here and changes nothing.

Why does a request go where it goes?
  {strait} explain --config {dir} --labels istio=ingressgateway GET http://127.0.0.1:8080/

Ctrl-C ends the demo.

",
        strait = program(),
        dir = dir.display(),
    );
    // without a terminal to read it, nobody misses it
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

fn introduce_other(dir: &Path, backends: &BTreeMap<SocketAddr, String>) {
    let mut text = format!("Strait demo of {}, with these backends:\n", dir.display());
    for (address, name) in backends {
        text.push_str(&format!("  {address}  {name}\n"));
    }
    if dir.join("README.md").is_file() {
        text.push_str(&format!("\n{}/README.md says what to try. ", dir.display()));
    }
    text.push_str("Ctrl-C ends the demo.\n\n");
    // without a terminal to read it, nobody misses it
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_those_of_the_resources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let of = |example: &str| backends(&config_loader::load_files(&[root.join(example)]).set);
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
