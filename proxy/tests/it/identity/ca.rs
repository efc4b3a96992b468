//! CA with the service of Istio's, for tests. The token of a workload is `NAMESPACE/ACCOUNT`, and says who it is.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Incoming;
use tonic::server::UnaryService;
use tonic::{Code, Response, Status};
use tonic_prost::ProstCodec;

use crate::support::origin::Body;
use crate::support::pki::Authority;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

/// `istio.v1.auth.IstioCertificateRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SigningRequest {
    #[prost(string, tag = "1")]
    pub(crate) csr: String,
    #[prost(int64, tag = "3")]
    pub(crate) validity_duration: i64,
    #[prost(message, optional, tag = "4")]
    pub(crate) metadata: Option<prost_types::Struct>,
}

/// `istio.v1.auth.IstioCertificateResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct CertificateAnswer {
    #[prost(string, repeated, tag = "1")]
    cert_chain: Vec<String>,
}

/// Answer of the CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    AlienName,
    Expired,
    Fails(Code),
    Huge,
    Never,
    OneElement,
    OtherKey,
    Signs,
}

/// Request as the CA received it.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) at: Duration,
    pub(crate) token: String,
    pub(crate) cluster: Option<String>,
    pub(crate) validity: i64,
    /// End of the validity of the certificate.
    pub(crate) until: Duration,
}

pub(crate) struct State {
    pub(crate) manner: Manner,
    /// Authority that signs.
    pub(crate) authority: Authority,
    /// Life of certificates.
    pub(crate) life: Duration,
    pub(crate) asked: Vec<Asked>,
}

/// CA on a socket, with the files of its clients.
pub(crate) struct Ca {
    pub(crate) server: TlsOrigin,
    state: Arc<Mutex<State>>,
    pub(crate) directory: tempfile::TempDir,
}

pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

impl Ca {
    pub(crate) fn start(life: Duration) -> Self {
        let authority = Authority::new("mesh");
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("root.pem"), authority.pem()).unwrap();
        let terms = Terms::new(&authority.server(&["127.0.0.1"]));
        let state = Arc::new(Mutex::new(State {
            manner: Manner::Signs,
            authority,
            life,
            asked: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        let server = TlsOrigin::serving(Speaks::H2, &terms, move |request| {
            serve(Arc::clone(&shared), request)
        });
        Self {
            server,
            state,
            directory,
        }
    }

    /// Changes or reads the state.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&mut State) -> T) -> T {
        run(&mut self.state.lock().unwrap())
    }

    pub(crate) fn answers(&self, manner: Manner) {
        self.with(|state| state.manner = manner);
    }

    /// Returns the requests with this token.
    pub(crate) fn asked(&self, token: &str) -> Vec<Asked> {
        let asked = self.with(|state| state.asked.clone());
        asked.into_iter().filter(|one| one.token == token).collect()
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.directory
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// Replaces a file at once.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let draft = self.directory.path().join(".draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, self.file(name)).unwrap();
    }

    /// Returns the flags of a workload, and writes its token.
    pub(crate) fn flags(&self, namespace: &str, account: &str) -> Vec<String> {
        let token = format!("{account}.token");
        self.write(&token, &format!("{namespace}/{account}\n"));
        let flags = [
            ("--identity", "istio-ca".to_owned()),
            ("--ca-address", self.server.address.to_string()),
            ("--ca-root", self.file("root.pem")),
            ("--ca-token", self.file(&token)),
            ("--namespace", namespace.to_owned()),
            ("--service-account", account.to_owned()),
        ];
        let flags = flags.into_iter();
        flags
            .flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect()
    }
}

async fn serve(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<hyper::Response<Body>, hyper::Error> {
    assert_eq!(
        request.uri().path(),
        "/istio.v1.auth.IstioCertificateService/CreateCertificate"
    );
    let codec = ProstCodec::<CertificateAnswer, SigningRequest>::default();
    let response = tonic::server::Grpc::new(codec)
        .unary(Sign(state), request)
        .await;
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}

struct Sign(Arc<Mutex<State>>);

impl UnaryService<SigningRequest> for Sign {
    type Response = CertificateAnswer;
    type Future = Pin<Box<dyn Future<Output = Result<Response<CertificateAnswer>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<SigningRequest>) -> Self::Future {
        let answer = sign(&mut self.0.lock().unwrap(), request);
        Box::pin(async move {
            match answer {
                Some(answer) => answer.map(Response::new),
                None => std::future::pending().await,
            }
        })
    }
}

/// Returns the answer; `None` for none.
fn sign(
    state: &mut State,
    request: tonic::Request<SigningRequest>,
) -> Option<Result<CertificateAnswer, Status>> {
    let value = |name: &str| {
        let value = request.metadata().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    let bearer = value("authorization").unwrap();
    let token = bearer.strip_prefix("Bearer ").unwrap().to_owned();
    let (at, cluster) = (now(), value("clusterid"));
    let asked = request.into_inner();
    let signer = &asked.metadata.unwrap().fields["CertSigner"];
    assert_eq!(
        signer.kind,
        Some(prost_types::value::Kind::StringValue(String::new()))
    );
    let until = at + state.life;
    state.asked.push(Asked {
        at,
        token: token.clone(),
        cluster,
        validity: asked.validity_duration,
        until: Duration::from_secs(until.as_secs()),
    });
    let Some((namespace, account)) = token.split_once('/') else {
        return Some(Err(Status::unauthenticated(format!(
            "no workload: {token}"
        ))));
    };
    let id = match state.manner {
        Manner::AlienName => "spiffe://cluster.local/ns/bank/sa/admin".to_owned(),
        _ => format!("spiffe://cluster.local/ns/{namespace}/sa/{account}"),
    };
    let until = match state.manner {
        Manner::Expired => Duration::from_secs(1_600_000_000),
        _ => until,
    };
    let ca = &state.authority;
    let leaf = match state.manner {
        Manner::OtherKey => ca.server(&[&id]).chain,
        _ => ca.sign(&asked.csr, &id, until),
    };
    let cert_chain = match state.manner {
        Manner::Fails(code) => return Some(Err(Status::new(code, format!("as asked, {token}")))),
        Manner::Huge => vec![leaf, "x".repeat(10 << 20)],
        Manner::Never => return None,
        Manner::OneElement => vec![leaf],
        _ => vec![leaf, ca.pem()],
    };
    Some(Ok(CertificateAnswer { cert_chain }))
}
