//! Messages of the SPIFFE Workload API, and the identity in them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::uri::PathAndQuery;
use rustls_pki_types::CertificateDer;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::super::answer::Material;
use super::super::cause;
use crate::tls::pem::{CERTIFICATE, PRIVATE_KEY, REVOCATION_LIST, pem, split};
use crate::tls::spiffe::{self, Workload};
use crate::tls::{Problem, ProblemKind};

const FETCH: &str = "/SpiffeWorkloadAPI/FetchX509SVID";

/// Maximum size of a message, in bytes.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Maximum SPIFFE ids in a finding.
const IDS_MAX: usize = 10;

/// `X509SVIDRequest`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct SvidRequest {}

/// `X509SVIDResponse`. It is whole: what it lacks is gone.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(super) struct SvidResponse {
    /// Identities of the workload.
    #[prost(message, repeated, tag = "1")]
    svids: Vec<Svid>,
    /// Revocation lists, DER.
    #[prost(bytes = "vec", repeated, tag = "2")]
    crl: Vec<Vec<u8>>,
    /// CA certificates of other trust domains, DER one after the other.
    #[prost(map = "string, bytes", tag = "3")]
    federated_bundles: HashMap<String, Vec<u8>>,
}

/// `X509SVID`.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
struct Svid {
    /// SPIFFE id.
    #[prost(string, tag = "1")]
    spiffe_id: String,
    /// Chain, DER one after the other.
    #[prost(bytes = "vec", tag = "2")]
    x509_svid: Vec<u8>,
    /// Key (PKCS #8), DER.
    #[prost(bytes = "vec", tag = "3")]
    x509_svid_key: Vec<u8>,
    /// CA certificates of its trust domain, DER one after the other.
    #[prost(bytes = "vec", tag = "4")]
    bundle: Vec<u8>,
    /// Hint of the operator which identity is for what.
    #[prost(string, tag = "5")]
    hint: String,
}

/// Opens the stream of an agent.
pub(super) async fn fetch(channel: Channel) -> Result<Streaming<SvidResponse>, Status> {
    let mut grpc = Grpc::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(cause(&error)))?;
    let mut request = Request::new(SvidRequest {});
    // an agent refuses requests without it, which a browser may have been made to send
    let value = MetadataValue::from_static("true");
    request.metadata_mut().insert("workload.spiffe.io", value);
    let codec = ProstCodec::<SvidRequest, SvidResponse>::default();
    let path = PathAndQuery::from_static(FETCH);
    Ok(grpc
        .server_streaming(request, path, codec)
        .await?
        .into_inner())
}

impl SvidResponse {
    /// Returns the identity of a workload: that with the hint if there is one, else the first that fits.
    ///
    /// # Errors
    ///
    /// If none fits, or a mandatory field is empty or unreadable.
    pub(super) fn material(
        &self,
        workload: &Workload,
        hint: Option<&str>,
        place: &str,
    ) -> Result<Material, Problem> {
        let incomplete = |text: &str| {
            Problem::new(
                ProblemKind::Incomplete,
                place,
                format!("a message of the agent {text}"),
            )
        };
        if self.svids.is_empty() {
            return Err(incomplete("has no identity"));
        }
        if self.svids.iter().any(Svid::is_incomplete) {
            return Err(incomplete(
                "has an identity without id, certificate, key or bundle",
            ));
        }
        let is_meant = |svid: &&Svid| match hint {
            Some(hint) => svid.hint == hint,
            None => workload.has_id(&svid.spiffe_id),
        };
        let svid = self.svids.iter().find(is_meant);
        let svid = svid.ok_or_else(|| self.nothing_fits(hint, place))?;
        let unreadable = || incomplete("has certificates that cannot be read");
        let domain = spiffe::trust_domain(&svid.spiffe_id).ok_or_else(unreadable)?;
        let mut bundles = BTreeMap::new();
        for (domain, bundle) in &self.federated_bundles {
            let domain = spiffe::trust_domain(domain).unwrap_or(domain);
            let certificates = split(bundle).ok_or_else(unreadable)?;
            // an empty one verifies nothing, as none does
            if !certificates.is_empty() {
                bundles.insert(domain.into(), joined(&certificates));
            }
        }
        // never one that another trust domain sends for ours
        let own = split(&svid.bundle).ok_or_else(unreadable)?;
        bundles.insert(Arc::from(domain), joined(&own));
        let lists = self.crl.iter().map(|list| pem(REVOCATION_LIST, list));
        let lists: String = lists.collect();
        Ok(Material {
            chain: joined(&split(&svid.x509_svid).ok_or_else(unreadable)?),
            key: pem(PRIVATE_KEY, &svid.x509_svid_key).into_bytes(),
            bundles,
            revoked: (!lists.is_empty()).then(|| lists.into_bytes()),
        })
    }

    fn nothing_fits(&self, hint: Option<&str>, place: &str) -> Problem {
        let ids = self
            .svids
            .iter()
            .take(IDS_MAX)
            .map(|svid| match &*svid.hint {
                "" => svid.spiffe_id.clone(),
                hint => format!("{} (hint {hint})", svid.spiffe_id),
            });
        let ids = ids.collect::<Vec<_>>().join(", ");
        let (text, fix) = match hint {
            Some(hint) => (
                format!("no identity has the hint {hint}; the agent has {ids}"),
                "correct --workload-api-hint",
            ),
            None => (
                format!("no identity is that of this workload; the agent has {ids}"),
                "correct --namespace, --service-account or --trust-domain, name one by --workload-api-hint, or set \
                 --spiffe-id-format any",
            ),
        };
        let problem = Problem::new(ProblemKind::NoneFits, place, text);
        problem.with_fix(Some(fix.to_owned()))
    }
}

impl Svid {
    fn is_incomplete(&self) -> bool {
        let fields = [&self.x509_svid, &self.x509_svid_key, &self.bundle];
        self.spiffe_id.is_empty() || fields.into_iter().any(Vec::is_empty)
    }
}

fn joined(certificates: &[CertificateDer<'_>]) -> Vec<u8> {
    let each = certificates.iter().map(|one| pem(CERTIFICATE, one));
    each.collect::<String>().into_bytes()
}
