//! Secret with the certificate, which all replicas share: made by the first one, renewed by the one whose write wins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

use super::certificate::Material;
use crate::clock;

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

/// Keeps the Secret renewed, and gives its content to the server, until the receiver is dropped.
pub(crate) async fn follow(
    secrets: Api<Secret>,
    name: String,
    names: Vec<String>,
    served: watch::Sender<Option<Served>>,
) {
    let mut last = None;
    while !served.is_closed() {
        let step = current(&secrets, &name, &names).await.and_then(|material| {
            if last.as_ref() != Some(&material) {
                let tls = Arc::new(server_config(&material)?);
                let authorities = material.authorities.clone();
                let _ = served.send(Some(Served { tls, authorities }));
                last = Some(material);
            }
            Ok(())
        });
        if let Err(error) = &step {
            tracing::error!(%error, secret = name, "the certificate is not up to date");
        }
        tokio::time::sleep(if step.is_ok() { INTERVAL } else { RETRY }).await;
    }
}

/// Returns the material that counts now: that of the Secret, or what replaces it, once it is written.
async fn current(secrets: &Api<Secret>, name: &str, names: &[String]) -> Result<Material, String> {
    let now = i64::try_from(clock::seconds_now()).unwrap_or(i64::MAX);
    let said = |error: kube::Error| error.to_string();
    let Some(found) = secrets.get_opt(name).await.map_err(said)? else {
        let material = Material::new(now, names)?;
        return match secrets
            .create(&PostParams::default(), &secret(name, &material, None))
            .await
        {
            Ok(_) => Ok(material),
            // another replica was faster: its material is read by the next attempt
            Err(error) => Err(said(error)),
        };
    };
    let material = material(&found)?;
    let Some(renewed) = material.renewed(now, names)? else {
        return Ok(material);
    };
    let replacement = secret(name, &renewed, found.metadata.resource_version);
    match secrets
        .replace(name, &PostParams::default(), &replacement)
        .await
    {
        Ok(_) => Ok(renewed),
        Err(error) => Err(said(error)),
    }
}

fn secret(name: &str, material: &Material, resource_version: Option<String>) -> Secret {
    let texts = [
        &material.authorities,
        &material.authority_key,
        &material.certificate,
        &material.key,
    ];
    let data = FIELDS.into_iter().zip(texts);
    let data = data.map(|(field, text)| (field.to_owned(), ByteString(text.clone().into_bytes())));
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([(
                "app.kubernetes.io/part-of".to_owned(),
                "strait".to_owned(),
            )])),
            resource_version,
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(data.collect()),
        ..Secret::default()
    }
}

fn material(secret: &Secret) -> Result<Material, String> {
    let field = |name: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(name));
        let text = bytes.and_then(|bytes| String::from_utf8(bytes.0.clone()).ok());
        text.ok_or_else(|| {
            format!("the Secret has no text `{name}`; delete it, and it is made again")
        })
    };
    let [authorities, authority_key, certificate, key] = FIELDS.map(field);
    Ok(Material {
        authorities: authorities?,
        authority_key: authority_key?,
        certificate: certificate?,
        key: key?,
    })
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
