//! A connection that speaks HTTP/1.1 or HTTP/2, made by `connect`.

use std::rc::Rc;

use super::alternates::Reach;
use super::connect::{ConnectSettings, Ends, begin, within};
use super::counts::{Counted, Counts};
use super::http1::Connection;
use super::http2;
use super::protocol::Protocol;
use crate::error::Error;
use crate::http2::worker_buffers::WorkerBuffers;

/// A connection that was just made.
pub struct Connected {
    /// Its sending half.
    pub sender: Sender,
    /// What it connects.
    pub ends: Rc<Ends>,
}

/// The sending half of an upstream connection.
pub enum Sender {
    /// One request at a time.
    Http1(Box<Connection>),
    /// Many requests at a time.
    Http2(http2::Sender),
}

/// Connects and starts the connection's driver.
///
/// # Errors
///
/// [`Kind::ConnectFailed`](crate::error::Kind::ConnectFailed) when no address of the endpoint takes a connection, [`Kind::ConnectTimeout`](crate::error::Kind::ConnectTimeout) when none does
/// within the timeout. Nothing of a request has been sent in either case.
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
