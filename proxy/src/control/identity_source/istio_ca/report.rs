//! Row of the proxy in `istioctl proxy-status`: a stream of xDS to istiod, at the address of its CA, with one subscription.
//!
//! What istiod sends on it is acknowledged and changes nothing.

use std::time::Duration;

use config_loader::XdsNode;
use config_loader::xds::{DiscoveryRequest, DiscoveryResponse, STATE_OF_THE_WORLD};
use futures_util::stream::unfold;
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tonic::client::Grpc;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::call::{Proof, bearer, channel};
use super::read;
use crate::control::identity_source::settings::IstioCaSettings;

/// Subscription that istiod answers with a small resource, whatever its configuration: routes of a port that nothing has.
const TYPE: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const RESOURCE: &str = "strait";

/// First and longest delay after a stream has ended.
const DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Maximum time until a stream is open.
const OPEN_MAX: Duration = Duration::from_secs(10);

/// Keeps a stream open until the future is dropped.
pub(in crate::control::identity_source) async fn run(settings: IstioCaSettings, node: XdsNode) {
    let [first, longest] = DELAYS;
    let mut delay = first;
    loop {
        let since = Instant::now();
        let status = match open(&settings, &node).await {
            Ok((answers, stream)) => follow(&answers, stream).await,
            Err(status) => status,
        };
        // istiod ends every stream after half an hour
        if since.elapsed() > longest {
            delay = first;
        }
        if delay == longest / 2 {
            tracing::warn!(%status, "istiod does not list this proxy in `istioctl proxy-status` (--istio-report)");
        }
        sleep(delay.mul_f64(rand::random_range(0.5..1.0))).await;
        delay = (delay * 2).min(longest);
    }
}

type Opened = (mpsc::Sender<DiscoveryRequest>, Streaming<DiscoveryResponse>);

async fn open(settings: &IstioCaSettings, node: &XdsNode) -> Result<Opened, Status> {
    let file = |path, flag| read(path, flag).map_err(|problem| Status::unavailable(problem.text));
    let root = file(&settings.server_root, settings.server_root_flag())?;
    let token = file(&settings.token, "--ca-token")?;
    let token = String::from_utf8_lossy(&token).trim().to_owned();
    let channel = channel(settings, &root, &Proof::Token(token.clone()))?;
    let (answers, waiting) = mpsc::channel(1);
    let subscription = DiscoveryRequest {
        node: Some(node.of_envoy()),
        resource_names: vec![RESOURCE.to_owned()],
        type_url: TYPE.to_owned(),
        ..DiscoveryRequest::default()
    };
    // there is room for it
    let _ = answers.try_send(subscription);
    let mut request = Request::new(unfold(waiting, |mut waiting| async {
        Some((waiting.recv().await?, waiting))
    }));
    request
        .metadata_mut()
        .insert("authorization", bearer(&token)?);
    let open = async {
        let mut grpc = Grpc::new(channel);
        let ready = grpc.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec = ProstCodec::<DiscoveryRequest, DiscoveryResponse>::default();
        let path = PathAndQuery::from_static(STATE_OF_THE_WORLD);
        grpc.streaming(request, path, codec).await
    };
    let late = || Status::deadline_exceeded("it does not answer in time");
    let opened = timeout(OPEN_MAX, open).await.map_err(|_| late())??;
    Ok((answers, opened.into_inner()))
}

/// Acknowledges responses until the stream ends; returns why.
async fn follow(
    answers: &mpsc::Sender<DiscoveryRequest>,
    mut stream: Streaming<DiscoveryResponse>,
) -> Status {
    loop {
        match stream.message().await {
            Ok(Some(response)) => {
                let answer = DiscoveryRequest {
                    version_info: response.version_info,
                    resource_names: vec![RESOURCE.to_owned()],
                    type_url: TYPE.to_owned(),
                    response_nonce: response.nonce,
                    ..DiscoveryRequest::default()
                };
                if answers.send(answer).await.is_err() {
                    return Status::unavailable("the stream has ended");
                }
            }
            Ok(None) => return Status::unavailable("istiod ended the stream"),
            Err(status) => return status,
        }
    }
}
