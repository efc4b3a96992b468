//! Composition root: makes runtimes, registry, snapshot slot, listeners and admin, and hands each part its settings.

mod admin_sockets;
mod certificates;
mod dumped_resources;
mod export_settings;
mod exports;
mod handover;
mod live;
mod named_collector;
mod names;
mod origins;
mod own_attributes;
pub mod pages;
mod pool_sweep;
mod provider_transport;
mod readiness;
mod service_manager;
mod service_name;
mod settings;
mod shutdown;
mod signals;
mod sources;
mod start_error;
mod takeover;
mod trace_settings;
mod traces;
mod workload;

use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config_loader::Watch;
use tokio::sync::{Notify, mpsc, watch};

use crate::admin;
use crate::control::certificates::{Delivered, Directories};
use crate::control::dns::{Follower, system_lookup};
use crate::control::ejection_sweep::EjectionSweep;
use crate::control::health::Checker;
use crate::control::identity_source;
use crate::control::key_sets::KeySets;
use crate::control::publish::Publisher;
use crate::control::{Control, DNS_CHANGES_MAX, LoggedDiagnostics};
use crate::exchange::trace_parts::TraceParts;
use crate::exchange::{Worker, WorkerParts, select};
use crate::listener;
use crate::runtime::drain;
use crate::snapshot::{Direction, SnapshotSlot};
use crate::telemetry::{
    AccessLog, AccessLogSettings, AccessLogTarget, AccessLogger, Exposition, LogControl,
    MetricPush, OtlpTotals, PropagationStats, RequestLabels, RequestStats, Taps, Telemetry,
    WorkerId,
};
use crate::tls::Store;
use crate::worker::{self, Workers};
use traffic::registry::Registry;

use self::admin_sockets::AdminSockets;
pub use self::export_settings::{CollectorSettings, ExportSettings};
use self::exports::{push_metrics, set_log_exporters};
use self::handover::{EndReceiver, InheritedSockets};
use self::live::LiveSettings;
pub use self::origins::{OriginKind, SettingOrigin};
use self::pool_sweep::sweep;
use self::provider_transport::worker_without_listeners;
use self::settings::build_info;
pub use self::settings::{CONCURRENCY, OutboundDrain, Reread, Settings};
use self::shutdown::Shutdown;
use self::signals::{ReloadSignals, SignalAction, Signals};
use self::sources::Followed;
pub use self::sources::unreadable;
pub use self::start_error::StartError;
use self::start_error::{broken, failed};
pub use self::trace_settings::TraceSettings;
use self::traces::Traces;
use self::workload::Workload;
pub use self::workload::WorkloadProcess;

/// Maximum time for the access log to write its queued lines when the process ends.
const LOG_FLUSH_MAX: Duration = Duration::from_secs(2);

/// Maximum time for telemetry to be sent when the process ends.
const EXPORT_FLUSH_MAX: Duration = Duration::from_secs(2);

/// Serves until a signal or the admin server ends it; blocks.
///
/// # Errors
///
/// Fails if the proxy cannot start: a path cannot be read, the admin address is taken, the access log cannot be opened.
pub fn run(settings: Settings) -> Result<(), StartError> {
    let logging = LogControl::install(&settings.log_level).map_err(failed("--log-level"))?;
    let served = run_beside(settings, logging.clone(), Arc::default(), || ());
    logging.flush();
    served
}

/// Serves as [`run`] does, in a process that logs already and may run other proxies; also ends when `quit` is notified.
/// Calls `started` once signals are handled; requests are served as soon as listeners are open.
///
/// # Errors
///
/// As [`run`].
pub fn run_beside(
    settings: Settings,
    logging: LogControl,
    quit: Arc<Notify>,
    started: impl FnOnce(),
) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(broken("cannot start the control runtime"))?;
    // health checks share the connection code of workers, whose futures stay on one thread
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async move {
        let app = App::start(settings, logging, quit).await?;
        started();
        app.serve().await
    })
}

/// Puts the first configuration in effect, and fetches its key sets for a limited time. Fails if the identity of the
/// workload is not the configured one.
async fn put_in_effect(
    control: &mut Control,
    settings: &Settings,
    slot: &SnapshotSlot,
    parts: impl Fn() -> WorkerParts + 'static,
) -> Result<KeySets, StartError> {
    control.apply();
    if let Some(problem) = control.wrong_identity() {
        let problem = problem.with_its_fix();
        return Err(failed("the identity of the workload")(problem));
    }
    let settings = &settings.key_sets;
    let worker = Box::new(move || worker_without_listeners(parts()));
    let mut key_sets = KeySets::of(control, slot, settings, worker).map_err(failed("--jwks-ca"))?;
    key_sets.tried(settings.ready_timeout).await;
    Ok(key_sets)
}

/// Starts the tasks that update the snapshot and the state of endpoints.
fn spawn_control_tasks(control: Control, key_sets: KeySets, slot: &SnapshotSlot) {
    tokio::task::spawn_local(key_sets.run());
    tokio::spawn(EjectionSweep::of(&control, slot).run());
    tokio::task::spawn_local(Checker::of(&control, slot).run());
    tokio::spawn(control.run());
}

/// Parts of the running proxy that its end involves.
struct App {
    workers: Workers,
    shutdown: Shutdown,
    quit: Arc<Notify>,
    reports: Reports,
    signals: Signals,
    /// Process of the workload, whose end ends the proxy.
    workload: Workload,
    /// Handover to another process.
    ends: EndReceiver,
    /// Notified of settings that have changed.
    changes: watch::Receiver<Arc<Settings>>,
    /// File watches; dropping them ends the watching.
    watches: (Watch, [Option<Watch>; 3]),
}

impl App {
    async fn start(
        settings: Settings,
        log: LogControl,
        quit: Arc<Notify>,
    ) -> Result<Self, StartError> {
        let signals = ReloadSignals::listen()?;
        let workload = Workload::find(settings.exit_with.as_ref())?;
        let (live, changes) = LiveSettings::new(&settings);
        let (settings, propagation, (found, watches, reported)) = follow(settings, &live)?;
        let (telemetry, mut reports) = open_reports(&settings, &live, propagation)?;
        let (mut inheritance, sockets) = open_sockets(&settings).await?;
        let registry = Arc::new(Registry::seeded(rand::random()));
        let (certificates, slot, (quarantine, findings)): (Arc<Store>, _, _) = Default::default();
        let publisher = publisher(&settings, &registry, &certificates, &telemetry, &slot);
        let parts = sender_parts(&live, &slot, &telemetry, &registry);
        let publisher = reports.used_by(publisher, &live, &telemetry, parts.clone());
        let (follower, names) = follower(&settings, &registry)?;
        let (listeners, wanted) = watch::channel(Arc::<BTreeSet<_>>::default());
        let mut control = Control {
            publisher,
            follower,
            found: found.clone(),
            names,
            listeners: listeners.into(),
            quarantine: Arc::clone(&quarantine),
            reported,
            registry: Arc::clone(&registry),
            telemetry: Arc::clone(&telemetry),
            directories: Directories::new(),
            delivered: delivered(&settings, &telemetry),
            logged: LoggedDiagnostics::showing(&findings),
            started: settings.started.clone(),
        };
        let key_sets = put_in_effect(&mut control, &settings, &slot, parts).await?;
        let (trigger, drain_watch) = drain::pair();
        let status_table = inheritance.status_table(settings.concurrency.get())?;
        let shared = worker::Shared::new(wanted, &telemetry, drain_watch, &status_table);
        let signals = signals.and_end()?;
        let workers = start_workers(&live, &shared, &slot, &registry, &reports)?;
        spawn_control_tasks(control, key_sets, &slot);
        let shutdown = Shutdown::new(&settings, trigger.clone(), &workers.admission, &slot);
        let sources = pages::Sources {
            exposition: reports.expositions(&live, &telemetry, &log, (&slot, &registry))?,
            slot,
            certificates,
            journal: Arc::clone(registry.journal()),
            status_table,
            quarantine,
            findings,
            found,
            drain: trigger,
            quit: Arc::clone(&quit),
            telemetry,
            taps: reports.taps.clone(),
            settings: settings.clone(),
            live,
            logging: log,
        };
        Ok(Self {
            shutdown,
            workers,
            quit,
            reports,
            signals,
            workload,
            ends: inheritance.serve(sockets, sources),
            changes,
            watches,
        })
    }

    /// Waits until the proxy has to end, drains, and stops.
    async fn serve(mut self) -> Result<(), StartError> {
        let mut ended = Ok(());
        loop {
            tokio::select! {
                action = self.signals.next() => match action {
                    SignalAction::End => break,
                    SignalAction::Reload => self.reload(),
                    SignalAction::Reopen => self.reports.access_log.reopen(),
                },
                Ok(()) = self.changes.changed() => self.follow(),
                () = self.quit.notified() => break,
                () = self.shutdown.run() => break,
                () = self.workload.ended() => {
                    self.shutdown.workload_has_ended();
                    break;
                }
                result = self.ends.next() => {
                    self.shutdown.is_handed_over();
                    ended = result;
                    break;
                }
            }
        }
        self.ends.stopping();
        let cut_off = tokio::select! {
            () = self.shutdown.drain() => false,
            () = self.signals.end() => true,
        };
        if cut_off {
            tracing::warn!(
                connections = self.workers.admission.total(),
                "second signal: open connections are closed"
            );
        }
        self.shutdown.stop();
        let joined = self.workers.join();
        self.reports.shut_down().await;
        joined.map_err(|worker| broken("worker ended by a fault")(worker))?;
        ended
    }

    /// Puts limits and drain times of changed settings into effect.
    fn follow(&mut self) {
        let settings = Arc::clone(&self.changes.borrow_and_update());
        let of_listener = settings.listener_connections_max;
        (self.workers).limit_connections(settings.connections_max, of_listener);
        self.shutdown.follow(&settings);
    }

    /// Reads all files again, changed or not, and reopens the access log.
    fn reload(&self) {
        tracing::info!("SIGHUP: reading all files again, reopening the access log");
        let (resources, settings) = &self.watches;
        resources.look_now();
        settings.iter().flatten().for_each(Watch::look_now);
        self.reports.access_log.reopen();
    }
}

/// Follows the sources, with statistics of them. Returns the settings with the values of ProxyConfigs.
fn follow(
    settings: Settings,
    live: &LiveSettings,
) -> Result<(Settings, Arc<PropagationStats>, Followed), StartError> {
    let propagation = Arc::default();
    let followed = sources::follow(&settings, live, &propagation)?;
    let settings = live.with_proxy_configs(settings, &followed.0.borrow().set);
    Ok((settings, propagation, followed))
}

/// Opens the sockets of the admin pages, unless they are inherited.
async fn open_sockets(settings: &Settings) -> Result<(InheritedSockets, AdminSockets), StartError> {
    let mut inheritance = InheritedSockets::of(settings)?;
    let sockets = AdminSockets::open(settings, inheritance.opened()).await?;
    Ok((inheritance, sockets))
}

/// Makes the metrics, and opens the reports of workers.
fn open_reports(
    settings: &Settings,
    live: &LiveSettings,
    propagation: Arc<PropagationStats>,
) -> Result<(Arc<Telemetry>, Reports), StartError> {
    let bounds = Arc::clone(&settings.duration_bounds);
    let workers = settings.concurrency.get();
    let telemetry = Telemetry::with(workers, build_info(), propagation, bounds);
    let reports = Reports::open(settings, live, &telemetry)?;
    Ok((telemetry, reports))
}

/// Starts to get the identity of the workload, if a server is its source.
fn delivered(settings: &Settings, telemetry: &Arc<Telemetry>) -> watch::Receiver<Delivered> {
    let source = settings.identity_source.as_ref();
    identity_source::start(source, &settings.identity, telemetry)
}

/// Makes the DNS follower of endpoint names, and the channel that it reports changes to.
fn follower(
    settings: &Settings,
    registry: &Arc<Registry>,
) -> Result<(Follower, mpsc::Receiver<Arc<str>>), StartError> {
    let (sender, names) = mpsc::channel(DNS_CHANGES_MAX);
    let no_resolver = failed("the DNS resolver cannot be set up");
    let lookup = system_lookup(&settings.dns_servers).map_err(no_resolver)?;
    Ok((Follower::new(lookup, Arc::clone(registry), sender), names))
}

fn publisher(
    settings: &Settings,
    registry: &Arc<Registry>,
    certificates: &Arc<Store>,
    telemetry: &Arc<Telemetry>,
    slot: &SnapshotSlot,
) -> Publisher {
    Publisher::new(
        settings.identity.clone(),
        Arc::clone(registry),
        Arc::clone(certificates),
        Arc::clone(telemetry),
        Arc::clone(slot),
    )
}

fn open_access_log(settings: &Settings) -> Result<AccessLog, StartError> {
    let workers = settings.concurrency.get();
    let records = settings.exports.logs.as_ref();
    let with_records = |log: AccessLog| match records {
        Some((_, format)) => log.with_records(format.clone()),
        None => log,
    };
    let Some(format) = settings.access_log.clone() else {
        return Ok(with_records(AccessLog::off(workers)));
    };
    let log = AccessLogSettings {
        format,
        target: settings.access_log_target.clone(),
        sample: settings.access_log_sample,
        ..AccessLogSettings::new(workers)
    };
    let what = match &settings.access_log_target {
        AccessLogTarget::File(path) => {
            format!(
                "the access log {} cannot be opened (--access-log-path)",
                path.display()
            )
        }
        _ => "the access log cannot be opened".to_owned(),
    };
    let log = AccessLog::start(log).map_err(failed(&what))?;
    Ok(with_records(log))
}

/// Reports of workers about requests.
struct Reports {
    access_log: Arc<AccessLog>,
    traces: Traces,
    taps: Taps,
    /// Counts of requests with metrics; `None` if none are sent.
    push_totals: Option<Arc<OtlpTotals>>,
    push: Option<MetricPush>,
}

impl Reports {
    fn open(
        settings: &Settings,
        live: &LiveSettings,
        telemetry: &Arc<Telemetry>,
    ) -> Result<Self, StartError> {
        Ok(Self {
            access_log: Arc::new(open_access_log(settings)?),
            traces: Traces::new(settings, live, telemetry),
            taps: Taps::default(),
            push_totals: settings.exports.metrics.as_ref().map(|_| Arc::default()),
            push: None,
        })
    }

    /// Lets a publisher open logs, and start the exporter of spans.
    fn used_by(
        &self,
        publisher: Publisher,
        live: &LiveSettings,
        telemetry: &Arc<Telemetry>,
        senders: impl Fn() -> WorkerParts + Clone + Send + Sync + 'static,
    ) -> Publisher {
        set_log_exporters(&self.access_log, live, telemetry, senders.clone());
        let publisher = publisher.with_access_log(&self.access_log);
        publisher.with_exporter(self.traces.starter(senders))
    }

    fn exposition(
        &self,
        telemetry: &Arc<Telemetry>,
        log: &LogControl,
        slot: &SnapshotSlot,
        registry: &Arc<Registry>,
    ) -> Exposition {
        let (slot, registry) = (Arc::clone(slot), Arc::clone(registry));
        Exposition::new(Arc::clone(telemetry), Arc::clone(&self.access_log))
            .with_logs(log.clone(), self.traces.exporter().cloned())
            .with_push(self.push_totals.clone())
            .with_services(move || admin::service_states(&slot.load(), &registry))
    }

    /// Starts to send metrics, if settings say so; returns those of the admin pages.
    fn expositions(
        &mut self,
        live: &LiveSettings,
        telemetry: &Arc<Telemetry>,
        log: &LogControl,
        (slot, registry): (&SnapshotSlot, &Arc<Registry>),
    ) -> Result<Exposition, StartError> {
        let exposition = || self.exposition(telemetry, log, slot, registry);
        let (pushed, shown) = (exposition(), exposition());
        self.push_metrics(live, pushed)?;
        Ok(shown)
    }

    /// Starts to send metrics, if settings say so.
    fn push_metrics(
        &mut self,
        live: &LiveSettings,
        exposition: Exposition,
    ) -> Result<(), StartError> {
        if let Some(totals) = &self.push_totals {
            self.push = push_metrics(live, exposition, totals)?;
        }
        Ok(())
    }

    /// Sends and writes what waits.
    async fn shut_down(&self) {
        let logs = async {
            for exporter in self.access_log.exporters() {
                exporter.shut_down(EXPORT_FLUSH_MAX).await;
            }
        };
        let push = async {
            if let Some(push) = &self.push {
                push.shut_down(EXPORT_FLUSH_MAX).await;
            }
        };
        tokio::join!(self.traces.shut_down(EXPORT_FLUSH_MAX), logs, push);
        self.access_log.shut_down(LOG_FLUSH_MAX);
    }
}

/// Metrics of requests without a route.
fn unrouted(telemetry: &Telemetry) -> Arc<RequestStats> {
    telemetry.stats.request_stats(&RequestLabels {
        reporter: Direction::Gateway.reporter(),
        source: Arc::default(),
        destination: Arc::default(),
        service: Arc::default(),
    })
}

/// Returns the parts of a worker that sends telemetry to a provider, which has no listeners and logs nothing.
fn sender_parts(
    live: &LiveSettings,
    slot: &SnapshotSlot,
    telemetry: &Arc<Telemetry>,
    registry: &Arc<Registry>,
) -> impl Fn() -> WorkerParts + Clone + Send + Sync + 'static {
    let (slot, telemetry, registry) = (
        Arc::clone(slot),
        Arc::clone(telemetry),
        Arc::clone(registry),
    );
    let settings = Arc::clone(&live.exchange);
    move || WorkerParts {
        id: WorkerId::CONTROL,
        snapshot: Arc::clone(&slot),
        telemetry: Arc::clone(&telemetry),
        unrouted: unrouted(&telemetry),
        access_log: AccessLogger::off(),
        traces: TraceParts::default(),
        taps: Taps::default(),
        registry: Arc::clone(&registry),
        settings: Arc::clone(&settings),
        resolve: None,
        private: Arc::default(),
        seed: rand::random(),
    }
}

fn start_workers(
    live: &LiveSettings,
    shared: &worker::Shared,
    slot: &SnapshotSlot,
    registry: &Arc<Registry>,
    reports: &Reports,
) -> Result<Workers, StartError> {
    let settings = &*live.newest();
    let threads = worker::Settings {
        concurrency: settings.concurrency,
        codec: Arc::clone(&live.codec),
        listener: listener::Settings {
            connections_max: settings.connections_max,
            listener_connections_max: settings.listener_connections_max,
            ..listener::Settings::default()
        },
    };
    let unrouted = unrouted(&shared.telemetry);
    let exchange = Arc::clone(&live.exchange);
    let resolve = names::resolver(settings)?;
    let private: Arc<[_]> = settings
        .health
        .into_iter()
        .chain([settings.admin])
        .collect();
    let (slot, registry, telemetry, access_log) = (
        Arc::clone(slot),
        Arc::clone(registry),
        Arc::clone(&shared.telemetry),
        Arc::clone(&reports.access_log),
    );
    let (trace_parts, taps) = (reports.traces.parts(), reports.taps.clone());
    let make = move |id: WorkerId| {
        let parts = WorkerParts {
            id,
            snapshot: Arc::clone(&slot),
            telemetry: Arc::clone(&telemetry),
            unrouted: Arc::clone(&unrouted),
            access_log: access_log.logger(id),
            traces: trace_parts(id),
            taps: taps.clone(),
            registry: Arc::clone(&registry),
            settings: Arc::clone(&exchange),
            resolve: resolve.clone(),
            private: Arc::clone(&private),
            seed: rand::random(),
        };
        let worker = Rc::new(Worker::new(parts));
        let wake_signal = Arc::clone(worker.pools.wake_signal());
        tokio::task::spawn_local(sweep(Rc::downgrade(&worker), wake_signal));
        let changes = registry.journal().changes();
        tokio::task::spawn_local(select::watch::follow(Rc::downgrade(&worker), changes));
        worker::answer_with(worker)
    };
    worker::start(&threads, shared, make)
        .map_err(|error: io::Error| broken("cannot start the workers")(error))
}
