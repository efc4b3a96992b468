//! HTTP/2 connection, shared by the slots that are its streams.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::Request;
use tokio::sync::Mutex;
use tokio::task::spawn_local;

use super::dial::Dialer;
use super::outcome::{FailureClass, Fault, Reply};

/// Initial flow-control window of a stream, in bytes.
const STREAM_WINDOW: u32 = 1024 * 1024;

/// Initial flow-control window of a connection, in bytes.
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// HTTP/2 connection, opened when needed, and reopened after it was closed.
#[derive(Default)]
pub struct Http2 {
    open: Mutex<Option<Open>>,
}

#[derive(Clone)]
struct Open {
    sender: SendRequest<Bytes>,
    closed: Rc<Cell<bool>>,
}

impl Http2 {
    /// Opens the connection if it is not open.
    ///
    /// # Errors
    /// When the connection cannot be opened.
    pub async fn open(&self, dialer: &Dialer) -> Result<(), Fault> {
        self.opened(dialer).await.map(|_| ())
    }

    async fn opened(&self, dialer: &Dialer) -> Result<Open, Fault> {
        let mut slot = self.open.lock().await;
        if let Some(open) = &*slot
            && !open.closed.get()
        {
            return Ok(open.clone());
        }
        let stream = dialer.dial().await?;
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(STREAM_WINDOW);
        builder.initial_connection_window_size(CONNECTION_WINDOW);
        let (sender, connection) = builder
            .handshake(stream)
            .await
            .map_err(|error| fault(&error))?;
        let closed = Rc::new(Cell::new(false));
        let ended = Rc::clone(&closed);
        spawn_local(async move {
            // Its error reaches the streams as well.
            let _ = connection.await;
            ended.set(true);
        });
        let open = Open { sender, closed };
        *slot = Some(open.clone());
        Ok(open)
    }

    /// Sends a request and reads the complete response. A request that the server reports as not processed is sent once
    /// more.
    ///
    /// # Errors
    /// When no complete response was received.
    pub async fn exchange(
        &self,
        dialer: &Dialer,
        head: Request<()>,
        body: Bytes,
    ) -> Result<Reply, Fault> {
        let open = self.opened(dialer).await?;
        match once(&open, head.clone(), body.clone()).await {
            Err(error) if is_unprocessed(&error) => {
                // The next request opens a connection that takes more of them.
                open.closed.set(true);
                let open = self.opened(dialer).await?;
                once(&open, head, body).await.map_err(|error| fault(&error))
            }
            outcome => outcome.map_err(|error| fault(&error)),
        }
    }
}

async fn once(open: &Open, head: Request<()>, body: Bytes) -> Result<Reply, h2::Error> {
    let mut sender = match open.sender.clone().ready().await {
        Ok(sender) => sender,
        Err(error) => {
            open.closed.set(true);
            return Err(error);
        }
    };
    let is_empty = body.is_empty();
    let (response, mut stream) = sender.send_request(head, is_empty)?;
    if !is_empty {
        // Waits for the window of the stream by itself; the body is in memory anyway.
        stream.send_data(body, true)?;
    }
    let (head, mut body) = response.await?.into_parts();
    let mut reply = Reply {
        status: head.status,
        headers: head.headers,
        trailers: None,
        body_bytes: 0,
        prefix: [0; 5],
    };
    read(&mut body, &mut reply).await?;
    Ok(reply)
}

async fn read(body: &mut RecvStream, reply: &mut Reply) -> Result<(), h2::Error> {
    while let Some(data) = body.data().await {
        let data = data?;
        let known = usize::try_from(reply.body_bytes).unwrap_or(usize::MAX);
        if let Some(missing) = reply.prefix.get_mut(known..) {
            let length = missing.len().min(data.len());
            missing[..length].copy_from_slice(&data[..length]);
        }
        reply.body_bytes += data.len() as u64;
        body.flow_control().release_capacity(data.len())?;
    }
    reply.trailers = body.trailers().await?;
    Ok(())
}

/// Whether the server has not processed the request: it sent GOAWAY, or refused the stream.
fn is_unprocessed(error: &h2::Error) -> bool {
    let reason = error.reason();
    (error.is_go_away() && error.is_remote() && reason == Some(Reason::NO_ERROR))
        || reason == Some(Reason::REFUSED_STREAM)
}

fn fault(error: &h2::Error) -> Fault {
    let is_local = error.is_library() || (error.reason().is_some() && !error.is_remote());
    let class = if is_local {
        FailureClass::Protocol
    } else {
        FailureClass::Reset
    };
    Fault::new(class, error)
}
