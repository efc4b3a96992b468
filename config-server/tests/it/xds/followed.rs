//! Configuration source of a proxy that follows an xDS server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use config_loader::proxy_state::{AppliedRevision, ProxyState, RejectedObject};
use config_loader::{
    ControlSettings, Fleet, ResourceSet, Severity, Sources, Watch, WatchSettings, XdsNode,
    XdsServer, XdsSettings,
};
use grpc_client::ClientTlsFiles;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::support::TestServer;

/// Maximum time for one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Resources and diagnostics of the client.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub set: Arc<ResourceSet>,
    pub diagnostics: Vec<config_loader::Diagnostic>,
}

pub struct Followed {
    found: watch::Receiver<Found>,
    /// VirtualService hosts of each state so far.
    seen: Arc<Mutex<Vec<String>>>,
    files: TempDir,
    _watch: Watch,
}

/// Returns the report of a proxy that applies an update at once.
fn state_of(update: &config_loader::Update) -> ProxyState {
    let applied = update.revisions.iter().map(|one| AppliedRevision {
        source: Arc::clone(&one.source),
        revision: one.revision.clone(),
        took_seconds: 0.0,
    });
    let rejected = update.quarantined.iter().map(|one| {
        let reasons = one.diagnostics.iter();
        let reasons =
            reasons.map(|found| format!("{} {}: {}", found.code, found.field, found.message));
        let document = Arc::clone(&one.diagnostics[0].location.file);
        let object = RejectedObject::new(one.object.to_string(), one.in_force, reasons.collect());
        (document, object)
    });
    ProxyState {
        namespace: "edge".to_owned(),
        name: "edge-of-test".to_owned(),
        generation: 7,
        applied: applied.collect(),
        rejected: rejected.collect(),
        ..ProxyState::default()
    }
}

/// Returns the hosts of all VirtualServices, in order.
pub fn hosts(set: &ResourceSet) -> Vec<String> {
    let all = set
        .virtual_services
        .values()
        .flat_map(|one| &one.spec.hosts);
    let mut hosts: Vec<String> = all.map(|host| host.value.to_string()).collect();
    hosts.sort();
    hosts
}

/// Returns debug texts without their `Line(..)` numbers.
pub fn without_lines(specs: &[String]) -> Vec<String> {
    let specs = specs.iter().map(|spec| {
        let mut parts = spec.split("Line(");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            text + part.trim_start_matches(|c: char| c.is_ascii_digit())
        })
    });
    let mut specs: Vec<String> = specs.collect();
    specs.sort();
    specs
}

impl Found {
    /// Returns the diagnostics that are errors.
    pub fn errors(&self) -> Vec<String> {
        let errors = self.diagnostics.iter();
        let errors = errors.filter(|found| found.severity == Severity::Error);
        errors
            .map(|found| format!("{} {} {}", found.code, found.location.file, found.message))
            .collect()
    }
}

impl Followed {
    /// Starts a client with the token of a kubeconfig.
    pub fn of(server: &TestServer, user: &str) -> Followed {
        Followed::with_token(server, &server.token(user))
    }

    pub fn with_token(server: &TestServer, token: &str) -> Followed {
        Followed::at(
            server.address,
            server.data.path().join("ca.crt"),
            token,
            "shop",
        )
    }

    /// Starts a client of a server without TLS.
    pub fn plaintext(address: SocketAddr) -> Followed {
        Followed::start(address, None, "shop")
    }

    /// Starts a client of any server, whose proxy is a gateway of that namespace and reads Secrets there.
    pub fn at(address: SocketAddr, ca: PathBuf, token: &str, namespace: &str) -> Followed {
        Followed::start(address, Some((ca, token)), namespace)
    }

    fn start(address: SocketAddr, tls: Option<(PathBuf, &str)>, namespace: &str) -> Followed {
        let files = tempfile::tempdir().unwrap();
        let token = files.path().join("token");
        let server = XdsServer {
            host: address.ip().to_string(),
            port: address.port(),
            has_tls: tls.is_some(),
        };
        if let Some((_, text)) = &tls {
            std::fs::write(&token, format!("{text}\n")).unwrap();
        }
        let xds = XdsSettings {
            servers: vec![server],
            token: tls.is_some().then(|| token.clone()),
            tls: ClientTlsFiles {
                ca: tls.map(|(ca, _)| ca),
                ..ClientTlsFiles::default()
            },
            node: XdsNode {
                name: "edge".to_owned(),
                namespace: namespace.to_owned(),
                ..XdsNode::default()
            },
            ..XdsSettings::default()
        };
        let (states, reported) = watch::channel(None);
        let sources = Sources {
            paths: Vec::new(),
            states: Some(reported),
            control: Some(ControlSettings {
                xds,
                ..ControlSettings::default()
            }),
            ..Sources::default()
        };
        let (sender, found) = watch::channel(Found::default());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        let on_update = move |update: config_loader::Update| {
            all.lock().unwrap().push(hosts(&update.set).join(" "));
            states.send_replace(Some(Arc::new(state_of(&update))));
            sender.send_replace(Found {
                set: update.set,
                diagnostics: update.diagnostics,
            });
        };
        let (_, watch) = config_loader::watch_for(
            Fleet::default,
            &sources,
            WatchSettings::default(),
            on_update,
        )
        .unwrap();
        Followed {
            found,
            seen,
            files,
            _watch: watch,
        }
    }

    pub fn renew_token(&self, token: &str) {
        std::fs::write(self.files.path().join("token"), token).unwrap();
    }

    /// Waits until the state satisfies `is_it`.
    pub async fn until(&mut self, what: &str, mut is_it: impl FnMut(&Found) -> bool) -> Found {
        let waiting = self.found.wait_for(|found| is_it(found));
        let found = tokio::time::timeout(PATIENCE, waiting).await;
        let found = found.map(|found| found.unwrap().clone());
        found.unwrap_or_else(|_| panic!("{what} did not come: {:?}", self.found.borrow()))
    }

    /// Returns the VirtualService hosts of each state so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}
