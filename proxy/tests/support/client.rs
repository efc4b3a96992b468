//! HTTP/1.1 and HTTP/2 clients on top of hyper.

use std::net::SocketAddr;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::HOST;
use hyper::{HeaderMap, Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::DEADLINE;
use super::origin::{Body, empty, full};

/// Protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    H1,
    H2,
}

/// Connection to the proxy.
pub struct Client {
    sender: Sender,
    /// Task of the connection; it ends when the connection ends.
    pub ended: tokio::task::JoinHandle<Result<(), hyper::Error>>,
}

enum Sender {
    H1(http1::SendRequest<SendBody>),
    H2(http2::SendRequest<SendBody>),
}

/// Request body; hyper's tasks require `Send`, which [`Body`] is.
type SendBody = Body;

/// Complete response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
}

impl Answer {
    /// Returns the body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Returns the value of a header; `None` if there is none, panics if there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?.to_str().unwrap();
        assert!(values.next().is_none(), "{name} came more than once");
        Some(first)
    }

    /// Reads a response to its end.
    pub async fn read(response: Response<Incoming>) -> Result<Self, hyper::Error> {
        let (parts, body) = response.into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().cloned();
        Ok(Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.to_bytes().to_vec(),
            trailers,
        })
    }
}

impl Client {
    pub async fn connect(front: Front, address: SocketAddr) -> Self {
        Self::try_connect(front, address).await.unwrap()
    }

    pub async fn try_connect(front: Front, address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Self::over(front, stream).await
    }

    /// Creates a client on an established connection.
    pub async fn over<S>(front: Front, stream: S) -> std::io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        Ok(match front {
            Front::H1 => {
                let (sender, connection) =
                    http1::handshake(io).await.map_err(std::io::Error::other)?;
                Self {
                    sender: Sender::H1(sender),
                    ended: tokio::spawn(connection.with_upgrades()),
                }
            }
            Front::H2 => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io)
                    .await
                    .map_err(std::io::Error::other)?;
                Self {
                    sender: Sender::H2(sender),
                    ended: tokio::spawn(connection),
                }
            }
        })
    }

    /// Sends a request with an absolute URI, and returns when the response head has arrived.
    pub async fn send(
        &mut self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let sent = async {
            match &mut self.sender {
                Sender::H1(sender) => {
                    if !request.headers().contains_key(HOST)
                        && let Some(authority) = request.uri().authority()
                    {
                        let host = authority.as_str().parse().unwrap();
                        request.headers_mut().insert(HOST, host);
                    }
                    let path = request.uri().path_and_query().cloned();
                    *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
                    sender.ready().await?;
                    sender.send_request(request).await
                }
                Sender::H2(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
            }
        };
        tokio::time::timeout(DEADLINE, sent)
            .await
            .expect("a response in time")
    }

    /// Sends a request and reads the complete response; panics on errors.
    pub async fn call(&mut self, request: Request<Body>) -> Answer {
        self.try_call(request).await.unwrap()
    }

    /// Sends a request and reads the complete response.
    pub async fn try_call(&mut self, request: Request<Body>) -> Result<Answer, hyper::Error> {
        let response = self.send(request).await?;
        tokio::time::timeout(DEADLINE, Answer::read(response))
            .await
            .expect("a body in time")
    }

    /// Sends a GET request for a path of host `a.test`.
    pub async fn get(&mut self, path: &str) -> Answer {
        self.call(get(path)).await
    }

    /// Returns another handle of the same HTTP/2 connection; `None` for HTTP/1.
    pub fn http2_handle(&self) -> Option<http2::SendRequest<Body>> {
        match &self.sender {
            Sender::H1(_) => None,
            Sender::H2(sender) => Some(sender.clone()),
        }
    }
}

/// Returns a GET request for a path of host `a.test`.
pub fn get(path: &str) -> Request<Body> {
    Request::get(format!("http://a.test{path}"))
        .body(empty())
        .unwrap()
}

/// Returns a POST request with a body for a path of host `a.test`.
pub fn post(path: &str, body: impl Into<bytes::Bytes>) -> Request<Body> {
    Request::post(format!("http://a.test{path}"))
        .body(full(body))
        .unwrap()
}
