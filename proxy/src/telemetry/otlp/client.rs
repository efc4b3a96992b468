//! One request to a collector.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::Request;
use hyper::header::HOST;

use super::batch::OtlpMessage;
use super::connect::{Connection, MakeTls};
use super::format::{CollectorResponse, OtlpProtocol};
use super::response::Outcome;
use super::settings::OtlpSettings;
use super::transport::{MakeTransport, Transport};

/// Maximum number of bytes of a response.
const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// Client of one collector, with its connections.
pub struct Client {
    settings: OtlpSettings,
    tls: MakeTls,
    /// Connections that no request uses.
    idle: RefCell<Vec<Connection>>,
}

impl Client {
    fn new(settings: OtlpSettings, tls: MakeTls) -> Rc<Self> {
        Rc::new(Self {
            settings,
            tls,
            idle: RefCell::default(),
        })
    }

    async fn send(&self, message: OtlpMessage) -> Outcome {
        let body = match self.settings.format().body(message) {
            Ok(body) => body,
            Err(error) => return Outcome::unreached(error),
        };
        match tokio::time::timeout(self.settings.timeout, self.exchange(body)).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::unreached("the collector did not answer in time"),
        }
    }

    /// Makes the client on the thread of the exporter.
    pub fn make(settings: OtlpSettings, tls: MakeTls) -> MakeTransport {
        Box::new(move || Self::new(settings, tls))
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
        let endpoint = &self.settings.endpoint;
        let authority = endpoint.authority();
        let request = match endpoint.protocol {
            OtlpProtocol::Http | OtlpProtocol::Zipkin => {
                Request::post(endpoint.path.as_str()).header(HOST, authority)
            }
            OtlpProtocol::Grpc => {
                let scheme = if endpoint.is_tls { "https" } else { "http" };
                Request::post(format!("{scheme}://{authority}{}", endpoint.path))
            }
        };
        let mut request = request.body(Full::new(body))?;
        let headers = request.headers_mut();
        self.settings.format().add_headers(headers);
        for (name, value) in &self.settings.headers {
            headers.insert(name, value.clone());
        }
        Ok(request)
    }

    async fn exchange(&self, body: Bytes) -> Outcome {
        let idle = || self.idle.borrow_mut().pop();
        let mut used = std::iter::from_fn(idle).find(Connection::is_usable);
        loop {
            let is_used = used.is_some();
            let mut connection = match used.take() {
                Some(connection) => connection,
                None => match Connection::open(&self.settings.endpoint, &self.tls).await {
                    Ok(connection) => connection,
                    Err(error) => return Outcome::unreached(error),
                },
            };
            let request = match self.request(body.clone()) {
                Ok(request) => request,
                Err(error) => return Outcome::unreached(error),
            };
            match connection.send(request).await {
                Ok(response) => return self.outcome(connection, response).await,
                // the collector had closed the connection; nothing was sent
                Err(error) if is_used && error.is_canceled() => {}
                Err(error) => return Outcome::unreached(error),
            }
        }
    }

    async fn outcome(
        &self,
        connection: Connection,
        response: hyper::Response<hyper::body::Incoming>,
    ) -> Outcome {
        let (head, body) = response.into_parts();
        let read = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
        let whole = match read {
            Ok(whole) => whole,
            Err(error) if error.is::<LengthLimitError>() => {
                let reason = "the response of the collector is too long".to_owned();
                return Outcome::Refused { reason };
            }
            Err(error) => return Outcome::unreached(error),
        };
        let response = CollectorResponse {
            status: head.status,
            headers: head.headers,
            trailers: whole.trailers().cloned(),
            body: whole.to_bytes(),
        };
        self.idle.borrow_mut().push(connection);
        self.settings.format().outcome(&response)
    }
}

impl Transport for Client {
    fn export(self: Rc<Self>, message: OtlpMessage) -> Pin<Box<dyn Future<Output = Outcome>>> {
        Box::pin(async move { self.send(message).await })
    }
}
