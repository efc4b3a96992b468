//! Telemetry on its way to a provider of the mesh configuration: requests of the proxy's own to its service, so that the
//! DestinationRule of the service applies.

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use hyper::header::HeaderValue;
use hyper::{Method, Uri};

use super::pool_sweep::sweep;
use crate::exchange::service_call::{ServiceCall, head};
use crate::exchange::{Worker, WorkerParts, select};
use crate::snapshot::{Collector, Snapshot};
use crate::telemetry::{CollectorResponse, ExportOutcome, OtlpMessage, OtlpProtocol, Transport};
use crate::upstream::{Client, Protocol};

/// Finds the provider in a snapshot.
type FindCollector = Box<dyn Fn(&Snapshot) -> Option<Collector>>;

/// Way to the provider that the snapshot in effect names.
pub(super) struct ProviderTransport {
    worker: Rc<Worker>,
    find: FindCollector,
    /// Way that is used while no provider is in effect.
    otherwise: Option<Rc<dyn Transport>>,
}

/// Makes a worker without listeners on the current thread, whose connections serve calls of the proxy's own.
pub(super) fn worker_without_listeners(parts: WorkerParts) -> Rc<Worker> {
    let changes = parts.registry.journal().changes();
    let worker = Rc::new(Worker::new(parts));
    let wake_signal = Arc::clone(worker.pools.wake_signal());
    tokio::task::spawn_local(sweep(Rc::downgrade(&worker), wake_signal));
    tokio::task::spawn_local(select::watch::follow(Rc::downgrade(&worker), changes));
    worker
}

impl ProviderTransport {
    /// Makes the connections of the exporter's thread, which are those of a worker without listeners.
    pub(super) fn new(
        parts: WorkerParts,
        find: impl Fn(&Snapshot) -> Option<Collector> + 'static,
        otherwise: Option<Rc<dyn Transport>>,
    ) -> Rc<Self> {
        let worker = worker_without_listeners(parts);
        let find = Box::new(find);
        Rc::new(Self {
            worker,
            find,
            otherwise,
        })
    }

    async fn send(&self, message: OtlpMessage) -> ExportOutcome {
        let snapshot = self.worker.snapshot();
        let Some(collector) = (self.find)(&snapshot) else {
            if let Some(otherwise) = &self.otherwise {
                return Rc::clone(otherwise).export(message).await;
            }
            return ExportOutcome::unreached("the provider is not in effect");
        };
        let body = match collector.format.body(message) {
            Ok(body) => body,
            Err(error) => return ExportOutcome::unreached(error),
        };
        let mut parts = head(Method::POST, Uri::from(collector.path.clone()));
        collector.format.add_headers(&mut parts.headers);
        for header in &collector.headers {
            if let Some(value) = value(&header.value, &self.worker) {
                parts.headers.insert(&header.name, value);
            }
        }
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let call = ServiceCall {
            worker: &self.worker,
            snapshot: &snapshot,
            service: &collector.service,
            client: Client {
                source: nowhere,
                destination: nowhere,
            },
            timeout: collector.timeout,
            needs_tls: false,
            record: None,
        };
        let protocol = is_grpc(&collector).then_some(Protocol::Http2);
        let response = call.whole(parts, body, protocol).await;
        let host = collector.service.authority.to_str().unwrap_or_default();
        let response = response.and_then(|response| {
            Ok(CollectorResponse {
                status: response.head.status,
                headers: response.head.headers,
                trailers: response.trailers,
                body: response.body?,
            })
        });
        match response {
            Ok(response) => collector.format.outcome(&response),
            Err(error) => ExportOutcome::unreached(format!("{host}: {error}")),
        }
    }
}

impl Transport for ProviderTransport {
    fn export(
        self: Rc<Self>,
        message: OtlpMessage,
    ) -> Pin<Box<dyn Future<Output = ExportOutcome>>> {
        Box::pin(async move { self.send(message).await })
    }
}

fn is_grpc(collector: &Collector) -> bool {
    collector.format.protocol == OtlpProtocol::Grpc
}

/// Value of a header; `None` if its variable is not set, or is no value.
fn value(value: &Result<HeaderValue, Arc<str>>, worker: &Worker) -> Option<HeaderValue> {
    match value {
        Ok(value) => Some(value.clone()),
        Err(variable) => {
            let value = worker.environment.get(&**variable)?;
            HeaderValue::from_str(value).ok()
        }
    }
}
