//! HTTP/1.1 connection, polled by the slot that uses it.

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

/// Keep-alive connection, opened when needed, and reopened after it was closed.
#[derive(Default)]
pub struct Http1 {
    open: Option<Open>,
}

struct Open {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Connection task of hyper. It is dropped when it has ended, since pending requests fail only then.
    connection: Option<Connection>,
}

type Connection = http1::Connection<TokioIo<Stream>, Full<Bytes>>;

impl Http1 {
    /// Opens the connection if it is not open.
    ///
    /// # Errors
    /// When the connection cannot be opened.
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

    /// Sends a request and reads the complete response. A connection that the server closed before the request was
    /// written is replaced once.
    ///
    /// # Errors
    /// When no complete response was received.
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

    /// Polls a connection that no request uses; ready once it is closed.
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
    /// Waits until a request can be sent; returns `false` if the connection is closed.
    async fn ready(&mut self) -> bool {
        let ready = poll_fn(|cx| self.sender.poll_ready(cx));
        drive(&mut self.connection, ready).await.is_ok()
    }
}

/// Polls the connection until the future, which depends on it, is ready.
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

/// Polls the connection; ready once it has ended.
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
