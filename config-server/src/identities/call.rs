//! One call of `istio.v1.auth.IstioCertificateService/CreateCertificate`.

use std::net::IpAddr;
use std::pin::Pin;

use http::{Request, Response};
use hyper::body::Incoming;
use prost_types::Struct;
use prost_types::value::Kind;
use serde_json::json;
use tonic::Status;
use tonic::server::{Grpc, UnaryService};
use tonic_prost::ProstCodec;

use super::Identities;
use super::caller::Caller;
use super::profile::REQUEST_BYTES_MAX;
use crate::api::respond::Body;
use crate::grpc::body_of;

/// Path of the call.
pub const PATH: &str = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

/// Maximum size of a message: a request with its metadata.
const MESSAGE_BYTES_MAX: usize = REQUEST_BYTES_MAX + (4 << 10);

/// `istio.v1.auth.IstioCertificateRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CertificateRequest {
    /// Request in PEM (PKCS #10).
    #[prost(string, tag = "1")]
    pub(super) csr: String,
    /// Seconds that the certificate should be valid for; 0 for the maximum.
    #[prost(int64, tag = "3")]
    pub(super) validity_duration: i64,
    /// Further wishes.
    #[prost(message, optional, tag = "4")]
    metadata: Option<Struct>,
}

impl CertificateRequest {
    /// Whether a node agent asks for the identity of a workload, as ztunnel does.
    pub(super) fn impersonates(&self) -> bool {
        let fields = self.metadata.as_ref().map(|metadata| &metadata.fields);
        let identity = fields.and_then(|fields| fields.get("ImpersonatedIdentity"));
        let identity = identity.and_then(|value| value.kind.as_ref());
        matches!(identity, Some(Kind::StringValue(identity)) if !identity.is_empty())
    }
}

/// `istio.v1.auth.IstioCertificateResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CertificateResponse {
    /// Certificates in PEM: the workload's own, intermediate ones, and the roots last.
    #[prost(string, repeated, tag = "1")]
    cert_chain: Vec<String>,
}

/// Answers a call of a caller.
pub(super) async fn answer(
    identities: Identities,
    caller: Caller,
    address: IpAddr,
    request: Request<Incoming>,
) -> Response<Body> {
    let codec = ProstCodec::<CertificateResponse, CertificateRequest>::default();
    let mut grpc = Grpc::new(codec).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let sign = Sign {
        identities,
        caller,
        address,
    };
    body_of(grpc.unary(sign, request).await)
}

/// Call whose caller is known.
struct Sign {
    identities: Identities,
    caller: Caller,
    address: IpAddr,
}

type Answer = Result<tonic::Response<CertificateResponse>, Status>;

impl UnaryService<CertificateRequest> for Sign {
    type Response = CertificateResponse;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn call(&mut self, request: tonic::Request<CertificateRequest>) -> Self::Future {
        let (identities, caller, address) =
            (self.identities.clone(), self.caller.clone(), self.address);
        Box::pin(async move {
            let parts = &identities.0;
            let signed = parts.sign(&caller, address, request.get_ref()).await;
            if let Err(status) = &signed {
                let account = format!("{}/{}", caller.namespace, caller.service_account);
                let line = json!({
                    "refused": status.message(), "account": account, "pod": caller.pod,
                });
                parts.record(address, &line);
            }
            let cert_chain = signed?;
            Ok(tonic::Response::new(CertificateResponse { cert_chain }))
        })
    }
}
