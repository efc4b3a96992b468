//! `strait control --serve`: the hub, which follows an API server once, and serves its objects to many proxies.
//!
//! The server is that of `setup`, over a [`MirrorStore`]. Users are the service accounts of pods; the certificate is that of
//! the webhook, whose CA each consenting namespace gets in a ConfigMap.

mod authority;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config_loader::ApiServer;
use config_loader::source::FollowedObjects;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use self::authority::{HUB_CA, IDENTITY_ROOTS, Publish};
use crate::access::Users;
use crate::access::attempts::Attempts;
use crate::access::reviews::{self, Reviews};
use crate::api::Api;
use crate::identities::{self, Identities, IssueIdentities, Keep, OfServer};
use crate::metrics::Metrics;
use crate::mirror::MirrorStore;
use crate::proxies::{self, Proxies};
use crate::remote::Remote;
use crate::server::{ANONYMOUS_MAX, CONNECTIONS_MAX, Closing, Server};
use crate::store::Store;
use crate::webhook::secret::Served;
use crate::webhook::{Shared, bind, health};
use crate::xds::Streams;

/// Settings of the hub.
#[derive(Clone, Debug)]
pub struct Hub {
    /// Address of the API and of xDS.
    pub listen: SocketAddr,
    /// Maximum number of concurrent connections.
    pub connections_max: usize,
    /// CA of workloads; `None` without the role.
    pub identities: Option<IssueIdentities>,
    /// Whether Pods, Nodes and Namespaces are served.
    pub serves_workloads: bool,
}

/// Running hub.
pub(crate) struct Started {
    pub(crate) address: SocketAddr,
    pub(crate) shown: health::Hub,
    /// Source of the objects, whose end may block.
    pub(crate) followed: FollowedObjects,
    /// Server, which ends after the listeners close.
    pub(crate) server: JoinHandle<()>,
}

impl Hub {
    /// Starts to serve the objects of an API server. `tasks` gets what has to run beside the server. Once the listener
    /// closes, connections end at random `within` a time.
    ///
    /// # Errors
    /// If the address cannot be listened on, or a thread cannot be started.
    pub(crate) async fn start(
        self,
        of: (ApiServer, Option<PathBuf>),
        shared: &Shared,
        within: Duration,
        tasks: &mut JoinSet<()>,
    ) -> Result<Started, String> {
        let (api_server, kubeconfig) = of;
        let (listener, address) = bind(self.listen).await?;
        let mirror = Arc::new(MirrorStore::new(shared.client.clone()));
        let followed = mirror.follow(
            api_server.clone(),
            kubeconfig.clone(),
            self.serves_workloads,
        );
        let followed = followed.map_err(|error| format!("cannot start a thread: {error}"))?;
        let (proxies, metrics) = (Arc::<Proxies>::default(), Arc::<Metrics>::default());
        let attempts = Arc::<Attempts>::default();
        let remote = Remote::new(api_server, kubeconfig);
        let identities = self.identities.as_ref().map(|issue| {
            let of_server = OfServer {
                failed: Arc::clone(&attempts),
                metrics: Arc::clone(&metrics),
                audit: None,
            };
            let keep = Keep::of_cluster(shared.client.clone(), &shared.namespace);
            let reviews = Reviews::of(remote.clone(), identities::AUDIENCE);
            Identities::of_cluster(issue, (reviews, keep), of_server, tasks)
        });
        publish(shared, identities.as_ref(), tasks);
        let api = Api::new(Arc::clone(&mirror) as Arc<dyn Store>);
        let server = Server {
            xds: Streams::new(&api, &proxies, &metrics),
            api,
            proxies: Arc::clone(&proxies),
            metrics: Arc::clone(&metrics),
            users: Users::Reviews(Arc::new(Reviews::of(remote, reviews::AUDIENCE))),
            attempts,
            audit: None,
            identities: identities.clone(),
            tls: Arc::new(tls(shared.certificate.clone())?),
            user_certificates: None,
            data: PathBuf::new(),
            connections_max: self.connections_max.min(CONNECTIONS_MAX),
            anonymous_max: ANONYMOUS_MAX,
            closing: Closing {
                is_closing: shared.closing.clone(),
                within,
            },
        };
        tasks.spawn(follow_writes(Arc::clone(&mirror), Arc::clone(&proxies)));
        Ok(Started {
            address,
            shown: health::Hub {
                mirror,
                proxies,
                metrics,
                keys: identities.map(|identities| identities.in_use()),
            },
            followed,
            server: tokio::spawn(server.serve(listener)),
        })
    }
}

/// Publishes what workloads trust to the namespaces that ask for sidecars.
fn publish(shared: &Shared, identities: Option<&Identities>, tasks: &mut JoinSet<()>) {
    let revision = shared.settings.borrow().revision.clone();
    let publish = Publish::new(shared.client.clone(), revision);
    if let Some(identities) = identities {
        let publish = publish.clone();
        tasks.spawn(publish.follow(IDENTITY_ROOTS, identities.in_use(), |keys| keys.roots()));
    }
    let certificate = shared.certificate.clone();
    tasks.spawn(publish.follow(HUB_CA, certificate, |served| &served.authorities));
}

/// Records changes for the reports of proxies, from the end of the first list on.
async fn follow_writes(mirror: Arc<MirrorStore>, proxies: Arc<Proxies>) {
    let is_complete = mirror.is_complete().wait_for(|it| *it).await.is_ok();
    if is_complete {
        proxies::follow_writes(mirror, proxies).await;
    }
}

/// Returns TLS settings with the certificate that is in use at each handshake.
fn tls(certificate: watch::Receiver<Option<Served>>) -> Result<ServerConfig, String> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(InUse(certificate)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Certificate in use.
#[derive(Debug)]
struct InUse(watch::Receiver<Option<Served>>);

impl ResolvesServerCert for InUse {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let served = self.0.borrow().clone()?;
        served.tls.cert_resolver.resolve(hello)
    }
}
