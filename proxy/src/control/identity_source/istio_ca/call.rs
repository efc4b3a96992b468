//! One call of an Istio CA, on a connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use grpc_client::Server;
use http::uri::PathAndQuery;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::control::certificates::Material;
use crate::control::identity_source::delivery::cause;
use crate::control::identity_source::settings::IstioCaSettings;

const CREATE: &str = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

/// Maximum size of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// `istio.v1.auth.IstioCertificateRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SigningRequest {
    /// Request in PEM (PKCS #10).
    #[prost(string, tag = "1")]
    csr: String,
    /// Seconds that the certificate should be valid for.
    #[prost(int64, tag = "3")]
    validity_duration: i64,
    /// Name of a signer; empty for that of the mesh.
    #[prost(message, optional, tag = "4")]
    metadata: Option<Struct>,
}

impl SigningRequest {
    pub(super) fn new(csr: String, validity: Duration) -> Self {
        let signer = Value {
            kind: Some(Kind::StringValue(String::new())),
        };
        Self {
            csr,
            validity_duration: validity.as_secs().try_into().unwrap_or(i64::MAX),
            metadata: Some(Struct {
                fields: BTreeMap::from([("CertSigner".to_owned(), signer)]),
            }),
        }
    }
}

/// `istio.v1.auth.IstioCertificateResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CertificateAnswer {
    /// Certificates in PEM: the workload's own, intermediate ones, and the root last.
    #[prost(string, repeated, tag = "1")]
    pub(super) cert_chain: Vec<String>,
}

/// Proof of the workload that a request is for.
pub(super) enum Proof {
    /// Certificate that is renewed, by which the connection is made.
    Certificate(Arc<Material>),
    /// Token.
    Token(String),
}

impl Proof {
    /// Returns certificate chain and key of the client.
    fn own(
        &self,
    ) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, Status> {
        let Self::Certificate(held) = self else {
            return Ok(None);
        };
        let unreadable = |error: rustls_pki_types::pem::Error| Status::internal(error.to_string());
        let chain = CertificateDer::pem_slice_iter(&held.chain).collect::<Result<_, _>>();
        let key = PrivateKeyDer::from_pem_slice(&held.key).map_err(unreadable)?;
        Ok(Some((chain.map_err(unreadable)?, key)))
    }
}

/// Asks the CA for a certificate. A new connection verifies the CA by the CA certificates that are on disk now.
pub(super) async fn call(
    settings: &IstioCaSettings,
    root: &[u8],
    proof: &Proof,
    signing: SigningRequest,
) -> Result<CertificateAnswer, Status> {
    let channel = channel(settings, root, proof)?;
    let mut grpc = Grpc::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(cause(&error)))?;
    let mut request = Request::new(signing);
    let metadata = request.metadata_mut();
    if let Proof::Token(token) = proof {
        metadata.insert("authorization", bearer(token)?);
    }
    metadata.insert("clusterid", ascii(&settings.cluster_id)?);
    let codec = ProstCodec::<SigningRequest, CertificateAnswer>::default();
    let answer = grpc.unary(request, PathAndQuery::from_static(CREATE), codec);
    Ok(answer.await?.into_inner())
}

/// Returns a channel to the server of the CA, which is verified by the CA certificates `root`.
pub(super) fn channel(
    settings: &IstioCaSettings,
    root: &[u8],
    proof: &Proof,
) -> Result<Channel, Status> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(root).flatten());
    if roots.is_empty() {
        let file = settings.server_root.display();
        let flag = settings.server_root_flag();
        let text = format!("{file} ({flag}) has no certificate of an authority");
        return Err(Status::unavailable(text));
    }
    let tls = grpc_client::client_tls_as(roots, proof.own()?, b"h2");
    let tls = tls.map_err(Status::unavailable)?;
    let server = Server {
        host: &settings.host,
        port: settings.port,
        name: settings.server_name.as_deref().unwrap_or(&settings.host),
    };
    grpc_client::channel_to(server, &tls).map_err(Status::unavailable)
}

/// Returns the value of `authorization` with a token.
pub(super) fn bearer(token: &str) -> Result<MetadataValue<Ascii>, Status> {
    let mut bearer = ascii(&format!("Bearer {token}"))?;
    bearer.set_sensitive(true);
    Ok(bearer)
}

/// Parses a value of metadata. The error does not repeat it.
fn ascii(text: &str) -> Result<MetadataValue<Ascii>, Status> {
    let value = text.parse();
    value.map_err(|_| Status::invalid_argument("the token or --ca-cluster-id is no header value"))
}
