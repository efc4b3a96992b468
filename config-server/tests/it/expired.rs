//! Server with an expired certificate: the diagnostic names the problem and the fix.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config_loader::{
    ControlServer, ControlSettings, Fleet, KubernetesSettings, SourceErrors, Sources,
    WatchSettings, XdsSettings,
};
use grpc_client::ClientTlsFiles;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls_pki_types::PrivatePkcs8KeyDer;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// Maximum time for one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a server with a certificate that expired in 2020, and writes its CA to `ca`.
async fn expired_server(ca: &Path) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&ca_key).unwrap();
    std::fs::write(ca, authority.pem()).unwrap();
    let issuer = Issuer::new(params, ca_key);
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2019, 1, 1);
    params.not_after = date_time_ymd(2020, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The client rejects the certificate.
            let _ = acceptor.accept(stream).await;
        }
    });
    (address, task)
}

/// Returns the settings of `--control` for a server.
fn settings(control: &str, ca: &Path, kubeconfig: &Path) -> ControlSettings {
    let mut settings = ControlSettings::default();
    match control.parse().unwrap() {
        ControlServer::Kubernetes(server) => {
            settings.kubernetes = KubernetesSettings {
                servers: vec![server],
                kubeconfig: Some(kubeconfig.to_owned()),
                ..KubernetesSettings::default()
            }
        }
        ControlServer::Xds(server) => {
            settings.xds = XdsSettings {
                servers: vec![server],
                tls: ClientTlsFiles {
                    ca: Some(ca.to_owned()),
                    ..ClientTlsFiles::default()
                },
                ..XdsSettings::default()
            }
        }
    }
    settings
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_certificate_of_a_server_is_named_with_the_fix() {
    let files = tempfile::tempdir().unwrap();
    let [ca, kubeconfig] = ["ca.crt", "kubeconfig"].map(|name| files.path().join(name));
    let (address, _server) = expired_server(&ca).await;
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'https://{address}', certificate-authority: {}}}}}]\n",
        ca.display()
    );
    std::fs::write(&kubeconfig, text).unwrap();
    for control in ["kubernetes://".to_owned(), format!("xds://{address}")] {
        let errors = SourceErrors::default();
        let sources = Sources {
            control: Some(settings(&control, &ca, &kubeconfig)),
            errors: errors.clone(),
            ..Sources::default()
        };
        let (sender, mut updates) = mpsc::unbounded_channel();
        let on_update = move |update: config_loader::Update| _ = sender.send(update);
        let watching = WatchSettings::default();
        let (_, _watch) =
            config_loader::watch_for(Fleet::default, &sources, watching, on_update).unwrap();
        let search = async {
            loop {
                let update = updates.recv().await.unwrap();
                let mut found = update.diagnostics.into_iter();
                if let Some(found) = found.find(|found| found.code.to_string() == "SRC007") {
                    return found;
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, search)
            .await
            .expect(&control);
        assert!(
            found.message.contains("certificate expired"),
            "{}",
            found.message
        );
        let help = format!("{:?}", found.help);
        assert!(
            help.contains("renew the certificate of the server"),
            "{help}"
        );
        let counts = errors.counts();
        assert!(
            counts
                .iter()
                .all(|(_, reason, _)| reason.as_str() == "unreachable"),
            "{counts:?}"
        );
        assert!(!counts.is_empty());
    }
}
