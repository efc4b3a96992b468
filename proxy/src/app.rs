//! Composition root: makes runtimes, registry, snapshot slot, listeners and admin, and hands each part its settings.

mod admin_sockets;
mod certificates;
mod dumped_resources;
mod handover;
mod names;
pub mod pages;
mod readiness;
mod service_manager;
mod settings;
mod shutdown;
mod signals;
mod sources;
mod start_error;
mod takeover;
mod workload;

use std::collections::BTreeSet;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use config_loader::Watch;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::control::certificates::Directories;
use crate::control::dns::{Follower, system_lookup};
use crate::control::ejection_sweep::EjectionSweep;
use crate::control::health::Checker;
use crate::control::key_sets::KeySets;
use crate::control::publish::Publisher;
use crate::control::{Control, DNS_CHANGES_MAX, LoggedDiagnostics, Quarantine};
use crate::exchange::{Worker, WorkerParts, select};
use crate::runtime::drain;
use crate::snapshot::{Direction, SnapshotSlot};
use crate::telemetry::{
    AccessLog, AccessLogSettings, AccessLogTarget, LogControl, RequestLabels, Telemetry, WorkerId,
};
use crate::tls::Store;
use crate::worker::{self, Workers};
use traffic::registry::{Registry, WakeSignal};

use self::admin_sockets::AdminSockets;
use self::handover::{EndReceiver, InheritedSockets};
use self::settings::build_info;
pub use self::settings::{OutboundDrain, Settings};
use self::shutdown::Shutdown;
use self::signals::{ReloadSignals, SignalAction, Signals};
pub use self::sources::unreadable;
pub use self::start_error::StartError;
use self::start_error::{broken, failed};
use self::workload::Workload;
pub use self::workload::WorkloadProcess;

/// Maximum time for the access log to write its queued lines when the process ends.
const LOG_FLUSH_MAX: Duration = Duration::from_secs(2);

/// Interval at which a worker checks its idle upstream connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

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
) -> Result<KeySets, StartError> {
    control.apply();
    if let Some(problem) = control.wrong_identity() {
        let problem = problem.with_its_fix();
        return Err(failed("the identity of the workload")(problem));
    }
    let settings = &settings.key_sets;
    let mut key_sets = KeySets::of(control, slot, settings).map_err(failed("--jwks-ca"))?;
    key_sets.tried(settings.ready_timeout).await;
    Ok(key_sets)
}

/// Starts the tasks that update the snapshot and the state of endpoints.
fn spawn_control_tasks(control: Control, key_sets: KeySets, slot: &SnapshotSlot) {
    tokio::spawn(key_sets.run());
    tokio::spawn(EjectionSweep::of(&control, slot).run());
    tokio::task::spawn_local(Checker::of(&control, slot).run());
    tokio::spawn(control.run());
}

/// Parts of the running proxy that its end involves.
struct App {
    workers: Workers,
    shutdown: Shutdown,
    quit: Arc<Notify>,
    access_log: Arc<AccessLog>,
    signals: Signals,
    /// Process of the workload, whose end ends the proxy.
    workload: Workload,
    /// Handover to another process.
    ends: EndReceiver,
    /// File watches; dropping them ends the watching.
    watches: (Watch, [Option<Watch>; 2]),
}

impl App {
    async fn start(
        settings: Settings,
        logging: LogControl,
        quit: Arc<Notify>,
    ) -> Result<Self, StartError> {
        let signals = ReloadSignals::listen()?;
        let workload = Workload::find(settings.exit_with.as_ref())?;
        let telemetry = Telemetry::new(settings.concurrency.get(), build_info());
        let access_log = Arc::new(open_access_log(&settings)?);
        let mut inheritance = InheritedSockets::of(&settings)?;
        let sockets = AdminSockets::open(&settings, inheritance.opened()).await?;
        let (found, watches, reported) = sources::follow(&settings, &telemetry.propagation)?;
        let registry = Arc::new(Registry::seeded(rand::random()));
        let certificates: Arc<Store> = Arc::default();
        let slot: SnapshotSlot = Arc::new(ArcSwap::default());
        let publisher = publisher(&settings, &registry, &certificates, &telemetry, &slot);
        let (follower, names) = follower(&settings, &registry)?;
        let (listeners, wanted) = watch::channel(Arc::<BTreeSet<_>>::default());
        let quarantine = Quarantine::default();
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
            logged: LoggedDiagnostics::default(),
        };
        let key_sets = put_in_effect(&mut control, &settings, &slot).await?;
        let (trigger, drain_watch) = drain::pair();
        let status_table = inheritance.status_table(settings.concurrency.get())?;
        let shared = worker::Shared {
            wanted,
            telemetry: Arc::clone(&telemetry),
            drain: drain_watch,
            status_table: status_table.clone(),
        };
        let signals = signals.and_end()?;
        let workers = start_workers(&settings, &shared, &slot, &registry, &access_log)?;
        spawn_control_tasks(control, key_sets, &slot);
        let shutdown = Shutdown::new(&settings, trigger.clone(), &workers.admission, &slot);
        let sources = pages::Sources {
            slot,
            certificates,
            journal: Arc::clone(registry.journal()),
            status_table,
            quarantine,
            found,
            drain: trigger,
            quit: Arc::clone(&quit),
            telemetry,
            access_log: Arc::clone(&access_log),
            settings: settings.clone(),
            logging,
        };
        Ok(Self {
            shutdown,
            workers,
            quit,
            access_log,
            signals,
            workload,
            ends: inheritance.serve(sockets, sources),
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
                    SignalAction::Reopen => self.access_log.reopen(),
                },
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
        self.access_log.shut_down(LOG_FLUSH_MAX);
        joined.map_err(|worker| broken("worker ended by a fault")(worker))?;
        ended
    }

    /// Reads all files again, changed or not, and reopens the access log.
    fn reload(&self) {
        tracing::info!("SIGHUP: reading all files again, reopening the access log");
        let (resources, settings) = &self.watches;
        resources.look_now();
        settings.iter().flatten().for_each(Watch::look_now);
        self.access_log.reopen();
    }
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
    let Some(format) = settings.access_log else {
        return Ok(AccessLog::off());
    };
    let log = AccessLogSettings {
        format,
        target: settings.access_log_target.clone(),
        ..AccessLogSettings::new(settings.concurrency.get())
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
    AccessLog::start(log).map_err(failed(&what))
}

/// Closes upstream connections of a worker: about once a second connections that have been idle for too long, and at
/// once connections that requests on other workers wait for.
async fn sweep(worker: Weak<Worker>, wake_signal: Arc<WakeSignal>) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = tokio::select! {
            now = ticks.tick() => Some(now),
            () = wake_signal.wait() => None,
        };
        let Some(worker) = worker.upgrade() else {
            return;
        };
        match now {
            Some(now) => worker.pools.sweep(now),
            None => worker.pools.answer(),
        }
    }
}

fn start_workers(
    settings: &Settings,
    shared: &worker::Shared,
    slot: &SnapshotSlot,
    registry: &Arc<Registry>,
    access_log: &Arc<AccessLog>,
) -> Result<Workers, StartError> {
    let threads = worker::Settings {
        concurrency: settings.concurrency,
        codec: settings.codec.clone(),
        ..worker::Settings::default()
    };
    let unrouted = shared.telemetry.stats.request_stats(&RequestLabels {
        reporter: Direction::Gateway.reporter(),
        source: Arc::default(),
        destination: Arc::default(),
        service: Arc::default(),
    });
    let exchange = settings.exchange.clone();
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
        Arc::clone(access_log),
    );
    let make = move |id: WorkerId| {
        let parts = WorkerParts {
            id,
            snapshot: Arc::clone(&slot),
            telemetry: Arc::clone(&telemetry),
            unrouted: Arc::clone(&unrouted),
            access_log: access_log.logger(id),
            registry: Arc::clone(&registry),
            settings: exchange.clone(),
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
