//! HTTP/1.1 and HTTP/2 connections, opened by `connect`.

use std::rc::Rc;

use super::connect::{ConnectSettings, ConnectionInfo, begin, within};
use super::counts::{Counted, Counts};
use super::http1::Connection;
use super::http2;
use traffic::connection::Protocol;
use traffic::connection::Reach;
use traffic::error::Error;
use wire::http2::worker_buffers::WorkerBuffers;

/// A connection that was just opened.
pub struct Connected {
    /// Sending half.
    pub sender: Sender,
    /// Addresses and TLS state.
    pub ends: Rc<ConnectionInfo>,
}

/// Sending half of an upstream connection.
pub enum Sender {
    /// One request at a time.
    Http1(Box<Connection>),
    /// Concurrent requests.
    Http2(http2::Sender),
}

/// Connects and starts the driver of the connection.
///
/// # Errors
///
/// [`Kind::ConnectFailed`](traffic::error::Kind::ConnectFailed) if no address of the endpoint accepts a connection,
/// [`Kind::ConnectTimeout`](traffic::error::Kind::ConnectTimeout) if none does within the timeout. No byte of a request
/// was sent in either case.
pub async fn connect(
    reach: Reach<'_>,
    settings: ConnectSettings,
    counts: &Rc<Counts>,
    memory: &Rc<WorkerBuffers>,
) -> Result<Connected, Error> {
    let opening = open(reach, &settings, counts, memory);
    within(settings.timeout, opening, counts).await
}

async fn open(
    reach: Reach<'_>,
    settings: &ConnectSettings,
    counts: &Rc<Counts>,
    memory: &Rc<WorkerBuffers>,
) -> Result<Connected, Error> {
    let inside = settings.protocol.into();
    let (stream, ends) = begin(reach, settings, inside, counts).await?;
    let counted = Counted::opened(counts);
    let sender = match settings.protocol {
        Protocol::Http1 => Sender::Http1(Connection::new(stream, Rc::clone(&ends), counted)),
        Protocol::Http2 => Sender::Http2(http2::Sender::new(
            stream,
            counted,
            memory,
            settings.keep_alive,
        )),
    };
    Ok(Connected { sender, ends })
}
