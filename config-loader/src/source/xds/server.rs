//! Follows one xDS server: connects, subscribes, acknowledges responses, and reports.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::stream;
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::problems;
use super::protocol::{Incremental, Protocol, Received, StateOfTheWorld};
use super::reporting::Reporting;
use super::settings::{XdsServer, XdsSettings};
use super::stall::Watched;
use super::types::Types;
use crate::source::state::StateFile;
use crate::source::stream::report::{Change, Message, Report, States};
use crate::source::stream::signs::Signs;
use crate::source::stream::{causes, load, pauses};
use crate::xds::{report_node, takes_reports};
use grpc_client as grpc;

/// Longest time to open a stream.
const OPEN_MAX: Duration = Duration::from_secs(10);

/// Longest wait for the first response of each type. Startup does not wait longer for a type.
const FIRST_RESPONSES_MAX: Duration = Duration::from_secs(10);

/// Largest response that is read.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// Capacity of the queue of requests to send. When it is full, no responses are read.
const ANSWERS_MAX: usize = 64;

/// Pause before a connection attempt, if the back-off gives none.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Largest number of changes in one report. A larger response is split.
const CHANGES_MAX: usize = 1_000;

/// Key of the server's revisions. One stream has all types.
const STREAM: &str = "stream";

/// Key of the diagnostic about types without a response.
const SILENT: &str = "types without a response";

/// Sender of the server's reports to the collector.
#[derive(Debug)]
pub(super) struct Reporter {
    /// Number of the server.
    pub(super) number: usize,
    pub(super) reports: mpsc::Sender<Message>,
    /// State of the proxy, for config servers.
    pub(super) states: Option<States>,
    /// Liveness of the server.
    pub(super) signs: Signs,
}

impl Reporter {
    /// Sends a report. Returns whether the collector is still there.
    async fn report(&self, report: Report) -> bool {
        self.reports.send((self.number, report)).await.is_ok()
    }

    async fn changes(&self, changes: Vec<Change>) -> bool {
        let mut changes = changes.into_iter();
        loop {
            let part: Vec<Change> = changes.by_ref().take(CHANGES_MAX).collect();
            if part.is_empty() {
                return true;
            }
            if !self.report(Report::Changes(part)).await {
                return false;
            }
        }
    }
}

/// xDS server that is followed.
pub(super) struct Server {
    settings: Arc<XdsSettings>,
    server: XdsServer,
    /// File of the saved state.
    file: Option<StateFile>,
    types: Types,
    reporter: Reporter,
    /// Whether the server supports the incremental variant, as far as is known.
    is_incremental: bool,
    /// Whether startup no longer waits for types without a response.
    has_given_up: bool,
    /// Whether a response was received.
    is_settled: bool,
    /// Time when the saved state was written; `None` once the server has responded.
    saved_at: Option<SystemTime>,
}

/// Reason to leave a stream.
enum End {
    /// The server or the connection failed.
    Failed(Status),
    /// The server closed the stream without an error, for example to check credentials again.
    Renewed,
    /// The collector is gone.
    Stop,
}

impl Server {
    pub(super) fn new(
        settings: Arc<XdsSettings>,
        server: XdsServer,
        file: Option<StateFile>,
        types: Types,
        reporter: Reporter,
    ) -> Server {
        Server {
            settings,
            server,
            file,
            types,
            reporter,
            is_incremental: true,
            has_given_up: false,
            is_settled: false,
            saved_at: None,
        }
    }

    /// Follows the server until the collector is gone.
    pub(super) async fn run(mut self) {
        self.load().await;
        self.reporter.signs.expect(STREAM.to_owned());
        let mut pauses = pauses::pauses();
        loop {
            let end = match self.is_incremental {
                true => self.follow::<Incremental>().await,
                false => self.follow::<StateOfTheWorld>().await,
            };
            let status = match end {
                End::Failed(status) => status,
                End::Renewed => {
                    tokio::time::sleep(pauses.next().unwrap_or(RETRY_INTERVAL)).await;
                    continue;
                }
                End::Stop => return,
            };
            if status.code() == Code::Unimplemented && self.is_incremental {
                tracing::debug!(
                    server = self.server.name(),
                    "no incremental xDS, the state of the world is asked for"
                );
                self.is_incremental = false;
                continue;
            }
            if !self.missed(&status).await {
                return;
            }
            tokio::time::sleep(pauses.next().unwrap_or(RETRY_INTERVAL)).await;
        }
    }

    /// Follows one stream until it ends.
    async fn follow<P: Protocol>(&mut self) -> End {
        let (answers, mut responses) = match self.open::<P>().await {
            Ok(opened) => opened,
            Err(status) => return End::Failed(status),
        };
        let silent_at = Instant::now() + FIRST_RESPONSES_MAX;
        let mut reporting = Reporting::new(self.server.name(), None);
        let mut is_first = true;
        let mut has_waited = self.types.silent().is_empty();
        loop {
            let response = tokio::select! {
                response = responses.message() => response,
                report = reporting.next() => {
                    let report = P::report(report_node(&report));
                    if answers.send(report).await.is_err() {
                        return End::Failed(Status::unavailable("it reads no more reports"));
                    }
                    continue;
                }
                () = tokio::time::sleep_until(silent_at), if !has_waited => {
                    has_waited = true;
                    if !self.give_up_silent().await {
                        return End::Stop;
                    }
                    continue;
                }
            };
            let response = match response {
                Ok(Some(response)) => response,
                Ok(None) if !is_first => return End::Renewed,
                Ok(None) => return End::Failed(Status::unavailable("it ended the stream")),
                Err(status) => return End::Failed(status),
            };
            let received = P::received(response);
            if std::mem::take(&mut is_first) {
                if !self.begin().await {
                    return End::Stop;
                }
                let states = self.reporter.states.clone();
                let states = states.filter(|_| received.server.as_ref().is_some_and(takes_reports));
                reporting = Reporting::new(self.server.name(), states);
            }
            match self.take_in::<P>(received).await {
                Some(answer) => {
                    if answers.send(answer).await.is_err() {
                        return End::Failed(Status::unavailable("it reads no more answers"));
                    }
                }
                None => return End::Stop,
            }
        }
    }

    /// Opens a stream with the subscriptions to all types.
    async fn open<P: Protocol>(
        &mut self,
    ) -> Result<(mpsc::Sender<P::Request>, Streaming<P::Response>), Status> {
        let unavailable = |reason: String| Status::unavailable(reason);
        let tls = match self.server.has_tls {
            false => None,
            true => {
                let missing = "TLS needs the CA that issued its certificate: add --control-ca FILE";
                let tls = grpc::client_tls(&self.settings.tls, missing);
                Some(tls.map_err(unavailable)?)
            }
        };
        let signs = self.reporter.signs.clone();
        let on_read: grpc::OnRead = Arc::new(move || signs.note(STREAM));
        let (host, port) = (&self.server.host, self.server.port);
        let channel = grpc::channel_with(host, port, tls.as_ref(), on_read);
        let channel = Watched(channel.map_err(unavailable)?);
        let mut grpc = Grpc::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let subscriptions = self.types.subscribe(self.settings.node.message());
        let (answers, waiting) = mpsc::channel(ANSWERS_MAX + subscriptions.len());
        for subscription in subscriptions {
            // There is room for all of them.
            let _ = answers.try_send(P::subscribe(subscription));
        }
        let messages = stream::unfold(waiting, |mut waiting| async {
            let next: P::Request = waiting.recv().await?;
            Some((next, waiting))
        });
        let mut request = Request::new(messages);
        if let Some(value) = self.authorization()? {
            request.metadata_mut().insert("authorization", value);
        }
        let open = async {
            let ready = grpc.ready().await;
            ready.map_err(|error| Status::unavailable(causes::with_causes(&error)))?;
            let codec = ProstCodec::<P::Request, P::Response>::default();
            let path = PathAndQuery::from_static(P::PATH);
            grpc.streaming(request, path, codec).await
        };
        let late = || Status::deadline_exceeded("it does not answer in time");
        let opened = timeout(OPEN_MAX, open).await.map_err(|_| late())??;
        Ok((answers, opened.into_inner()))
    }

    /// Returns the `authorization` header with the token. The file is read for each connection.
    fn authorization(&self) -> Result<Option<MetadataValue<Ascii>>, Status> {
        let Some(path) = &self.settings.token else {
            return Ok(None);
        };
        if !self.server.has_tls && !self.server.is_loopback() {
            return Err(Status::unavailable(
                "--control-token is not sent without TLS: write xds://HOST:PORT, or remove the token",
            ));
        }
        let wrong = |reason: &str| Status::unavailable(format!("{}: {reason}", path.display()));
        let token = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
        let value = format!("Bearer {}", token.trim());
        let value = value.parse::<MetadataValue<Ascii>>();
        let mut value =
            value.map_err(|_| wrong("it is no token: a token has no spaces and no line breaks"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Handles the first response of a stream. Returns whether the collector is still there.
    async fn begin(&mut self) -> bool {
        if !std::mem::replace(&mut self.is_settled, true)
            && !self
                .reporter
                .report(Report::Watching(self.types.keys()))
                .await
        {
            return false;
        }
        self.reporter.report(Report::ServerTrouble(None)).await
    }

    /// Applies a response. Returns the ACK or NACK; `None` if the collector is gone.
    async fn take_in<P: Protocol>(&mut self, received: Received) -> Option<P::Request> {
        let taken = match self.types.take_in(received) {
            Ok(taken) => taken,
            Err(answer) => return Some(P::answer(answer)),
        };
        let mut is_heard = self.reporter.report(Report::LastGood(taken.saved)).await;
        is_heard &= self.reporter.changes(taken.changes).await;
        for (key, found) in taken.troubles {
            is_heard &= self.reporter.report(Report::Trouble(key, found)).await;
        }
        if let Some(revision) = taken.revision {
            let seen = Report::Seen(STREAM.into(), revision);
            is_heard &= self.reporter.report(seen).await;
        }
        let key = Arc::clone(&taken.key);
        is_heard &= self.reporter.report(Report::Listed(key)).await;
        is_heard &= self.reporter.report(Report::Settled(taken.key)).await;
        if taken.is_first {
            is_heard &= self.report_late().await;
        }
        if let Some(error) = &taken.answer.error {
            tracing::warn!(
                server = self.server.name(),
                error,
                "resources of the xDS server are rejected"
            );
        }
        is_heard.then(|| P::answer(taken.answer))
    }

    /// Stops waiting for types without a response. Returns whether the collector is still there.
    async fn give_up_silent(&mut self) -> bool {
        self.has_given_up = true;
        self.types.give_up_silent();
        if !self.begin().await {
            return false;
        }
        for restored in self.types.restore_silent(self.saved_at) {
            self.reporter.report(Report::Restored(restored)).await;
        }
        for key in self.types.silent() {
            if !self.reporter.report(Report::Settled(key)).await {
                return false;
            }
        }
        self.report_silent().await
    }

    /// Reports that a type that was given up has a response. Returns whether the collector is still there.
    async fn report_late(&self) -> bool {
        match self.has_given_up {
            true => self.report_silent().await,
            false => true,
        }
    }

    /// Reports the types without a response. Returns whether the collector is still there.
    async fn report_silent(&self) -> bool {
        let silent = self.types.silent();
        let found = (!silent.is_empty()).then(|| problems::silent(&self.server.name(), &silent));
        self.reporter
            .report(Report::Trouble(SILENT.into(), found))
            .await
    }

    /// Handles a failed stream. Returns whether the collector is still there.
    async fn missed(&mut self, status: &Status) -> bool {
        if !self.is_settled
            && let Some(at) = self.saved_at.take()
        {
            let restored = self.types.restore_all(at);
            self.reporter.report(Report::Restored(restored)).await;
        }
        let reason = problems::reason(status);
        self.reporter.report(Report::Failed(reason)).await;
        let found = problems::ended(&self.server.name(), status, self.is_settled);
        self.reporter
            .report(Report::ServerTrouble(Some(found)))
            .await
    }

    /// Reads the saved state, which is used if the server does not respond.
    async fn load(&mut self) {
        let Some(saved) = load::load(self.file.as_ref(), "xDS server").await else {
            return;
        };
        self.saved_at = Some(saved.at);
        for (name, text) in saved.objects {
            self.types.save(name, text);
        }
    }
}
