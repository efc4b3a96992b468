//! Configuration of the demo's clusters, as text that a reader edits while the demo runs.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::site::DemoCluster;

/// Path of the policy, below the directory.
pub(super) const POLICY: &str = "edge/policy.yaml";

/// Directory in memory. Containers have it even if their file system is read-only and has no `/tmp`.
const SHARED_MEMORY: &str = "/dev/shm";

/// Directory that the configuration is written to.
pub(super) struct Directory {
    path: PathBuf,
    /// Whether the demo chose the directory: dropping this removes it with everything in it.
    is_temporary: bool,
}

impl Deref for Directory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_temporary {
            // files that cannot be removed are left to the cleanup of temporary files
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Makes the requested directory, or a new temporary one.
///
/// # Errors
///
/// Fails when it cannot be made.
pub(super) fn directory(asked: Option<&Path>) -> Result<Directory, String> {
    let failed = |dir: &Path| {
        let dir = dir.display().to_string();
        move |error: io::Error| format!("cannot make the directory {dir}: {error}")
    };
    if let Some(dir) = asked {
        fs::create_dir_all(dir).map_err(failed(dir))?;
        return Ok(Directory {
            path: std::path::absolute(dir).map_err(failed(dir))?,
            is_temporary: false,
        });
    }
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let name = format!("strait-demo-{}", started.unwrap_or_default().as_millis());
    temporary(&[std::env::temp_dir(), SHARED_MEMORY.into()], &name)
}

/// Makes a new directory in the first of the parent directories that allows it.
fn temporary(places: &[PathBuf], name: &str) -> Result<Directory, String> {
    let mut refused = String::new();
    for place in places {
        let path = place.join(name);
        // never use a directory that another user has made there
        match fs::create_dir(&path) {
            Ok(()) => {
                return Ok(Directory {
                    path,
                    is_temporary: true,
                });
            }
            Err(error) => refused += &format!("\n  {}: {error}", path.display()),
        }
    }
    Err(format!(
        "cannot make a directory for the configuration; name a directory that can be written with --keep-files DIR:{refused}"
    ))
}

/// Writes the configuration of the edge and of every cluster, each into a directory of its own.
///
/// # Errors
///
/// Fails when a file cannot be written or exists already: it may hold changes of an earlier demo.
pub(super) fn write(dir: &Path, edge: SocketAddr, sites: &[DemoCluster]) -> Result<(), String> {
    let mut files = vec![
        (POLICY.to_owned(), policy()),
        ("edge/mesh.yaml".to_owned(), edge_mesh(edge, sites)),
    ];
    for site in sites {
        files.push((format!("{}/mesh.yaml", site.name), cluster_mesh(site)));
    }
    for (name, text) in files {
        let path = dir.join(name);
        let failed = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let parent = path.parent().unwrap_or(dir);
        fs::create_dir_all(parent).map_err(failed)?;
        let mut file = fs::File::create_new(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
    }
    Ok(())
}

fn policy() -> String {
    "\
# How the clusters share the requests of `web`. Change it while the demo runs: the next request follows.
#
#   weight: 0                  drains a cluster: it gets nothing, and is no backup either
#   lbType: FailOver           c1 serves; c2 and c3 if c1 cannot, or with this annotation c2, then c3:
#                              annotations: {multicluster.flomesh.io/failover-order: ordered}
apiVersion: flomesh.io/v1alpha1
kind: GlobalTrafficPolicy
metadata:
  name: web
  namespace: demo
spec:
  lbType: ActiveActive
  targets:
    - clusterKey: default/default/default/c1
      weight: 50
    - clusterKey: default/default/default/c2
      weight: 30
    - clusterKey: default/default/default/c3
      weight: 20
"
    .to_owned()
}

/// Renders a Gateway that listens on this address.
fn gateway(at: SocketAddr) -> String {
    format!(
        "\
apiVersion: networking.istio.io/v1
kind: Gateway
metadata:
  name: gateway
  namespace: demo
spec:
  selector:
    istio: ingressgateway
  servers:
    - port:
        number: {}
        name: http
        protocol: HTTP
      bind: {}
      hosts:
        - \"*\"
",
        at.port(),
        at.ip()
    )
}

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: demo
spec:
  ports:
    - name: http
      port: 80
";

fn edge_mesh(edge: SocketAddr, sites: &[DemoCluster]) -> String {
    let mut imports = String::new();
    for DemoCluster { name, gateway, .. } in sites {
        imports += &format!(
            "        - clusterKey: default/default/default/{name}
          target:
            host: \"\"
            ip: {}
            port: {}
            path: /{name}/web
",
            gateway.ip(),
            gateway.port()
        );
    }
    format!(
        "\
# The edge: it takes requests and has no endpoints of its own.
{}---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: web
  namespace: demo
spec:
  hosts:
    - \"*\"
  gateways:
    - gateway
  http:
    - route:
        - destination:
            host: web.demo.svc.cluster.local
            port:
              number: 80
---
{SERVICE}---
# Where the clusters serve it: a gateway each, which wants a prefix before the path.
apiVersion: flomesh.io/v1alpha1
kind: ServiceImport
metadata:
  name: web
  namespace: demo
spec:
  ports:
    - name: http
      port: 80
      endpoints:
{imports}---
{RULE}",
        gateway(edge)
    )
}

const RULE: &str = "\
# A gateway that takes no connections is out within half a second, and back as soon as it does.
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: web
  namespace: demo
  annotations:
    strait.io/health-check: tcp
    strait.io/health-check-interval: 250ms
    strait.io/health-check-unhealthy-threshold: \"1\"
spec:
  host: web.demo.svc.cluster.local
  trafficPolicy:
    outlierDetection:
      consecutive5xxErrors: 5
      interval: 500ms
      baseEjectionTime: 1s
      maxEjectionPercent: 100
";

fn cluster_mesh(site: &DemoCluster) -> String {
    let name = site.name;
    let mut text = format!(
        "\
# The gateway of {name}: it serves to other clusters what is exported, by workloads of its own only.
{}---
{SERVICE}---
apiVersion: flomesh.io/v1alpha1
kind: ServiceExport
metadata:
  name: web
  namespace: demo
spec:
  rules:
    - portNumber: 80
      path: /{name}/web
      pathType: Prefix
  pathRewrite:
    from: ^/{name}/web/?
    to: /
",
        gateway(site.gateway)
    );
    for (version, at) in &site.backends {
        text += &format!(
            "\
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-{version}
  namespace: demo
  labels:
    kubernetes.io/service-name: web
addressType: IPv4
ports:
  - name: http
    port: {}
endpoints:
  - addresses:
      - {}
",
            at.port(),
            at.ip()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_place_that_can_be_written_holds_the_temporary_directory() {
        let writable = tempfile::tempdir().unwrap();
        let missing = writable.path().join("missing");
        let places = [missing.clone(), writable.path().to_owned()];
        let made = temporary(&places, "demo").unwrap();
        assert_eq!(*made, *writable.path().join("demo"));
        drop(made);
        assert!(!writable.path().join("demo").exists());
        let Err(refused) = temporary(std::slice::from_ref(&missing), "demo") else {
            panic!("a directory in {}", missing.display());
        };
        assert!(refused.contains("--keep-files"), "{refused}");
        assert!(refused.contains(missing.to_str().unwrap()), "{refused}");
    }
}
