//! Pair of sidecars, one of a client and one of a service, with equivalent configuration for Strait and Envoy.
//!
//! Only text, as in `configure`. No traffic is captured: the client connects to a port of its sidecar, which connects
//! to a port of the service's sidecar, which connects to the upstream.

use std::ffi::OsString;
use std::path::Path;

use crate::compare::configure::{ConfigFile, Proxy};
use crate::compare::tls::HOST;

mod identities;

pub use identities::{Identities, Side};

/// Proxies that are measured as sidecars.
pub const PROXIES: [Proxy; 2] = [Proxy::Strait, Proxy::Envoy];

/// Path of the resources that both Strait sidecars watch.
const RESOURCES: &str = "resources/mesh.yaml";

/// Configuration of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairPlan {
    /// Port of 127.0.0.1 that the client connects to.
    pub outbound: u16,
    /// Port of 127.0.0.1 between the two sidecars.
    pub inbound: u16,
    /// Port of the upstream on 127.0.0.1.
    pub upstream: u16,
    /// Ports of the admin pages, the service sidecar's first.
    pub admins: [u16; 2],
    /// Whether the sidecars use mutual TLS between them.
    pub tls: bool,
}

/// Returns the configuration files of a pair.
pub fn files(proxy: Proxy, plan: &PairPlan, identities: &Identities) -> Vec<ConfigFile> {
    if proxy == Proxy::Strait {
        let text = filled(include_str!("sidecars/strait.yaml"), plan, identities);
        return vec![ConfigFile::new(RESOURCES, text)];
    }
    let of = |side: Side| {
        let template = match side {
            Side::Client => include_str!("sidecars/envoy-client.yaml"),
            Side::Service => include_str!("sidecars/envoy-service.yaml"),
        };
        let text = template.replace("ADMIN", &admin(plan, side).to_string());
        ConfigFile::new(envoy_file(side), filled(&text, plan, identities))
    };
    Side::ALL.map(of).to_vec()
}

/// Returns the arguments of one of the sidecars.
pub fn arguments(
    proxy: Proxy,
    plan: &PairPlan,
    side: Side,
    identities: &Identities,
    directory: &Path,
) -> Vec<OsString> {
    match proxy {
        Proxy::Strait => strait(plan, side, identities, directory),
        _ => envoy(side, directory),
    }
}

fn admin(plan: &PairPlan, side: Side) -> u16 {
    let [service, client] = plan.admins;
    match side {
        Side::Service => service,
        Side::Client => client,
    }
}

/// Fills in a template. Longer placeholders are replaced first, since some begin with others.
fn filled(template: &str, plan: &PairPlan, identities: &Identities) -> String {
    let path = |path: std::path::PathBuf| path.display().to_string();
    let (client_tls, server_tls) = match plan.tls {
        true => ("ISTIO_MUTUAL", "STRICT"),
        false => ("DISABLE", "DISABLE"),
    };
    let words = [
        (
            "CLIENT_CERTIFICATE",
            path(identities.certificate(Side::Client)),
        ),
        ("CLIENT_KEY", path(identities.key(Side::Client))),
        ("CLIENT_TLS", client_tls.to_owned()),
        (
            "SERVICE_CERTIFICATE",
            path(identities.certificate(Side::Service)),
        ),
        ("SERVICE_KEY", path(identities.key(Side::Service))),
        ("SERVICE_ID", Side::Service.id()),
        ("SERVER_TLS", server_tls.to_owned()),
        ("AUTHORITY", path(identities.authority())),
        ("OUTBOUND", plan.outbound.to_string()),
        ("INBOUND", plan.inbound.to_string()),
        ("UPSTREAM", plan.upstream.to_string()),
        ("HOST", HOST.to_owned()),
    ];
    let mut text = template.replace("#TLS", if plan.tls { "" } else { "#" });
    for (word, value) in words {
        text = text.replace(word, &value);
    }
    text
}

fn envoy_file(side: Side) -> String {
    format!("{}.yaml", side.name())
}

fn envoy(side: Side, directory: &Path) -> Vec<OsString> {
    let words = [
        "--concurrency",
        "1",
        "--disable-hot-restart",
        "--log-level",
        "error",
        "--config-path",
    ];
    let mut arguments: Vec<OsString> = words.map(OsString::from).to_vec();
    arguments.push(directory.join(envoy_file(side)).into());
    arguments
}

fn strait(plan: &PairPlan, side: Side, identities: &Identities, directory: &Path) -> Vec<OsString> {
    let resources = directory.join(RESOURCES);
    let words = [
        "run".to_owned(),
        "--mode=sidecar".to_owned(),
        "--outbound-listener=off".to_owned(),
        "--inbound-listener=off".to_owned(),
        "--concurrency=1".to_owned(),
        "--access-log=off".to_owned(),
        "--namespace=bench".to_owned(),
        format!("--labels=app={}", side.name()),
        format!("--service-account={}", side.name()),
        format!("--admin=127.0.0.1:{}", admin(plan, side)),
        format!("--workload-cert={}", identities.certificate(side).display()),
        format!("--workload-key={}", identities.key(side).display()),
        format!("--mesh-ca={}", identities.authority().display()),
        format!(
            "--config={}",
            resources.parent().unwrap_or(directory).display()
        ),
    ];
    words.map(OsString::from).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(tls: bool) -> PairPlan {
        PairPlan {
            outbound: 1001,
            inbound: 1002,
            upstream: 1003,
            admins: [1004, 1005],
            tls,
        }
    }

    /// Returns the text of all files.
    fn text(proxy: Proxy, tls: bool) -> String {
        let directory = tempfile::tempdir().unwrap();
        let identities = Identities::make(directory.path()).unwrap();
        let files = files(proxy, &plan(tls), &identities);
        files.into_iter().map(|file| file.text).collect()
    }

    #[test]
    fn no_word_is_left_to_fill_in() {
        for proxy in PROXIES {
            for tls in [false, true] {
                let text = text(proxy, tls);
                let is_word = |word: &&str| {
                    word.len() > 3 && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
                };
                let known = [
                    "NONE",
                    "HTTP",
                    "STATIC",
                    "STRICT",
                    "DISABLE",
                    "MESH_INTERNAL",
                    "ISTIO_MUTUAL",
                    "SANITIZE_SET",
                ];
                let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let left: Vec<_> = words
                    .filter(is_word)
                    .filter(|word| !known.contains(word))
                    .collect();
                assert_eq!(left, Vec::<&str>::new(), "{proxy:?} {tls}");
            }
        }
    }

    #[test]
    fn tls_is_required_by_both_sides_or_by_none() {
        let envoy = text(Proxy::Envoy, true);
        assert_eq!(envoy.matches("\n      transport_socket:\n").count(), 1);
        assert_eq!(envoy.matches("\n    transport_socket:\n").count(), 1);
        assert!(!text(Proxy::Envoy, false).contains("\n    transport_socket:"));
        let strait = text(Proxy::Strait, true);
        assert!(
            strait.contains("tls: {mode: ISTIO_MUTUAL}") && strait.contains("mtls: {mode: STRICT}")
        );
    }
}
