//! Services with many endpoints: memory per endpoint, and time of a change of one endpoint.
//!
//! Prints two tables instead of criterion statistics. Memory is what stays allocated, as counted by the allocator. A
//! change renames a file into place; it is in effect once its snapshot is compiled.

use std::fmt::Write as _;
use std::io;
use std::io::Write as _;
use std::mem::size_of;

use allocation_counter::measure;
use benches::changes::{Compiler, GATEWAY, Mesh, Running, endpoints_of, spread};
use config_loader::{Diagnostics, load_bytes};
use proxy::snapshot::Snapshot;
use traffic::cluster::Endpoint;
use traffic::registry::EndpointState;

/// Endpoints per file, for layouts with several files.
const PER_FILE: usize = 100;

/// Number of endpoints in the measurement of changes, one of which changes.
const CHANGED_OF: usize = 10_000;

/// Number of timed changes.
const CHANGES: usize = 15;

/// Resource layout of the endpoints.
#[derive(Clone, Copy)]
enum Layout {
    /// EndpointSlices of a Service, one per file.
    Slices,
    /// WorkloadEntries, many in a file.
    Workloads,
    /// One ServiceEntry with all endpoints inline.
    Inline,
}

impl Layout {
    const ALL: [Layout; 3] = [Layout::Slices, Layout::Workloads, Layout::Inline];

    fn name(self) -> &'static str {
        match self {
            Layout::Slices => "EndpointSlices of 100 in a file each",
            Layout::Workloads => "WorkloadEntries, 100 in a file",
            Layout::Inline => "one ServiceEntry",
        }
    }

    fn host(self) -> &'static str {
        match self {
            Layout::Slices => "s",
            Layout::Workloads | Layout::Inline => "s.example",
        }
    }

    /// Returns the service without endpoints; [`Layout::Inline`] appends its endpoints to it.
    fn service(self) -> &'static str {
        match self {
            Layout::Slices => {
                "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n\
                 spec: {ports: [{name: http, port: 80}], selector: {app: s}}\n"
            }
            Layout::Workloads => {
                "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s}\n\
                 spec:\n  hosts: [s.example]\n  resolution: STATIC\n  location: MESH_INTERNAL\n  \
                 ports: [{number: 80, name: http, protocol: HTTP}]\n  workloadSelector: {labels: {app: s}}\n"
            }
            Layout::Inline => {
                "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s}\n\
                 spec:\n  hosts: [s.example]\n  resolution: STATIC\n  \
                 ports: [{number: 80, name: http, protocol: HTTP}]\n  endpoints:\n"
            }
        }
    }

    /// Returns the files: the gateway and route first, the file that changes last. `first` is the network of that
    /// file's first endpoint; all other endpoints are in network 10.
    fn files(self, count: usize, first: u8) -> Vec<String> {
        let mut files =
            vec![[GATEWAY, &ROUTE.replace("HOST", self.host()), self.service()].join("---\n")];
        let address = |number: usize, network: u8| {
            let [_, high, middle, low] = (number as u32 + 1).to_be_bytes();
            format!("{network}.{high}.{middle}.{low}")
        };
        for begin in (0..count).step_by(PER_FILE) {
            let is_last = begin + PER_FILE >= count;
            let addresses = (begin..count.min(begin + PER_FILE)).map(|number| {
                let changes = is_last && number == begin;
                address(number, if changes { first } else { 10 })
            });
            let text = self.file(begin, addresses);
            match self {
                Layout::Inline => files[0] += &text,
                Layout::Slices | Layout::Workloads => files.push(text),
            }
        }
        files
    }

    fn file(self, begin: usize, addresses: impl Iterator<Item = String>) -> String {
        let mut text = String::new();
        if matches!(self, Layout::Slices) {
            let _ = write!(
                text,
                "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: s-{begin}, labels: \
                 {{kubernetes.io/service-name: s}}}}\naddressType: IPv4\nports: [{{name: http, port: 80}}]\nendpoints:\n"
            );
        }
        for (number, address) in addresses.enumerate() {
            let _ = match self {
                Layout::Slices => writeln!(text, "- {{addresses: [{address}], zone: a}}"),
                Layout::Inline => writeln!(text, "  - {{address: {address}, locality: r/a}}"),
                Layout::Workloads => write!(
                    text,
                    "---\napiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {{name: w{}}}\n\
                     spec: {{address: {address}, locality: r/a, labels: {{app: s}}}}\n",
                    begin + number
                ),
            };
        }
        text
    }
}

/// VirtualService that routes to the service.
const ROUTE: &str = "apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v}
spec:
  hosts: ['*']
  gateways: [edge]
  http:
  - route: [{destination: {host: HOST}}]
";

/// Returns the bytes per endpoint: in the resources, and in the compiled snapshot with its live state.
fn memory(layout: Layout, count: usize) -> [f64; 2] {
    let text = layout.files(count, 10).join("---\n");
    let mut set = None;
    let loaded = measure(|| {
        let mut found = Diagnostics::default();
        set = Some(load_bytes("mesh.yaml", text.as_bytes(), &mut found));
    });
    let set = set.expect("it was loaded");
    let compiler = Compiler::default();
    let mut snapshot = Snapshot::default();
    let compiled = measure(|| snapshot = compiler.snapshot(&set, &Snapshot::default()));
    assert_eq!(endpoints_of(&snapshot), count, "{}", layout.name());
    [loaded, compiled].map(|info| info.bytes_current as f64 / count as f64)
}

/// Returns the milliseconds of each change: from the rename until the snapshot is compiled, and of compiling alone.
fn changes(layout: Layout) -> Vec<[f64; 2]> {
    let versions = [11, 10].map(|first| layout.files(CHANGED_OF, first).pop().expect("a file"));
    let mut running = Running::load(Mesh::write(&layout.files(CHANGED_OF, 10), versions));
    running.compile();
    (0..CHANGES).map(|_| running.change()).collect()
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(
        out,
        "bytes in an Endpoint {}, its state {}\n",
        size_of::<Endpoint>(),
        size_of::<EndpointState>()
    )?;
    writeln!(
        out,
        "| layout | endpoints | bytes of the resource | bytes compiled | together |"
    )?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: |")?;
    for layout in Layout::ALL {
        for count in [10_000, 100_000] {
            let [loaded, compiled] = memory(layout, count);
            let (name, sum) = (layout.name(), loaded + compiled);
            writeln!(
                out,
                "| {name} | {count} | {loaded:.0} | {compiled:.0} | {sum:.0} |"
            )?;
        }
    }
    writeln!(
        out,
        "
        | one of {CHANGED_OF} changes | ms until in effect | ms compiling |"
    )?;
    writeln!(out, "| --- | ---: | ---: |")?;
    for layout in Layout::ALL {
        let times = changes(layout);
        let [whole, compiling] =
            [0, 1].map(|column| spread(times.iter().map(move |time| time[column])));
        writeln!(out, "| {} | {whole} | {compiling} |", layout.name())?;
    }
    Ok(())
}
