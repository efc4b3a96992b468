//! Startup from settings to a running server: data directory, certificates, first tokens.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::access::attempts::Attempts;
use crate::access::{self, Role, pki, tokens};
use crate::api::{Api, DEFAULT, collector};
use crate::audit::Audit;
use crate::conditions::{self, GatewayController};
use crate::files;
use crate::identities::{EitherVerifier, Identities, IssueIdentities, OfServer};
use crate::metrics::Metrics;
use crate::object;
use crate::proxies::{self, Proxies};
use crate::server::{ANONYMOUS_MAX, CONNECTIONS_MAX, Closing, Server};
use crate::store::Store;
use crate::store::embedded::{EmbeddedStore, STORE_FILE};
use crate::store::etcd::{EtcdSettings, EtcdStore, Mirror, Shared};
use crate::store::history::HistoryLimits;
use crate::xds::Streams;

/// Maximum number of queued batches of changes before findings are computed.
const FEED_MAX: usize = 16;

/// Namespace whose Secrets the initial proxy token may read, which is the default namespace of a proxy.
const PROXY_NAMESPACE: &str = "default";

/// Default context name in kubeconfig files.
pub const CONTEXT: &str = "strait";

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Data directory.
    pub data: PathBuf,
    /// Listen address.
    pub listen: SocketAddr,
    /// Certificate of the operator; `None` for one from the server's own CA.
    pub tls: Option<pki::Files>,
    /// Additional names and addresses in the server certificate.
    pub names: Vec<String>,
    /// Limits of the history that watches can resume from.
    pub history: HistoryLimits,
    /// Context name in the kubeconfig files of the data directory. Distinct names allow the files of several servers
    /// to be merged.
    pub context: String,
    /// Whether the server writes conditions to the status of objects.
    pub writes_status: bool,
    /// Controller of the Gateway API.
    pub controller: GatewayController,
    /// etcd that replicas share; `None` for a store in the data directory.
    pub etcd: Option<EtcdSettings>,
    /// CA of workloads; `None` for a server without one.
    pub identities: Option<IssueIdentities>,
    /// Maximum number of concurrent connections.
    pub connections_max: usize,
    /// Maximum duration of a connection without an authenticated request.
    pub anonymous_max: Duration,
}

impl Settings {
    /// Returns the default settings for a data directory and a listen address.
    pub fn new(data: PathBuf, listen: SocketAddr) -> Settings {
        Settings {
            data,
            listen,
            tls: None,
            names: Vec::new(),
            history: HistoryLimits::default(),
            context: CONTEXT.to_owned(),
            writes_status: true,
            controller: GatewayController::default(),
            etcd: None,
            identities: None,
            connections_max: CONNECTIONS_MAX,
            anonymous_max: ANONYMOUS_MAX,
        }
    }
}

/// Server that listens and is ready to serve.
#[derive(Debug)]
pub struct Running {
    /// Bound listen address.
    pub address: SocketAddr,
    server: Server,
    listener: TcpListener,
    writes_status: bool,
    controller: GatewayController,
    /// etcd through which replicas share proxy reports; `None` for a single server.
    shared: Option<Shared>,
    /// Whether this server is the leader, which alone writes conditions.
    is_leader: watch::Receiver<bool>,
    /// Tasks that end with the server.
    tasks: JoinSet<()>,
    _lock: File,
}

impl Running {
    /// Serves until the future is dropped.
    pub async fn serve(self) {
        let mut tasks = self.tasks;
        let proxies = Arc::clone(&self.server.proxies);
        let store = Arc::clone(&self.server.api.store);
        tasks.spawn(proxies::follow_writes(store, Arc::clone(&proxies)));
        let api = self.server.api.clone();
        tasks.spawn(collector::collect(api, self.is_leader.clone()));
        if let Some(shared) = &self.shared {
            tasks.spawn(proxies::share(shared.clone(), Arc::clone(&proxies)));
        }
        if self.writes_status {
            let (sender, feed) = mpsc::channel(FEED_MAX);
            let store = Arc::clone(&self.server.api.store);
            tasks.spawn(conditions::follow(store, sender));
            let writer = conditions::Writer::Store(self.server.api.clone());
            let engine = conditions::Engine::new(self.controller.clone());
            let reports = conditions::Reports::new(proxies, Instant::now());
            let run = conditions::run(engine, feed, Some(reports), writer, self.is_leader);
            tasks.spawn(run);
        }
        self.server.serve(self.listener).await;
    }

    /// Returns the table of proxies.
    pub fn proxies(&self) -> Arc<Proxies> {
        Arc::clone(&self.server.proxies)
    }

    /// Returns the store of this server.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.server.api.store)
    }
}

/// Opens the data directory, creates missing files, and listens.
///
/// # Errors
/// If a setting, the data directory or etcd is unusable, as a message.
pub async fn start(settings: &Settings) -> Result<Running, String> {
    let data = &settings.data;
    let in_data = |error: std::io::Error| format!("{}: {error}", data.display());
    files::make_private_dir(data).map_err(in_data)?;
    if files::is_open_to_others(data) {
        tracing::warn!(
            directory = %data.display(),
            "other users can list or change the data directory, which holds keys and tokens: run `chmod 700` on it"
        );
    }
    // Take the lock first, so that a second server changes nothing.
    let lock = files::lock(&data.join("lock"))?;
    files::check_restored(data)?;
    let (store, users, is_leader) = open(settings).await?;
    let (attempts, metrics) = (Arc::<Attempts>::default(), Arc::<Metrics>::default());
    let audit = Audit::at(data.join("audit.log")).map(Arc::new);
    let audit = Some(audit.map_err(in_data)?);
    let of_server = OfServer {
        failed: Arc::clone(&attempts),
        metrics: Arc::clone(&metrics),
        audit: audit.clone(),
    };
    let mut tasks = JoinSet::new();
    let issue = settings.identities.as_ref();
    let identities = issue.map(|it| Identities::of_store(it, &store, of_server, &mut tasks));
    let names = pki::names_for(settings.listen.ip(), &settings.names);
    let material = pki::prepare(data, settings.tls.as_ref(), &names, |users| {
        EitherVerifier::of(users, identities.as_ref())
    })?;
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", settings.listen))?;
    let address = listener.local_addr().map_err(in_data)?;
    write_kubeconfigs(settings, &users, address, &material.ca).await?;
    let shared = settings.etcd.as_ref().map(Shared::new).transpose()?;
    let (api, proxies) = (Api::new(store), Arc::default());
    if let Err(error) = api.ensure_namespace(Some(DEFAULT)).await {
        let error = error.message;
        tracing::warn!(error, "the namespace {DEFAULT:?} cannot be made");
    }
    let server = Server {
        xds: Streams::new(&api, &proxies, &metrics),
        api,
        proxies,
        metrics,
        users: access::Users::Tokens(Arc::new(users.tokens())),
        attempts,
        audit,
        identities,
        tls: material.tls,
        user_certificates: Some(material.users),
        data: data.clone(),
        connections_max: settings.connections_max.min(CONNECTIONS_MAX),
        anonymous_max: settings.anonymous_max,
        closing: Closing::never(),
    };
    Ok(Running {
        address,
        server,
        listener,
        writes_status: settings.writes_status,
        controller: settings.controller.clone(),
        shared,
        is_leader,
        tasks,
        _lock: lock,
    })
}

/// Writes the kubeconfigs of the data directory, with new tokens where there are none.
async fn write_kubeconfigs(
    settings: &Settings,
    users: &Users,
    address: SocketAddr,
    ca: &str,
) -> Result<(), String> {
    let data = &settings.data;
    let proxy = Role::Proxy(vec![PROXY_NAMESPACE.to_owned()]);
    for (name, role) in [("admin", Role::Admin), ("proxy", proxy)] {
        let path = data.join(format!("{name}.kubeconfig"));
        let token = match token_in(&path) {
            Some(token) => token,
            None => users.create(name, role).await?,
        };
        let kubeconfig = Kubeconfig {
            context: &settings.context,
            user: name,
            token: &token,
        };
        let text = kubeconfig.text(&host_and_port(address, &settings.names), ca);
        write_changed(&path, &text).map_err(|error| format!("{}: {error}", data.display()))?;
    }
    Ok(())
}

/// Opens the store. With etcd, copies the CA that replicas share to the data directory.
async fn open(
    settings: &Settings,
) -> Result<(Arc<dyn Store>, Users, watch::Receiver<bool>), String> {
    let data = &settings.data;
    let Some(etcd) = &settings.etcd else {
        check_store_is_there(data)?;
        check_tokens(data)?;
        let store = EmbeddedStore::open(&data.join(STORE_FILE), settings.history)?;
        // An embedded store has one server, which is the leader.
        let (_, is_leader) = watch::channel(true);
        let users = Users::InFile(tokens::file_in(data));
        return Ok((Arc::new(store), users, is_leader));
    };
    let shared = Shared::new(etcd)?;
    let restoring = shared.restoring().await;
    let restoring = restoring.map_err(|error| format!("{}: {error}", etcd.urls.join(",")))?;
    if let Some(backup) = restoring {
        return Err(format!(
            "etcd has a part of a backup, {backup}, whose restore did not finish: run `strait control restore` again"
        ));
    }
    let mirror = Arc::new(Mirror::default());
    let store = EtcdStore::open(etcd, settings.history, &mirror).await?;
    let is_leader = store.follow_leadership();
    let own = pki::Authority::in_dir(data)?;
    let value = serde_json::to_vec(&own).map_err(|error| error.to_string())?;
    let value = shared.authority(value.into()).await;
    let value = value.map_err(|error| error.to_string())?;
    let authority: pki::Authority = serde_json::from_slice(&value)
        .map_err(|error| format!("the CA in etcd cannot be read: {error}"))?;
    if authority != own {
        authority.write_to(data)?;
    }
    let users = Users::InEtcd { shared, mirror };
    Ok((Arc::new(store), users, is_leader))
}

/// Checks that a used data directory still has its store, so that the server does not start with an empty one.
fn check_store_is_there(data: &Path) -> Result<(), String> {
    let path = data.join(STORE_FILE);
    let length = std::fs::metadata(&path).ok().map(|found| found.len());
    // Both files are created after the store. With etcd, a server has no token file.
    let was_used = data.join("admin.kubeconfig").exists() && tokens::file_in(data).exists();
    let what = match length {
        Some(1..) => return Ok(()),
        _ if !was_used => return Ok(()),
        Some(0) => "empty",
        None => "missing",
    };
    Err(format!(
        "{} is {what}, and this data directory had objects: restore a backup into a new one with `strait control restore`. \
         To begin without objects, remove tokens.json and the kubeconfigs",
        path.display()
    ))
}

/// Checks that the token file is not lost or damaged: the server would reject every request.
fn check_tokens(data: &Path) -> Result<(), String> {
    let path = tokens::file_in(data);
    let what = match tokens::load(&path) {
        Err(error) => format!("is damaged: {error}"),
        Ok(_) if !path.exists() && data.join("admin.kubeconfig").exists() => {
            "is missing".to_owned()
        }
        Ok(_) => return Ok(()),
    };
    Err(format!(
        "{} {what}: without it no token is valid. Restore a backup into a new data directory with `strait control restore`, or \
         remove it and the kubeconfigs to have new tokens made",
        path.display()
    ))
}

/// Storage of the users' tokens.
enum Users {
    InFile(PathBuf),
    InEtcd { shared: Shared, mirror: Arc<Mirror> },
}

impl Users {
    fn tokens(self) -> tokens::Tokens {
        match self {
            Users::InFile(path) => tokens::Tokens::at(path),
            Users::InEtcd { mirror, .. } => tokens::Tokens::shared(mirror),
        }
    }

    /// Creates the token of a kubeconfig. The name gets a suffix if another replica, or a restored backup, already
    /// uses it.
    async fn create(&self, name: &str, role: Role) -> Result<String, String> {
        let mut free = name.to_owned();
        loop {
            if let Some(token) = self.create_named(&free, role.clone()).await? {
                return Ok(token);
            }
            free = format!("{name}-{}", object::random_suffix());
        }
    }

    /// Creates a token; `None` if the name is taken.
    async fn create_named(&self, name: &str, role: Role) -> Result<Option<String>, String> {
        match self {
            Users::InFile(path) => {
                let in_file = |error: std::io::Error| format!("{}: {error}", path.display());
                let known = tokens::load(path).map_err(in_file)?;
                if known.iter().any(|token| token.name == name) {
                    return Ok(None);
                }
                tokens::create(path, name, role, None)
                    .map(Some)
                    .map_err(in_file)
            }
            Users::InEtcd { shared, mirror } => {
                let created = tokens::create_shared(shared, name, role, None).await?;
                if created.is_some() {
                    // The first request may arrive before the etcd watch delivers the token.
                    let loaded = shared.load_tokens(mirror).await;
                    loaded.map_err(|error| error.to_string())?;
                }
                Ok(created)
            }
        }
    }
}

/// Returns the token of a kubeconfig, if there is one.
fn token_in(path: &Path) -> Option<String> {
    let known = std::fs::read_to_string(path).ok()?;
    let token = known
        .lines()
        .find_map(|line| line.trim().strip_prefix("token: "));
    token.map(str::to_owned)
}

fn write_changed(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    files::write_private(path, text.as_bytes())
}

/// Returns host and port of the server for a kubeconfig: the first name from the settings, or else its address.
fn host_and_port(address: SocketAddr, names: &[String]) -> String {
    let port = address.port();
    match names.first() {
        Some(name) if name.contains(':') => format!("[{name}]:{port}"),
        Some(name) => format!("{name}:{port}"),
        None if address.ip().is_unspecified() => format!("localhost:{port}"),
        None => address.to_string(),
    }
}

/// Kubeconfig of a user.
struct Kubeconfig<'a> {
    context: &'a str,
    user: &'a str,
    token: &'a str,
}

impl Kubeconfig<'_> {
    fn text(&self, host: &str, ca: &str) -> String {
        let Kubeconfig {
            context,
            user,
            token,
        } = self;
        // Merged kubeconfigs need distinct user names as well.
        let user = match *context {
            CONTEXT => (*user).to_owned(),
            context => format!("{context}-{user}"),
        };
        let ca = STANDARD.encode(ca);
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: {context}
  cluster:
    server: https://{host}
    certificate-authority-data: {ca}
users:
- name: {user}
  user:
    token: {token}
contexts:
- name: {context}
  context:
    cluster: {context}
    user: {user}
current-context: {context}
"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubeconfig_names_the_server_as_the_operator_does() {
        let of = |address: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            host_and_port(address.parse().unwrap(), &names)
        };
        assert_eq!(of("0.0.0.0:6444", &[]), "localhost:6444");
        assert_eq!(of("10.0.0.1:6444", &[]), "10.0.0.1:6444");
        let names = ["control.mesh.svc", "10.0.0.9"];
        assert_eq!(of("0.0.0.0:6444", &names), "control.mesh.svc:6444");
        assert_eq!(of("127.0.0.1:6444", &["fd00::1"]), "[fd00::1]:6444");
    }
}
