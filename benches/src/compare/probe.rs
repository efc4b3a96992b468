//! Check that a proxy works as configured, made before every measurement, so that a broken proxy cannot win.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request, StatusCode};
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::compare::client::{Answer, Connection, connect};
use crate::compare::configure::{Plan, Work};
use crate::compare::failure::{Failure, context};
use crate::compare::tls;
use crate::compare::upstream::{bulk, grpc, http as plain};

/// Timeout of one probe over HTTP/2.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes that are sent through a TCP proxy and must be echoed.
const ECHO_BYTES: usize = 1024 * 1024;

/// Result of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Correct response.
    Right,
    /// Proxy not ready yet: nothing listens, or there is no route.
    NotYet(String),
    /// Wrong response; waiting would not help.
    Wrong(String),
}

/// Probe of a proxy, in the protocol of its scenario.
#[derive(Debug)]
pub struct Probe {
    port: u16,
    work: Work,
    http2: bool,
    path: String,
    headers: &'static [(&'static str, &'static str)],
    tls: Option<Arc<ClientConfig>>,
}

impl Probe {
    /// Creates the probe for a proxy with this plan.
    ///
    /// # Errors
    /// When the certificate cannot be read.
    pub fn new(plan: &Plan, path: &str) -> Result<Self, Failure> {
        let protocol = if plan.http2 { "h2" } else { "http/1.1" };
        let client =
            |certificate: &Path| tls::strict_client(tls::read_certificate(certificate)?, protocol);
        let credentials = plan.tls.as_ref();
        Ok(Self {
            port: plan.listen,
            work: plan.work,
            http2: plan.http2,
            path: path.to_owned(),
            headers: plan.request_headers(),
            tls: credentials
                .map(|tls| client(&tls.certificate))
                .transpose()?,
        })
    }

    /// Probes once.
    ///
    /// # Errors
    /// When this program itself fails.
    pub fn ask(&self) -> Result<Verdict, Failure> {
        match self.work {
            Work::Tcp => Ok(self.echo()),
            Work::Http if !self.http2 => Ok(self.http1()),
            Work::Http | Work::Grpc => self.http2(),
        }
    }

    fn http1(&self) -> Verdict {
        let connection = match &self.tls {
            None => Connection::open(self.port),
            Some(config) => Connection::open_tls(self.port, config),
        };
        match connection.and_then(|mut connection| connection.ask_with(&self.path, self.headers)) {
            Ok(answer) => judge(answer, plain::body_bytes(&self.path)),
            Err(error) => Verdict::NotYet(error.to_string()),
        }
    }

    fn echo(&self) -> Verdict {
        let sent: Vec<u8> = (0..ECHO_BYTES).map(|index| (index % 251) as u8).collect();
        match echo(self.port, &sent) {
            Ok(back) if back == sent => Verdict::Right,
            Ok(back) if back.is_empty() => Verdict::NotYet("closed at once".to_owned()),
            Ok(back) => Verdict::Wrong(format!("{} other bytes came back", back.len())),
            Err(error) => Verdict::NotYet(error.to_string()),
        }
    }

    fn http2(&self) -> Result<Verdict, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(context("cannot start a runtime"))?;
        let answer = runtime.block_on(async {
            tokio::time::timeout(PATIENCE, self.http2_answer())
                .await
                .unwrap_or_else(|_| Err("no answer in time".to_owned()))
        });
        Ok(match answer {
            Ok(answer) if self.work == Work::Grpc => judge_call(&answer),
            Ok(answer) => judge(answer.brief(), plain::body_bytes(&self.path)),
            Err(error) => Verdict::NotYet(error),
        })
    }

    async fn http2_answer(&self) -> Result<Whole, String> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await;
        let stream = stream.map_err(text)?;
        let Some(config) = &self.tls else {
            return self.exchange(stream).await;
        };
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(tls::server_name(), stream).await;
        let stream = stream.map_err(text)?;
        let connection = stream.get_ref().1;
        if let Some(complaint) = tls::complaint(connection) {
            return Err(complaint);
        }
        if connection.alpn_protocol() != Some(b"h2") {
            return Err("did not agree on h2".to_owned());
        }
        self.exchange(stream).await
    }

    async fn exchange<S>(&self, stream: S) -> Result<Whole, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (sender, connection) = h2::client::handshake(stream).await.map_err(text)?;
        tokio::pin!(connection);
        tokio::select! {
            answer = self.request(sender) => answer,
            ended = &mut connection => Err(ended.err().map_or_else(
                || "the connection ended".to_owned(),
                |error| error.to_string(),
            )),
        }
    }

    async fn request(&self, sender: SendRequest<Bytes>) -> Result<Whole, String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let uri = format!("{scheme}://{}{}", tls::HOST, self.path);
        let is_call = self.work == Work::Grpc;
        let mut request = Request::builder().uri(uri);
        for (name, value) in self.headers {
            request = request.header(*name, *value);
        }
        if is_call {
            request = request
                .method("POST")
                .header("content-type", "application/grpc")
                .header("te", "trailers");
        }
        let request = request.body(()).map_err(text)?;
        let mut sender = sender.ready().await.map_err(text)?;
        let (response, mut body) = sender.send_request(request, !is_call).map_err(text)?;
        if is_call {
            let message = grpc::framed_message().into();
            body.send_data(message, true).map_err(text)?;
        }
        let (head, mut body) = response.await.map_err(text)?.into_parts();
        let mut bytes = Vec::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk.map_err(text)?;
            body.flow_control()
                .release_capacity(chunk.len())
                .map_err(text)?;
            bytes.extend_from_slice(&chunk);
        }
        let trailers = body.trailers().await.map_err(text)?;
        Ok(Whole {
            status: head.status,
            headers: head.headers,
            body: bytes,
            trailers: trailers.unwrap_or_default(),
        })
    }
}

/// Complete response over HTTP/2.
#[derive(Debug, Default)]
struct Whole {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: HeaderMap,
}

impl Whole {
    fn brief(&self) -> Answer {
        Answer {
            status: self.status.as_u16(),
            body_bytes: self.body.len(),
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Checks a response. A status other than 200 means not ready, since the proxy may still be loading.
fn judge(answer: Answer, body_bytes: usize) -> Verdict {
    match answer {
        Answer { status, .. } if status != 200 => Verdict::NotYet(format!("status {status}")),
        Answer {
            body_bytes: got, ..
        } if got != body_bytes => {
            Verdict::Wrong(format!("a body of {got} bytes instead of {body_bytes}"))
        }
        _ => Verdict::Right,
    }
}

/// Checks a gRPC response: the message must be complete, and status 0 must be in the trailers, not in the headers.
fn judge_call(answer: &Whole) -> Verdict {
    let field = |fields: &HeaderMap, name: &str| {
        let value = fields.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    if answer.status != StatusCode::OK {
        return Verdict::NotYet(format!("status {}", answer.status));
    }
    if let Some(status) = field(&answer.headers, "grpc-status") {
        return Verdict::NotYet(format!("grpc-status {status} without a message"));
    }
    let content_type = field(&answer.headers, "content-type");
    if content_type.as_deref() != Some("application/grpc") {
        return Verdict::Wrong(format!("content-type {content_type:?}"));
    }
    let status = field(&answer.trailers, "grpc-status");
    if status.as_deref() != Some("0") {
        return Verdict::Wrong(format!("grpc-status {status:?} in the trailers"));
    }
    if answer.body != grpc::framed_message() {
        return Verdict::Wrong("the message is not the one that was sent".to_owned());
    }
    Verdict::Right
}

/// Sends bytes, closes the sending side, and returns the bytes received until the peer closes.
fn echo(port: u16, sent: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = connect(port)?;
    let mut writer = stream.try_clone()?;
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            writer.write_all(&[bulk::ECHO])?;
            writer.write_all(sent)?;
            writer.shutdown(Shutdown::Write)
        });
        let mut back = Vec::new();
        stream.read_to_end(&mut back)?;
        match writing.join() {
            Ok(written) => written.map(|()| back),
            Err(_) => Err(std::io::Error::other("the sending thread failed")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Whole {
        let of = |name: &'static str, value: &str| {
            HeaderMap::from_iter([(
                http::HeaderName::from_static(name),
                value.parse().expect("a header value"),
            )])
        };
        Whole {
            headers: of("content-type", "application/grpc"),
            body: grpc::framed_message(),
            trailers: of("grpc-status", "0"),
            ..Whole::default()
        }
    }

    #[test]
    fn answer_is_right_with_its_status_and_length() {
        let answer = |status, body_bytes| judge(Answer { status, body_bytes }, 128);
        assert_eq!(answer(200, 128), Verdict::Right);
        assert!(matches!(answer(200, 127), Verdict::Wrong(_)));
        assert!(matches!(answer(503, 128), Verdict::NotYet(_)));
    }

    #[test]
    fn call_is_right_with_its_message_and_status_0() {
        assert_eq!(judge_call(&call()), Verdict::Right);
    }

    #[test]
    fn call_that_a_proxy_refused_is_not_right() {
        let mut refused = call();
        refused.headers.extend(refused.trailers.clone());
        assert!(matches!(judge_call(&refused), Verdict::NotYet(_)));
    }

    #[test]
    fn call_with_a_cut_message_or_without_status_0_is_wrong() {
        let mut cut = call();
        cut.body.pop();
        assert!(matches!(judge_call(&cut), Verdict::Wrong(_)));
        let mut failed = call();
        failed.trailers.clear();
        assert!(matches!(judge_call(&failed), Verdict::Wrong(_)));
    }
}
