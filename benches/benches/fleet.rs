//! Memory, and time of a change of one endpoint, for a thousand services that ten Kubernetes clusters serve together
//! with a hundred endpoints each.
//!
//! Prints a table instead of criterion statistics. Memory is what stays allocated, as counted by the allocator,
//! including all that a running proxy keeps of its files; resident memory of the process is printed next to it.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Instant;

use allocation_counter::{AllocationInfo, measure};
use benches::changes::{GATEWAY, Mesh, Running, endpoints_of, spread};

const SERVICES: usize = 1_000;
const CLUSTERS: usize = 10;
const ENDPOINTS: usize = 100;

/// Number of timed changes.
const CHANGES: usize = 15;

/// Returns a service with its route, its policy and a slice of each cluster. `network` is the first byte of the address
/// of its last endpoint.
fn service(number: usize, network: u8) -> String {
    let mut text = format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: v{number}}}\nspec:\n  \
         hosts: [s{number}.example]\n  gateways: [edge]\n  http:\n  - route: [{{destination: {{host: s{number}}}}}]\n\
         ---\napiVersion: v1\nkind: Service\nmetadata: {{name: s{number}}}\nspec: {{ports: [{{name: http, port: 80}}]}}\n\
         ---\napiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata: {{name: s{number}}}\n\
         spec: {{lbType: ActiveActive}}\n"
    );
    for cluster in 0..CLUSTERS {
        let _ = write!(
            text,
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: s{number}-c{cluster}\n  \
             labels: {{kubernetes.io/service-name: s{number}}}\n  \
             annotations: {{endpointslice.karmada.io/provision-cluster: c{cluster}}}\n\
             addressType: IPv4\nports: [{{name: http, port: 8080}}]\nendpoints:\n"
        );
        for endpoint in 0..ENDPOINTS {
            let unique = ((number * CLUSTERS + cluster) * ENDPOINTS + endpoint) as u32;
            let [_, high, middle, low] = unique.to_be_bytes();
            let is_last = (cluster + 1, endpoint + 1) == (CLUSTERS, ENDPOINTS);
            let (node, zone) = (endpoint % 20, endpoint % 3);
            let _ = writeln!(
                text,
                "- {{addresses: [{}.{high}.{middle}.{low}], conditions: {{ready: true}}, nodeName: node-{node}, zone: z{zone}}}",
                if is_last { network } else { 10 }
            );
        }
    }
    text
}

/// Resident memory of the process, in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or(f64::NAN) * 1024.0
}

/// Runs a function and returns its duration in seconds and its allocations.
fn timed(what: impl FnOnce()) -> (f64, AllocationInfo) {
    let begin = Instant::now();
    let info = measure(what);
    (begin.elapsed().as_secs_f64(), info)
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    let count = SERVICES * CLUSTERS * ENDPOINTS;
    let mut files = vec![GATEWAY.to_owned()];
    files.extend((0..SERVICES).map(|number| service(number, 10)));
    let versions = [11, 10].map(|network| service(SERVICES - 1, network));
    let mesh = Mesh::write(&files, versions);
    drop(files);
    let before = resident();
    let mut running = None;
    let (load_s, loaded) = timed(|| running = Some(Running::load(mesh)));
    let mut running = running.expect("it was loaded");
    let (compile_s, compiled) = timed(|| running.compile());
    assert_eq!(endpoints_of(&running.snapshot), count);
    let of_each = |bytes: f64| bytes / count as f64;
    let [first, second] = [&loaded, &compiled].map(|info| of_each(info.bytes_current as f64));
    let peak = of_each(
        loaded
            .bytes_max
            .max(loaded.bytes_current as u64 + compiled.bytes_max) as f64,
    );
    writeln!(
        out,
        "{SERVICES} services, {CLUSTERS} clusters, {count} endpoints\n"
    )?;
    writeln!(out, "| what | |\n| --- | ---: |")?;
    writeln!(out, "| loading, s | {load_s:.1} |")?;
    writeln!(out, "| compiling, s | {compile_s:.2} |")?;
    writeln!(out, "| bytes of resources per endpoint | {first:.0} |")?;
    writeln!(out, "| bytes compiled per endpoint | {second:.0} |")?;
    writeln!(out, "| together | {:.0} |", first + second)?;
    writeln!(out, "| at the peak | {peak:.0} |")?;
    let grown = of_each(resident() - before);
    writeln!(out, "| resident bytes per endpoint | {grown:.0} |")?;
    let times: Vec<[f64; 2]> = (0..CHANGES).map(|_| running.change()).collect();
    let [whole, compiling] = [0, 1].map(|at| spread(times.iter().map(move |time| time[at])));
    writeln!(out, "| a change of one in effect, ms | {whole} |")?;
    writeln!(out, "| of that compiling, ms | {compiling} |")?;
    Ok(())
}
