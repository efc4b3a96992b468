//! From settings to a server that runs: its data directory, its material, its first tokens.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config_loader::Fleet;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::access::attempts::Attempts;
use crate::access::{Role, pki, tokens};
use crate::api::Api;
use crate::audit::Audit;
use crate::conditions;
use crate::files;
use crate::server::Server;
use crate::store::Store;
use crate::store::embedded::EmbeddedStore;
use crate::store::history::HistoryLimits;

/// How many batches of changes wait for their findings.
const FEED_MAX: usize = 16;

/// How a server is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data directory.
    pub data: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
    /// A certificate of the operator, instead of one by the server's own CA.
    pub tls: Option<pki::Files>,
    /// More names and addresses for the server's certificate.
    pub names: Vec<String>,
    /// How much history watches may go back to.
    pub history: HistoryLimits,
    /// Whether conditions are written to the status of objects.
    pub writes_status: bool,
}

impl Settings {
    /// The settings for a data directory, listening on an address.
    pub fn new(data: PathBuf, listen: SocketAddr) -> Settings {
        Settings {
            data,
            listen,
            tls: None,
            names: Vec::new(),
            history: HistoryLimits::default(),
            writes_status: true,
        }
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    server: Server,
    listener: TcpListener,
    writes_status: bool,
    /// Whether this server is the one that writes what only one may write.
    is_leader: watch::Receiver<bool>,
}

impl Running {
    /// Serves until the future is dropped.
    pub async fn serve(self) {
        let mut tasks = JoinSet::new();
        if self.writes_status {
            let (sender, feed) = mpsc::channel(FEED_MAX);
            let store = Arc::clone(&self.server.api.store);
            tasks.spawn(conditions::follow(store, sender));
            let writer = conditions::Writer::Store(self.server.api.clone());
            let engine = conditions::Engine::new(Fleet::default());
            tasks.spawn(conditions::run(engine, feed, writer, self.is_leader));
        }
        self.server.serve(self.listener).await;
    }
}

/// Opens the data directory, makes what it lacks, and listens.
///
/// # Errors
/// With what is wrong, for a person.
pub async fn start(settings: &Settings) -> Result<Running, String> {
    let data = &settings.data;
    let in_data = |error: std::io::Error| format!("{}: {error}", data.display());
    files::make_private_dir(data).map_err(in_data)?;
    // The store comes first: its lock keeps a second server from changing anything.
    let store = EmbeddedStore::open(&data.join("store.redb"), settings.history)?;
    let names = pki::names_for(settings.listen.ip(), &settings.names);
    let material = pki::prepare(data, settings.tls.as_ref(), &names)?;
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", settings.listen))?;
    let address = listener.local_addr().map_err(in_data)?;
    for (name, role) in [("admin", Role::Admin), ("proxy", Role::Proxy)] {
        kubeconfig(data, name, role, address, &material.ca).map_err(in_data)?;
    }
    let store: Arc<dyn Store> = Arc::new(store);
    let server = Server {
        api: Api { store },
        tokens: Arc::new(tokens::Tokens::at(tokens::file_in(data))),
        attempts: Arc::new(Attempts::default()),
        audit: Arc::new(Audit::at(data.join("audit.log")).map_err(in_data)?),
        tls: material.tls,
    };
    // A store of its own has one server.
    let (_, is_leader) = watch::channel(true);
    Ok(Running {
        address,
        server,
        listener,
        writes_status: settings.writes_status,
        is_leader,
    })
}

/// Writes the kubeconfig of a user, with the token that it has or with a new one.
fn kubeconfig(
    data: &Path,
    name: &str,
    role: Role,
    address: SocketAddr,
    ca: &str,
) -> std::io::Result<()> {
    let path = data.join(format!("{name}.kubeconfig"));
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let token = known
        .lines()
        .find_map(|line| line.trim().strip_prefix("token: "));
    let token = match token {
        Some(token) => token.to_owned(),
        None => tokens::create(&tokens::file_in(data), name, role, None)?,
    };
    let text = kubeconfig_text(name, &token, address, ca);
    if text == known {
        return Ok(());
    }
    files::write_private(&path, text.as_bytes())
}

/// The kubeconfig of a user.
pub fn kubeconfig_text(name: &str, token: &str, address: SocketAddr, ca: &str) -> String {
    let host = if address.ip().is_unspecified() {
        format!("localhost:{}", address.port())
    } else {
        address.to_string()
    };
    let ca = STANDARD.encode(ca);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: strait
  cluster:
    server: https://{host}
    certificate-authority-data: {ca}
users:
- name: {name}
  user:
    token: {token}
contexts:
- name: strait
  context:
    cluster: strait
    user: {name}
current-context: strait
"
    )
}
