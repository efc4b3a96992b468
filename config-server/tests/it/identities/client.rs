//! Client of `istio.v1.auth.IstioCertificateService`, as Istio's agent is one, and what it gets.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use config_server::identities::{Command, Keep, NewJoinToken, commands};
use http::uri::PathAndQuery;
use rcgen::{CertificateParams, DistinguishedName, KeyPair, SanType};
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::support::TestServer;

/// `istio.v1.auth.IstioCertificateRequest`, without its metadata.
#[derive(Clone, PartialEq, prost::Message)]
struct SigningRequest {
    #[prost(string, tag = "1")]
    csr: String,
    #[prost(int64, tag = "3")]
    validity_duration: i64,
}

/// `istio.v1.auth.IstioCertificateResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct SigningAnswer {
    #[prost(string, repeated, tag = "1")]
    cert_chain: Vec<String>,
}

/// Proof of a call.
#[derive(Clone)]
pub enum Proof {
    None,
    Token(String),
    Certificate(Workload),
}

/// Certificate of a workload, with its key and the roots that it trusts.
#[derive(Clone, Debug)]
pub struct Workload {
    pub chain: Vec<String>,
    pub roots: String,
    key: Arc<KeyPair>,
}

/// Returns a request without names, and its key.
pub fn csr() -> (String, KeyPair) {
    csr_for(&[])
}

/// Returns a request for these names, and its key.
pub fn csr_for(names: &[&str]) -> (String, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let names = names.iter().map(|name| match name.contains("://") {
        true => SanType::URI((*name).try_into().unwrap()),
        false => SanType::DnsName((*name).try_into().unwrap()),
    });
    params.subject_alt_names = names.collect();
    let request = params.serialize_request(&key).unwrap();
    (request.pem().unwrap(), key)
}

/// Creates a join token for `shop/ACCOUNT` in the store of the server.
pub async fn create_token(server: &TestServer, account: &str) -> String {
    let new = Command::CreateToken(NewJoinToken {
        namespace: "shop".to_owned(),
        service_account: account.to_owned(),
        uses: 1,
        expires_in: 3_600,
    });
    let keep = Keep::Store(Arc::clone(&server.store));
    let created = commands::run(&keep, &new).await.unwrap();
    created["token"].as_str().unwrap().to_owned()
}

/// Returns a connection to a server, with the certificate of the proof if it has one.
pub fn channel(server: &TestServer, proof: &Proof) -> Channel {
    channel_to(server.address, &server.data.path().join("ca.crt"), proof)
}

/// Returns a connection to an address, whose certificate this CA signed.
pub fn channel_to(address: std::net::SocketAddr, ca: &std::path::Path, proof: &Proof) -> Channel {
    let own = match proof {
        Proof::Certificate(workload) => Some(workload.own()),
        _ => None,
    };
    let tls = grpc_client::client_tls_as(grpc_client::roots(ca).unwrap(), own, b"h2").unwrap();
    grpc_client::channel(&address.ip().to_string(), address.port(), Some(&tls)).unwrap()
}

/// Makes a call.
pub async fn call(
    channel: Channel,
    proof: &Proof,
    csr: &str,
    validity_duration: i64,
) -> Result<Vec<String>, Status> {
    let mut grpc = tonic::client::Grpc::new(channel);
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let mut request = Request::new(SigningRequest {
        csr: csr.to_owned(),
        validity_duration,
    });
    if let Proof::Token(token) = proof {
        let bearer = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
    }
    let path = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
    let codec = ProstCodec::<SigningRequest, SigningAnswer>::default();
    let answer = grpc.unary(request, PathAndQuery::from_static(path), codec);
    Ok(answer.await?.into_inner().cert_chain)
}

/// Makes a call on a connection of its own.
pub async fn request(
    server: &TestServer,
    proof: &Proof,
    csr: &str,
    validity: i64,
) -> Result<Vec<String>, Status> {
    call(channel(server, proof), proof, csr, validity).await
}

impl Workload {
    /// Reads an answer.
    pub fn new(mut chain: Vec<String>, key: KeyPair) -> Self {
        Self {
            roots: chain.pop().unwrap(),
            chain,
            key: Arc::new(key),
        }
    }

    pub async fn join(server: &TestServer, token: &str) -> Result<Self, Status> {
        let (csr, key) = csr();
        let answer = request(server, &Proof::Token(token.to_owned()), &csr, 0).await?;
        Ok(Self::new(answer, key))
    }

    pub async fn renew(&self, server: &TestServer) -> Result<Self, Status> {
        let (csr, key) = csr();
        let answer = request(server, &Proof::Certificate(self.clone()), &csr, 0).await?;
        Ok(Self::new(answer, key))
    }

    fn ders(&self) -> Vec<CertificateDer<'static>> {
        let ders = self.chain.iter();
        ders.map(|pem| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
            .collect()
    }

    fn own(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        (self.ders(), key)
    }

    pub fn id(&self) -> String {
        let der = &self.ders()[0];
        let (_, parsed) = X509Certificate::from_der(der).unwrap();
        let names = parsed.subject_alternative_name().unwrap().unwrap().value;
        let [GeneralName::URI(id)] = names.general_names[..] else {
            panic!("{names:?}");
        };
        id.to_owned()
    }

    pub fn seconds_left(&self) -> i64 {
        let der = &self.ders()[0];
        let (_, parsed) = X509Certificate::from_der(der).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        parsed.validity().not_after.timestamp() - i64::try_from(now.as_secs()).unwrap()
    }

    /// Verifies the certificate of a peer by the roots that this workload trusts.
    pub fn accepts(&self, peer: &Workload) -> Result<(), rustls::Error> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(self.roots.as_bytes()) {
            roots.add(root.unwrap()).unwrap();
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let chain = peer.ders();
        let verifier = verifier.build().unwrap();
        let verified = verifier.verify_client_cert(&chain[0], &chain[1..], UnixTime::now());
        verified.map(|_| ())
    }

    /// Sends a request without a token, with the certificate of this workload; returns the status code.
    pub async fn get(&self, server: &TestServer, path: &str) -> u16 {
        let (chain, key) = self.own();
        let roots = grpc_client::roots(&server.data.path().join("ca.crt")).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .unwrap();
        let mut client = crate::support::Client::connect_by(server.address, config).await;
        client.get(path).await.code
    }
}
