//! One call of `istio.v1.auth.IstioCertificateService/CreateCertificate`.

use std::pin::Pin;

use http::{Request, Response};
use hyper::body::Incoming;
use prost_types::Struct;
use prost_types::value::Kind;
use tonic::Status;
use tonic::server::{Grpc, UnaryService};
use tonic_prost::ProstCodec;

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

/// Future of the certificates of an answer.
pub(super) type Signing = Pin<Box<dyn Future<Output = Result<Vec<String>, Status>> + Send>>;

/// Signer of one request.
pub(super) type Sign = Box<dyn FnOnce(CertificateRequest) -> Signing + Send>;

/// Answers a call by what `sign` makes of its request.
pub(super) async fn answer(request: Request<Incoming>, sign: Sign) -> Response<Body> {
    let codec = ProstCodec::<CertificateResponse, CertificateRequest>::default();
    let mut grpc = Grpc::new(codec).max_decoding_message_size(MESSAGE_BYTES_MAX);
    body_of(grpc.unary(Call(Some(sign)), request).await)
}

/// Call whose request is not read yet.
struct Call(Option<Sign>);

type Answer = Result<tonic::Response<CertificateResponse>, Status>;

impl UnaryService<CertificateRequest> for Call {
    type Response = CertificateResponse;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn call(&mut self, request: tonic::Request<CertificateRequest>) -> Self::Future {
        let signing = self.0.take().map(|sign| sign(request.into_inner()));
        Box::pin(async move {
            let signing = signing.ok_or_else(|| Status::internal("the call has begun already"))?;
            let cert_chain = signing.await?;
            Ok(tonic::Response::new(CertificateResponse { cert_chain }))
        })
    }
}
