//! Handover of sockets from one process to the next: the sockets that this process starts with, and the steps once it
//! is ready.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::admin_sockets::{AdminSockets, OpenedSockets};
use super::settings::Settings;
use super::start_error::{StartError, broken, failed};
use super::takeover::{self, Predecessor, Successors};
use super::{pages, service_manager};
use crate::admin::view::Readiness;
use crate::listener::ListenerStatusTable;
use crate::listener::inherited::InheritedSocket;

/// Maximum time for a process that takes over to become ready. The predecessor keeps running until then.
const READY_MAX: Duration = Duration::from_secs(60);

/// Sockets that other processes have opened for this one.
pub(super) struct InheritedSockets {
    predecessor: Option<Predecessor>,
    /// Socket on which the next process asks; `None` without `--takeover`, and while the predecessor has it.
    successors: Option<Successors>,
    /// Sockets of the admin pages: inherited at first, later those to hand over.
    opened: OpenedSockets,
    listeners: Vec<InheritedSocket>,
    takeover: Option<PathBuf>,
    is_service: bool,
}

impl InheritedSockets {
    /// Collects sockets from the running process and from the service manager.
    ///
    /// # Errors
    ///
    /// Fails when a process runs and does not hand its sockets over, or the path cannot be bound.
    pub(super) fn of(settings: &Settings) -> Result<Self, StartError> {
        let mut found = Self {
            predecessor: None,
            successors: None,
            opened: OpenedSockets::default(),
            listeners: Vec::new(),
            takeover: settings.takeover.clone(),
            is_service: settings.is_service,
        };
        if settings.is_service {
            let given = service_manager::sockets();
            let mut given = given.map_err(failed("sockets of the service manager (LISTEN_FDS)"))?;
            found.opened.admin = service_manager::take(&mut given, settings.admin);
            let health = settings.health;
            found.opened.health = health.and_then(|at| service_manager::take(&mut given, at));
            found.listeners.extend(service_manager::inherited(given));
        }
        let Some(path) = &settings.takeover else {
            return Ok(found);
        };
        match takeover::predecessor(path)? {
            Some(mut predecessor) => {
                found.opened.admin = predecessor.admin.take().or(found.opened.admin);
                found.opened.health = predecessor.health.take().or(found.opened.health);
                // the same sockets, if the service manager has opened them for both
                found.listeners = std::mem::take(&mut predecessor.listeners);
                found.predecessor = Some(predecessor);
            }
            None => {
                let what = format!("cannot listen on {} (--takeover)", path.display());
                let successors = Successors::listen(path).map_err(failed(&what))?;
                found.successors = Some(successors);
            }
        }
        Ok(found)
    }

    /// Takes the sockets of the admin server and the health pages.
    pub(super) fn opened(&mut self) -> OpenedSockets {
        std::mem::take(&mut self.opened)
    }

    /// Makes the table of listeners, with the inherited sockets in it.
    ///
    /// # Errors
    ///
    /// Fails when a socket has no address.
    pub(super) fn status_table(
        &mut self,
        workers: usize,
    ) -> Result<ListenerStatusTable, StartError> {
        let listeners = std::mem::take(&mut self.listeners);
        let hands_over = self.takeover.is_some();
        ListenerStatusTable::inheriting(listeners, workers, hands_over)
            .map_err(broken("cannot use the sockets of another process"))
    }

    /// Serves the pages: at once, or after the predecessor knows that this process is ready. Returns the receiver of
    /// the events that end the process.
    pub(super) fn serve(mut self, sockets: AdminSockets, sources: pages::Sources) -> EndReceiver {
        let (ending, ends) = ending(self.is_service);
        let (admin, workers) = (sockets.admin(), sources.settings.concurrency);
        tracing::info!(%admin, workers, "strait is serving");
        let readiness = sources.readiness();
        let status_table = sources.status_table.clone();
        let handed_over = ending.handed_over.subscribe();
        if self.takeover.is_some() {
            self.opened = sockets.share().unwrap_or_default();
        }
        let serve_pages = move || sockets.serve(sources, &handed_over);
        if self.predecessor.is_some() {
            let completed = self.complete_when_ready(status_table, readiness, ending, serve_pages);
            tokio::spawn(completed);
        } else {
            serve_pages();
            tokio::spawn(self.complete_when_ready(status_table, readiness, ending, || ()));
        }
        ends
    }

    /// Waits until this process is ready, then completes the handover.
    async fn complete_when_ready(
        self,
        status_table: ListenerStatusTable,
        readiness: impl Fn() -> Readiness,
        ending: EndSender,
        serve_pages: impl FnOnce(),
    ) {
        let ready = until_ready(&status_table, readiness);
        let mut successors = self.successors;
        match self.predecessor {
            None => ready.await,
            Some(predecessor) => {
                if timeout(READY_MAX, ready).await.is_err() {
                    ending.fail();
                    return pending().await;
                }
                match predecessor.ready().await {
                    Ok(listener) => successors = listener.map(Successors::on),
                    Err(error) => tracing::warn!(%error, "the process that ran before is gone"),
                }
            }
        }
        status_table.finish_inheritance();
        serve_pages();
        if self.is_service {
            service_manager::ready();
        }
        let Some(mut successors) = successors else {
            return;
        };
        successors.admin = self.opened.admin;
        successors.health = self.opened.health;
        if let Err(error) = successors.serve(status_table, ending.handed_over).await {
            tracing::error!(%error, "no process can take over from this one (--takeover)");
        }
    }
}

async fn until_ready(status_table: &ListenerStatusTable, readiness: impl Fn() -> Readiness) {
    let mut changes = status_table.changes();
    while readiness() != Readiness::Ready {
        if changes.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}

/// Sender of the events that end the process.
struct EndSender {
    handed_over: Arc<watch::Sender<bool>>,
    failure: Option<oneshot::Sender<StartError>>,
}

/// Receiver of the events of [`EndSender`].
pub(super) struct EndReceiver {
    handed_over: watch::Receiver<bool>,
    /// Failure of the takeover; `None` once the process can no longer fail. A completed receiver must not be polled
    /// again.
    failure: Option<oneshot::Receiver<StartError>>,
    is_service: bool,
}

/// Makes a connected sender and receiver.
fn ending(is_service: bool) -> (EndSender, EndReceiver) {
    let (handed_over, is_handed_over) = watch::channel(false);
    let (failure, failed) = oneshot::channel();
    let ending = EndSender {
        handed_over: Arc::new(handed_over),
        failure: Some(failure),
    };
    let ends = EndReceiver {
        handed_over: is_handed_over,
        failure: Some(failed),
        is_service,
    };
    (ending, ends)
}

impl EndSender {
    fn fail(mut self) {
        let text = format!("this process was not ready within {READY_MAX:?}");
        let error = failed("the process that runs goes on (--takeover)")(text);
        if let Some(failure) = self.failure.take() {
            // the receiver is gone only when the process ends anyway
            let _ = failure.send(error);
        }
    }
}

impl EndReceiver {
    /// Notifies the service manager, if there is one, that the process stops.
    pub(super) fn stopping(&self) {
        if self.is_service {
            service_manager::stopping();
        }
    }

    /// Waits until another process has the sockets, or this one cannot take them over. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<(), StartError> {
        let failure = async {
            if let Some(failed) = &mut self.failure {
                if let Ok(error) = failed.await {
                    return error;
                }
                self.failure = None;
            }
            pending().await
        };
        tokio::select! {
            Ok(_) = self.handed_over.wait_for(|is_so| *is_so) => Ok(()),
            error = failure => Err(error),
        }
    }
}
