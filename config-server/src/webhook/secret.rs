//! Secret with the certificate, which all replicas share: made by the first one, renewed by the one whose write wins. Or
//! files with one that somebody else makes and renews.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

use super::certificate::Material;
use crate::access::pki::Files;
use crate::clock;
use crate::shared_secret::{self, Content};

/// Returns the name of the Secret of a revision: two of them may share a namespace.
pub(crate) fn name_for(revision: &str) -> String {
    match revision {
        "strait" => "strait-webhook".to_owned(),
        other => format!("strait-webhook-{other}"),
    }
}

/// Certificate in use: its TLS settings, and the CA that clients trust, as PEM.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) tls: Arc<ServerConfig>,
    pub(crate) authorities: String,
}

/// Fields of the Secret.
const FIELDS: [&str; 4] = ["ca.crt", "ca.key", "tls.crt", "tls.key"];

/// Interval between readings: within it, a replica serves what another one has written.
const INTERVAL: Duration = Duration::from_secs(10);

/// Pauses after errors.
const RETRY: Duration = Duration::from_secs(1);

/// Source of the certificate.
pub(crate) enum Source {
    /// Files, which are read again.
    Files(Files),
    /// Secret with this name, kept renewed for these names of the server.
    Secret(Api<Secret>, String, Vec<String>),
}

impl Source {
    async fn current(&self) -> Result<Material, String> {
        match self {
            Source::Files(files) => read(files),
            Source::Secret(secrets, name, names) => current(secrets, name, names).await,
        }
    }
}

/// Gives the certificate to the server, and what replaces it, until the receiver is dropped.
pub(crate) async fn follow(source: Source, served: watch::Sender<Option<Served>>) {
    let mut last = None;
    while !served.is_closed() {
        let step = source.current().await.and_then(|material| {
            if last.as_ref() != Some(&material) {
                let tls = Arc::new(server_config(&material)?);
                let authorities = material.authorities.clone();
                let _ = served.send(Some(Served { tls, authorities }));
                last = Some(material);
            }
            Ok(())
        });
        if let Err(error) = &step {
            tracing::error!(%error, "the certificate of the webhook is not up to date");
        }
        tokio::time::sleep(if step.is_ok() { INTERVAL } else { RETRY }).await;
    }
}

/// Reads a certificate and its key.
fn read(files: &Files) -> Result<Material, String> {
    let text = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    Ok(Material {
        authorities: String::new(),
        authority_key: String::new(),
        certificate: text(&files.certificate)?,
        key: text(&files.key)?,
    })
}

/// Returns the material that counts now: that of the Secret, or what replaces it, once it is written.
async fn current(secrets: &Api<Secret>, name: &str, names: &[String]) -> Result<Material, String> {
    let now = i64::try_from(clock::seconds_now()).unwrap_or(i64::MAX);
    let counts = shared_secret::change(secrets, name, |found: Option<&Material>| match found {
        None => Material::new(now, names).map(Some),
        Some(material) => material.renewed(now, names),
    });
    counts.await?.ok_or_else(|| "it was not made".to_owned())
}

impl Content for Material {
    const TYPE: &'static str = "kubernetes.io/tls";

    fn fields(&self) -> Result<Vec<(&'static str, String)>, String> {
        let texts = [
            &self.authorities,
            &self.authority_key,
            &self.certificate,
            &self.key,
        ];
        Ok(FIELDS.into_iter().zip(texts.map(Clone::clone)).collect())
    }

    fn read(field: impl Fn(&str) -> Result<String, String>) -> Result<Self, String> {
        let [authorities, authority_key, certificate, key] = FIELDS.map(field);
        Ok(Self {
            authorities: authorities?,
            authority_key: authority_key?,
            certificate: certificate?,
            key: key?,
        })
    }
}

/// Returns the TLS settings of a server with the certificate.
pub(super) fn server_config(material: &Material) -> Result<ServerConfig, String> {
    let said = |error: rustls_pki_types::pem::Error| error.to_string();
    let chain = CertificateDer::pem_slice_iter(material.certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(said)?;
    let key = PrivateKeyDer::from_pem_slice(material.key.as_bytes()).map_err(said)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
