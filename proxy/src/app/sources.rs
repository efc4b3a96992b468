//! The sources of the configuration: resource files, API servers (`--control`), the remote clusters file
//! (`--clusters`), the mesh configuration (`--mesh-config`) and the labels of the pod (`--pod-labels`). All are watched, and one channel reports their changes.

use std::sync::Arc;

use config_loader::resource::istio::MeshConfig;
use config_loader::{Diagnostic, Recheck, SettingsUpdate, Severity, Sources, Watch, WatchSettings};
use tokio::sync::watch;

use super::live::LiveSettings;
use super::settings::Settings;
use super::start_error::{StartError, failed};
use crate::control::SourcesState;
use crate::control::mesh_config::{self, MeshConfigState};
use crate::control::reported_state::ReportedState;
use crate::identity::Mode;
use crate::telemetry::{ErrorCount, PropagationStats};

/// Returns the first finding about a path that cannot be read.
pub fn unreadable(diagnostics: &[Diagnostic]) -> Option<&Diagnostic> {
    diagnostics.iter().find(|found| {
        found.severity == Severity::Error && found.code.to_string().starts_with("SRC")
    })
}

/// Resources found by the sources, the file watches (dropping them ends the watching), and the reporter of state to
/// config servers.
pub(super) type Followed = (
    watch::Receiver<SourcesState>,
    (Watch, [Option<Watch>; 3]),
    ReportedState,
);

/// Loads all sources and follows them. `stats` records failures, and the time of the last contact with each server.
pub(super) fn follow(
    settings: &Settings,
    live: &LiveSettings,
    stats: &PropagationStats,
) -> Result<Followed, StartError> {
    let mut state = SourcesState::default();
    state.members.settings = Some(settings.identity.members.as_slice().into());
    let (sender, found) = watch::channel(state);
    let (states, _) = watch::channel(None);
    let sources = Sources {
        paths: settings.paths.clone(),
        control: settings.control.clone(),
        states: settings.control.is_some().then(|| states.subscribe()),
        ..Sources::default()
    };
    let resources = load(settings, &sender, &sources)?;
    let (counted, ages) = (sources.errors, sources.ages);
    stats.ages.read_from(move || ages.now());
    stats.errors.read_from(move || {
        let counts = counted.counts().into_iter();
        let counts = counts.map(|(source, error, count)| ErrorCount {
            source,
            reason: error.as_str(),
            count,
        });
        counts.collect()
    });
    let recheck = resources.recheck();
    let mesh_config = follow_mesh_config(settings, live, sender.clone(), recheck.clone())?;
    let labels = follow_labels(settings, sender.clone(), recheck.clone())?;
    let members = follow_members(settings, sender, recheck)?;
    let files = [members, mesh_config, labels];
    let reported = ReportedState::new(settings.proxy_state(), states);
    Ok((found, (resources, files), reported))
}

/// Loads the configuration and follows it. Rejected resources do not prevent the start; paths that cannot be read do,
/// since they are most likely misspelled.
fn load(
    settings: &Settings,
    sender: &watch::Sender<SourcesState>,
    sources: &Sources,
) -> Result<Watch, StartError> {
    let updates = sender.clone();
    let watching = WatchSettings {
        read: settings.read,
        keeps_policies: settings.keeps_policies,
        ..WatchSettings::default()
    };
    let (identity, now) = (settings.identity.clone(), sender.clone());
    let root_namespace = identity.root_namespace.clone();
    let fleet = move || now.borrow().fleet(&identity);
    let (loaded, watch) = config_loader::watch_for(fleet, sources, watching, move |update| {
        updates.send_modify(|found| found.apply_update(update, &root_namespace));
    })
    .map_err(failed("cannot watch the configuration"))?;
    if let Some(missing) = unreadable(&loaded.diagnostics) {
        return Err(failed(&missing.location.file)(&missing.message));
    }
    // An update may have arrived already; it is newer than the loaded state.
    sender.send_if_modified(|found| {
        let is_newer = found.has_changed;
        if !is_newer {
            found.waits_for = loaded.waits_for;
            found.set = loaded.set;
            found.diagnostics = loaded.diagnostics;
            found.quarantined = loaded.quarantined;
            found.wait_for_policies(&settings.identity.root_namespace);
            found.propagation.arrived(loaded.revisions, true);
        }
        !is_newer
    });
    Ok(watch)
}

/// Follows the remote clusters file (`--clusters`), if there is one.
fn follow_members(
    settings: &Settings,
    sender: watch::Sender<SourcesState>,
    recheck: Recheck,
) -> Result<Option<Watch>, StartError> {
    let Some(file) = &settings.clusters else {
        return Ok(None);
    };
    let (known, servers) = (file.clusters.clone(), settings.clone());
    let watch = config_loader::watch_settings(&file.path, known, move |update| {
        sender.send_modify(|found| {
            found.members = update.into();
            let told = found.members.settings.take();
            found.members.settings =
                told.map(|told| servers.with_clusters_of_servers(&told).into());
        });
        recheck.run();
    });
    let watch = watch.map_err(failed("cannot watch the file of --clusters"))?;
    Ok(Some(watch))
}

/// Follows the labels of the pod (`--pod-labels`), if there is such a file.
fn follow_labels(
    settings: &Settings,
    sender: watch::Sender<SourcesState>,
    recheck: Recheck,
) -> Result<Option<Watch>, StartError> {
    let Some(file) = &settings.pod_labels else {
        return Ok(None);
    };
    let watch = config_loader::watch_settings(&file.path, file.labels.clone(), move |update| {
        for found in &update.diagnostics {
            tracing::warn!(
                error = found.message,
                "--pod-labels: the last labels stay in effect"
            );
        }
        sender.send_modify(|found| found.labels = Some(update.settings));
        recheck.run();
    });
    let watch = watch.map_err(failed("cannot watch the file of --pod-labels"))?;
    Ok(Some(watch))
}

/// Update of the mesh configuration.
type MeshUpdate = SettingsUpdate<MeshConfig>;

/// Follows the mesh configuration: the file of `--mesh-config`, else the ConfigMap `istio` of the API server, if there is
/// one.
fn follow_mesh_config(
    settings: &Settings,
    live: &LiveSettings,
    sender: watch::Sender<SourcesState>,
    recheck: Recheck,
) -> Result<Option<Watch>, StartError> {
    let (live, own) = (live.clone(), Arc::clone(&settings.identity.own));
    let put = move |sender: &watch::Sender<SourcesState>, update: MeshUpdate, pending| {
        let followed = live.follow(&update.settings);
        let contradicted = Some(live.contradicted());
        sender.send_modify(|found| {
            found.mesh = MeshConfigState {
                contradicted,
                ..found.mesh.updated(update, &own, followed, pending)
            };
        });
    };
    let own = Arc::clone(&settings.identity.own);
    let Some(file) = settings.mesh_config.clone() else {
        if let Some(control) = &settings.control {
            let (servers, started) = (control.kubernetes.clone(), settings.clone());
            let namespace = settings.identity.root_namespace.clone();
            let updates = sender.clone();
            let update = move |mut update: MeshUpdate| {
                let config = update.settings.of_proxy(&own);
                let has = |flag: &str, value: &str| started.has(flag, value);
                let is_gateway = started.identity.mode == Mode::Gateway;
                let others = mesh_config::not_followed(&config, is_gateway, has);
                update.diagnostics.extend(others);
                put(&sender, update, None);
                let recheck = recheck.clone();
                tokio::task::spawn_blocking(move || recheck.run());
            };
            let awaited = MeshConfigState {
                // a saved state may be of a server that does not answer now
                is_awaited: control.state.is_none(),
                ..MeshConfigState::default()
            };
            updates.send_modify(|found| found.mesh = awaited);
            tokio::spawn(config_loader::follow_config_map(servers, namespace, update));
        }
        return Ok(None);
    };
    let path = file.path.clone();
    let watch = config_loader::watch_settings(&path, file.config.clone(), move |update| {
        let pending = file.pending(&update.settings, &own);
        put(&sender, update, pending);
        recheck.run();
    });
    let watch = watch.map_err(failed("cannot watch the file of --mesh-config"))?;
    Ok(Some(watch))
}
