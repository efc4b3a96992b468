//! One connection of HTTP/1.1, polled by the slot that uses it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::dial::{Dialer, Stream};
use super::outcome::{FailureClass, Fault, Reply};

/// A keep-alive connection, opened when it is needed and again after it was closed.
#[derive(Default)]
pub struct Http1 {
    open: Option<Open>,
}

struct Open {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Dropped when it has ended: what waits for it only then learns that.
    connection: Option<Connection>,
}

type Connection = http1::Connection<TokioIo<Stream>, Full<Bytes>>;

impl Http1 {
    /// Opens the connection if it is not open.
    ///
    /// # Errors
    /// When that fails.
    pub async fn open(&mut self, dialer: &Dialer) -> Result<(), Fault> {
        if self.open.is_none() {
            let stream = dialer.dial().await?;
            let made = http1::Builder::new().handshake(TokioIo::new(stream)).await;
            let (sender, connection) = made.map_err(|error| fault(&error))?;
            let connection = Some(connection);
            self.open = Some(Open { sender, connection });
        }
        Ok(())
    }

    /// Sends a request and reads the response to its end. A connection that the server closed before the request was
    /// written is replaced once.
    ///
    /// # Errors
    /// When there is no complete response.
    pub async fn exchange(
        &mut self,
        dialer: &Dialer,
        head: Request<()>,
        body: Bytes,
    ) -> Result<Reply, Fault> {
        let mut request = head.map(|()| Full::new(body));
        let mut replaced = false;
        loop {
            self.open(dialer).await?;
            // Taken, so that a request that is given up takes its connection with it.
            let Some(mut open) = self.open.take() else {
                continue;
            };
            let ready = open.ready().await;
            if !ready && !replaced {
                replaced = true;
                continue;
            }
            let sent = open.sender.try_send_request(request);
            let sent = drive(&mut open.connection, sent).await;
            match sent {
                Ok(response) => {
                    let reply = drive(&mut open.connection, read(response)).await?;
                    // Sees that the server closes the connection, as announced.
                    if open.ready().await {
                        self.open = Some(open);
                    }
                    return Ok(reply);
                }
                Err(mut failed) => {
                    let unsent = failed.take_message();
                    match unsent {
                        Some(unsent) if !replaced => (request, replaced) = (unsent, true),
                        _ => return Err(fault(failed.error())),
                    }
                }
            }
        }
    }

    /// Watches a connection that no request uses; ready once it was closed.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(open) = &mut self.open else {
            return Poll::Pending;
        };
        if poll(&mut open.connection, cx).is_pending() {
            return Poll::Pending;
        }
        self.open = None;
        Poll::Ready(())
    }
}

impl Open {
    /// Waits until a request can be sent; `false` if the connection is closed.
    async fn ready(&mut self) -> bool {
        let ready = poll_fn(|cx| self.sender.poll_ready(cx));
        drive(&mut self.connection, ready).await.is_ok()
    }
}

/// Runs the connection until the future is ready, which depends on it.
async fn drive<F: Future>(connection: &mut Option<Connection>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        // Whether it goes on or has ended: the future learns that by itself.
        let _ = poll(connection, cx);
        future.as_mut().poll(cx)
    })
    .await
}

/// Ready once the connection has ended.
fn poll(connection: &mut Option<Connection>, cx: &mut Context<'_>) -> Poll<()> {
    let Some(open) = connection else {
        return Poll::Ready(());
    };
    if Pin::new(open).poll(cx).is_pending() {
        return Poll::Pending;
    }
    *connection = None;
    Poll::Ready(())
}

async fn read(response: http::Response<Incoming>) -> Result<Reply, Fault> {
    let (head, mut body) = response.into_parts();
    let mut reply = Reply {
        status: head.status,
        headers: head.headers,
        trailers: None,
        body_bytes: 0,
        prefix: [0; 5],
    };
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Fault {
            class: FailureClass::Body,
            ..fault(&error)
        })?;
        match frame.into_data() {
            Ok(data) => reply.body_bytes += data.len() as u64,
            Err(frame) => reply.trailers = frame.into_trailers().ok(),
        }
    }
    Ok(reply)
}

fn fault(error: &hyper::Error) -> Fault {
    let class = if error.is_parse() {
        FailureClass::Protocol
    } else {
        FailureClass::Reset
    };
    let source = std::error::Error::source(error);
    let reason = source.map_or(error.to_string(), |source| format!("{error}: {source}"));
    Fault { class, reason }
}
